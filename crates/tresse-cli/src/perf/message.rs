//! Control messages of a measurement: JSON documents, each with the version of the protocol.

use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tresse::config::{StreamClass, SwitchValue};
use tresse::host::Load as ProcessorTime;
use tresse::{Ppid, units};

use crate::args::{positive_size, rate};
use crate::report::paths::PathsReport;

/// Payload protocol identifier of control messages: "trp0".
pub(super) const CONTROL: Ppid = Ppid(0x7472_7030);
/// Payload protocol identifier of data: "trp1".
pub(super) const DATA: Ppid = Ppid(0x7472_7031);
/// Bytes of the longest data message.
pub(super) const LONGEST_MESSAGE: u32 = 1 << 20;
/// Seconds of the longest measurement.
const LONGEST_SECONDS: f64 = 86_400.0;
/// Bytes of the longest control message.
pub(super) const LONGEST_CONTROL: usize = 64 * 1024;
/// Most streams with loads of their own.
const MOST_PER_STREAM: usize = 64;
/// Version of the protocol.
const VERSION: u32 = 2;

/// A control message.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Control {
    /// The client requests a measurement.
    Ask(MeasurementRequest),
    /// The server accepts, and sends its clock in nanoseconds since 1970, from which the client computes the offset of the clocks.
    Go(u64),
    /// The server refuses, for this reason.
    Refuse(String),
    /// The sender has passed all of a load to the transport, or its time is over.
    Sent(SenderReport),
    /// The receiver has all of a load, or its time is over.
    Got(ReceiverReport),
    /// The client has all reports.
    Done,
}

/// Request for a measurement.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct MeasurementRequest {
    pub(super) client_sends: bool,
    pub(super) server_sends: bool,
    pub(super) load: Load,
}

/// Load of a sender.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Load {
    pub(super) until: Until,
    pub(super) message_bytes: u32,
    /// Number of data streams, which are the streams 1 to this one.
    pub(super) streams: u16,
    pub(super) unordered: bool,
    /// Rate of user data; not limited if absent.
    pub(super) bits_per_second: Option<u64>,
    /// Time at the beginning that does not count, and is added to the duration.
    pub(super) omit_seconds: f64,
    /// Loads of the streams from 1 on, if these have loads of their own. `message_bytes` is not used then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) per_stream: Vec<StreamLoad>,
}

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

/// Parses the length of messages.
pub(super) fn message_size(text: &str) -> Result<u32, String> {
    match u32::try_from(positive_size(text)?) {
        Ok(bytes) if bytes <= LONGEST_MESSAGE => Ok(bytes),
        _ => Err(format!("it must be {} at most", units::format_size(LONGEST_MESSAGE.into()))),
    }
}

/// End of a load.
#[derive(Copy, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    Seconds(f64),
    Bytes(u64),
}

/// Report of a sender, at the end of its load.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SenderReport {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Processor time of the sender.
    pub(super) processor: Option<Processor>,
    #[serde(flatten)]
    pub(super) paths: PathsReport,
}

/// Report of a receiver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct ReceiverReport {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Time from the first byte that counts to the last.
    pub(super) seconds: f64,
    /// Delay from sending a message until its arrival, by the clocks of receiver and sender.
    pub(super) delay: Option<Delay>,
    /// Processor time of the receiver.
    pub(super) processor: Option<Processor>,
    /// Data by stream, if streams have loads of their own, with the streams' numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) streams: Vec<(u16, StreamReceived)>,
}

/// Data received on one stream.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct StreamReceived {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delay: Option<Delay>,
}

/// Processor time, as shares of the time: the thread that moves packets was running, or waited for a processor; and the processors of its
/// host were idle.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Processor {
    pub(crate) running: f64,
    pub(crate) waiting: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idle: Option<f64>,
}

impl Processor {
    /// Returns whether more processor time would have moved more data: the thread had none left, or used at least half while its host had
    /// almost none left.
    pub(super) fn is_exhausted(&self) -> bool {
        let used = self.running + self.waiting;
        used >= BUSY || used >= HALF_BUSY && self.idle.is_some_and(|idle| idle <= NONE_LEFT)
    }

    /// Returns the shares since `begin`, where the system reports them.
    pub(super) fn since(begin: Option<ProcessorTime>) -> Option<Self> {
        let shares = ProcessorTime::now()?.since(&begin?);
        Some(Processor { running: shares.running, waiting: shares.waiting, idle: shares.idle })
    }
}

/// Share of the time that a thread was running or waiting from which on its host was the limit.
const BUSY: f64 = 0.9;
/// The same share where the processors of the host were idle for no more than `NONE_LEFT`: threads of the system move packets, too, on
/// the same processors.
const HALF_BUSY: f64 = 0.5;
const NONE_LEFT: f64 = 0.1;

/// Delays of messages, in milliseconds.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Delay {
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    /// Largest error of these delays, from the comparison of the clocks over the network; 0 before that.
    pub(super) error_ms: f64,
}

impl Delay {
    /// Returns the delays corrected for a receiver's clock that is `ahead` of the sender's, within `error`; all in milliseconds.
    pub(super) fn corrected(self, ahead: f64, error: f64) -> Self {
        Delay {
            p50_ms: self.p50_ms - ahead,
            p95_ms: self.p95_ms - ahead,
            p99_ms: self.p99_ms - ahead,
            max_ms: self.max_ms - ahead,
            error_ms: error,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    #[serde(flatten)]
    control: Control,
}

impl Control {
    /// Encodes the message.
    pub(super) fn encode(self) -> Result<Bytes, String> {
        let document = Document { version: VERSION, control: self };
        serde_json::to_vec(&document).map(Bytes::from).map_err(|error| error.to_string())
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The fault of the bytes, as text that may be sent to the other side.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let version: Version = serde_json::from_slice(bytes)
            .map_err(|error| format!("a control message that is none: {error}"))?;
        if version.version != VERSION {
            return Err(format!("protocol version {}, where version {VERSION} is spoken", version.version));
        }
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| format!("a control message that cannot be read: {error}"))?;
        Ok(document.control)
    }
}

impl Load {
    /// Returns whether the load ends at a time, after which data under way does not count.
    pub(super) fn is_timed(&self) -> bool {
        matches!(self.until, Until::Seconds(_))
    }
}

impl MeasurementRequest {
    /// Checks a request of a client that may not be trusted. The arguments are the negotiated numbers of streams.
    ///
    /// # Errors
    /// A description of the values that would be accepted.
    pub(super) fn check(&self, (outbound, inbound): (u16, u16)) -> Result<(), String> {
        if !self.client_sends && !self.server_sends {
            return Err("at least one side has to send".to_owned());
        }
        let Load { until, message_bytes, streams, bits_per_second, .. } = self.load;
        let per_stream = &self.load.per_stream;
        if per_stream.len() > MOST_PER_STREAM
            || !per_stream.is_empty() && per_stream.len() != usize::from(streams)
        {
            return Err(format!(
                "{MOST_PER_STREAM} streams at most have loads of their own, not {}",
                per_stream.len()
            ));
        }
        for one in per_stream {
            class_of(&one.class)?;
            if !(1..=LONGEST_MESSAGE).contains(&one.message_bytes) || one.bits_per_second == Some(0) {
                return Err(format!(
                    "a stream's messages have 1 to {LONGEST_MESSAGE} bytes, and a rate is more than nothing"
                ));
            }
        }
        if !(1..=LONGEST_MESSAGE).contains(&message_bytes) {
            return Err(format!("messages have 1 to {LONGEST_MESSAGE} bytes, not {message_bytes}"));
        }
        if let Until::Seconds(seconds) = until
            && !(seconds > 0.0 && seconds <= LONGEST_SECONDS)
        {
            return Err(format!("a measurement takes {LONGEST_SECONDS} s at most, not {seconds} s"));
        }
        let omit = self.load.omit_seconds;
        if !(0.0..=LONGEST_SECONDS).contains(&omit) {
            return Err(format!("{LONGEST_SECONDS} s at most are left out, not {omit} s"));
        }
        if bits_per_second == Some(0) {
            return Err("a rate is more than nothing".to_owned());
        }
        // Stream 0 is for control.
        let data = if self.server_sends { outbound.min(inbound) } else { inbound }.saturating_sub(1);
        if streams == 0 || streams > data {
            return Err(format!("{data} streams of data were negotiated, not {streams}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> MeasurementRequest {
        let until = Until::Seconds(1.5);
        let load = Load {
            until,
            message_bytes: 1000,
            streams: 3,
            unordered: false,
            bits_per_second: None,
            omit_seconds: 0.0,
            per_stream: Vec::new(),
        };
        MeasurementRequest { client_sends: true, server_sends: false, load }
    }

    #[test]
    fn messages_survive_the_way() {
        let bytes = Control::Ask(ask()).encode().expect("a document");
        let Ok(Control::Ask(back)) = Control::decode(&bytes) else { panic!("{bytes:?}") };
        assert_eq!(back.load.streams, 3);
        assert!(matches!(back.load.until, Until::Seconds(seconds) if seconds == 1.5));
        let stream = StreamReceived { messages: 1, bytes: 100, delay: None };
        let got = ReceiverReport {
            messages: 1,
            bytes: 100,
            seconds: 0.5,
            delay: None,
            processor: None,
            streams: vec![(3, stream)],
        };
        let bytes = Control::Got(got.clone()).encode().expect("a document");
        assert!(matches!(Control::decode(&bytes), Ok(Control::Got(back)) if back == got));
        assert!(matches!(Control::decode(&Control::Go(7).encode().expect("one")), Ok(Control::Go(7))));
    }

    #[test]
    fn what_is_no_message_is_named() {
        for (bytes, complaint) in [
            (&b"\xff"[..], "that is none"),
            (br#"{"version":1,"dance":1}"#, "version 1, where version 2"),
            (br#"{"version":2,"dance":1}"#, "cannot be read"),
        ] {
            let error = Control::decode(bytes).err().expect("refused");
            assert!(error.contains(complaint), "{error}");
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
    fn a_server_does_what_is_reasonable() {
        assert_eq!(ask().check((4, 4)), Ok(()));
        let refused = |change: fn(&mut MeasurementRequest)| {
            let mut ask = ask();
            change(&mut ask);
            ask.check((4, 4)).expect_err("refused")
        };
        assert!(refused(|ask| ask.client_sends = false).contains("at least one side"));
        assert!(refused(|ask| ask.load.message_bytes = 0).contains("1 to 1048576 bytes"));
        assert!(refused(|ask| ask.load.until = Until::Seconds(f64::NAN)).contains("86400 s at most"));
        assert!(refused(|ask| ask.load.streams = 4).contains("3 streams"));
        assert!(refused(|ask| ask.load.bits_per_second = Some(0)).contains("more than nothing"));
        let own = |text: &str| text.parse::<StreamLoad>().expect("a load");
        let mut three = ask();
        three.load.per_stream = vec![own("size=1kB"), own("rate=1Mbit/s"), own("class=latency")];
        assert_eq!(three.check((4, 4)), Ok(()));
        three.load.per_stream[1].bits_per_second = Some(0);
        assert!(three.check((4, 4)).is_err_and(|error| error.contains("more than nothing")));
        three.load.per_stream.pop();
        assert!(three.check((4, 4)).is_err_and(|error| error.contains("64 streams at most")));
    }
}
