//! Order in which the streams of a load send: a stream with a rate when it is due, the others in turn.

use std::time::Duration;

use super::message::Load;

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
    use super::super::message::{StreamLoad, Until};
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
