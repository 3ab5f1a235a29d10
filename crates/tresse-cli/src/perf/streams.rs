//! Streams with loads of their own, and the order in which they send: a stream with a rate when it is due, the others in turn.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tresse::config::{StreamClass, SwitchValue};

use super::args::message_size;
use super::message::Load;
use crate::args::rate;

/// Load of one stream.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct StreamLoad {
    pub(super) message_bytes: u32,
    /// Rate of user data; not limited if absent.
    pub(super) bits_per_second: Option<u64>,
    /// Its class, by name.
    pub(super) class: String,
}

impl FromStr for StreamLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let class = StreamClass::default().name().to_owned();
        let mut load = StreamLoad { message_bytes: 64 * 1024, bits_per_second: None, class };
        let mut read = Vec::new();
        for part in text.split(',') {
            if let Some((key, _)) = part.split_once('=') {
                if read.contains(&key) {
                    return Err(format!(
                        "{key}= is there twice: a stream has one; a further --stream is the next stream"
                    ));
                }
                read.push(key);
            }
            match part.split_once('=') {
                Some(("size", value)) => load.message_bytes = message_size(value)?,
                Some(("rate", value)) => load.bits_per_second = Some(rate(value)?),
                Some(("class", value)) => load.class = class_of(value)?.name().to_owned(),
                _ => return Err(format!("\"{part}\" is not size=, rate= or class= with a value")),
            }
        }
        Ok(load)
    }
}

/// Returns the class of this name.
///
/// # Errors
/// There is no such class; the error lists those that exist.
pub(super) fn class_of(name: &str) -> Result<StreamClass, String> {
    StreamClass::parse(name).ok_or_else(|| format!("\"{name}\" is not {}", StreamClass::accepted()))
}

/// Order of the streams.
pub(super) struct Turns {
    streams: Vec<State>,
}

struct State {
    len: u32,
    bits_per_second: Option<u64>,
    bytes: u64,
    messages: u64,
}

impl Turns {
    /// Creates the order of the streams of a load, from stream 1 on.
    pub(super) fn new(load: &Load) -> Self {
        let state = |len, bits_per_second| State { len, bits_per_second, bytes: 0, messages: 0 };
        let streams = match &load.per_stream[..] {
            [] => (0..load.streams).map(|_| state(load.message_bytes, None)).collect(),
            own => own.iter().map(|one| state(one.message_bytes, one.bits_per_second)).collect(),
        };
        Turns { streams }
    }

    /// Returns the position of the next stream, the length of its message, and the time at which the message is due; `None` without
    /// streams. `since` is the present time; both times count from the beginning.
    pub(super) fn next(&self, since: Duration) -> Option<(usize, u32, Duration)> {
        let rated = self.streams.iter().enumerate().filter_map(|(at, one)| Some((one.due()?, at)));
        let rated = rated.min();
        let others = self.streams.iter().enumerate().filter(|(_, one)| one.bits_per_second.is_none());
        let other = others.min_by_key(|(_, one)| one.messages).map(|(at, _)| at);
        let (at, due) = match (rated, other) {
            (Some((due, at)), _) if due <= since => (at, due),
            (_, Some(at)) => (at, Duration::ZERO),
            (Some((due, at)), None) => (at, due),
            (None, None) => return None,
        };
        Some((at, self.streams[at].len, due))
    }

    /// Records that a message of `bytes` was sent on the stream at position `at`.
    pub(super) fn on_sent(&mut self, at: usize, bytes: usize) {
        if let Some(stream) = self.streams.get_mut(at) {
            stream.bytes += bytes as u64;
            stream.messages += 1;
        }
    }
}

impl State {
    /// Returns the time at which the next message is due; `None` without a rate.
    fn due(&self) -> Option<Duration> {
        let rate = self.bits_per_second.filter(|rate| *rate > 0)?;
        Some(Duration::from_secs_f64(self.bytes as f64 * 8.0 / rate as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Until;
    use super::*;

    fn load(per_stream: Vec<StreamLoad>) -> Load {
        Load {
            until: Until::Bytes(2500),
            message_bytes: 1000,
            streams: 2,
            unordered: false,
            bits_per_second: None,
            omit_seconds: 0.0,
            per_stream,
        }
    }

    #[test]
    fn a_load_is_read_and_what_is_none_is_refused() {
        let read: StreamLoad = "size=200B,rate=1Mbit/s,class=latency".parse().expect("one");
        let expected =
            StreamLoad { message_bytes: 200, bits_per_second: Some(1_000_000), class: "latency".to_owned() };
        assert_eq!(read, expected);
        let read: StreamLoad = "class=background".parse().expect("one");
        assert_eq!((read.message_bytes, read.bits_per_second), (65_536, None));
        for text in ["", "size", "size=0B", "rate=0bit/s", "class=urgent", "weight=3"] {
            assert!(text.parse::<StreamLoad>().is_err(), "{text:?}");
        }
        for text in ["size=1B,size=2B", "rate=1kbit/s,size=2B,rate=1kbit/s", "class=bulk,class=bulk"] {
            let refused = text.parse::<StreamLoad>().expect_err(text);
            assert!(refused.contains("is there twice"), "{refused}");
        }
    }

    #[test]
    fn streams_without_a_rate_take_turns_and_those_with_one_go_when_they_are_due() {
        let mut turns = Turns::new(&load(Vec::new()));
        let mut order = Vec::new();
        for _ in 0..4 {
            let (at, len, _) = turns.next(Duration::ZERO).expect("a stream");
            turns.on_sent(at, len as usize);
            order.push(at);
        }
        assert_eq!(order, [0, 1, 0, 1]);

        let own = ["size=100B,rate=8kbit/s", "size=500B"].map(|text| text.parse().expect("one"));
        let mut turns = Turns::new(&load(own.to_vec()));
        assert_eq!(turns.next(Duration::ZERO), Some((0, 100, Duration::ZERO)));
        turns.on_sent(0, 100);
        assert_eq!(turns.next(Duration::from_millis(99)), Some((1, 500, Duration::ZERO)));
        assert_eq!(turns.next(Duration::from_millis(100)), Some((0, 100, Duration::from_millis(100))));
        let turns = Turns::new(&load(vec!["rate=8kbit/s".parse().expect("one")]));
        assert_eq!(turns.next(Duration::ZERO).map(|(at, ..)| at), Some(0));
    }
}
