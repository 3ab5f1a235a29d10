//! Control messages of a measurement: JSON documents, each with the version of the protocol.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tresse::Ppid;

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
/// What is spoken.
const VERSION: u32 = 1;

/// A control message.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Control {
    /// The client's wish.
    Ask(Ask),
    /// It is granted.
    Go,
    /// It is not, and why.
    Refuse(String),
    /// All of a load has been handed to the transport.
    Sent(Sent),
    /// All of a load has come.
    Got(Got),
}

/// What is to be measured.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) client_sends: bool,
    pub(super) server_sends: bool,
    pub(super) load: Load,
}

/// What a sender sends.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Load {
    pub(super) until: Until,
    pub(super) message_bytes: u32,
    /// Data goes on streams 1 to this one.
    pub(super) streams: u16,
    pub(super) unordered: bool,
    /// User data; as fast as possible if not given.
    pub(super) bits_per_second: Option<u64>,
}

/// When a load ends.
#[derive(Copy, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    Seconds(f64),
    Bytes(u64),
}

/// A sender's account, as of when its load ended.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    #[serde(flatten)]
    pub(super) paths: PathsReport,
}

/// A receiver's account.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Got {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// From the first byte to the last.
    pub(super) seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    #[serde(flatten)]
    control: Control,
}

impl Control {
    /// The bytes of the message.
    pub(super) fn encode(self) -> Result<Bytes, String> {
        let document = Document { version: VERSION, control: self };
        serde_json::to_vec(&document).map(Bytes::from).map_err(|error| error.to_string())
    }

    /// # Errors
    /// What is wrong with the bytes, in words for the other side.
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

impl Ask {
    /// Refuses what a server should not do for a stranger. `streams` of each direction were negotiated.
    ///
    /// # Errors
    /// What would be accepted.
    pub(super) fn check(&self, (outbound, inbound): (u16, u16)) -> Result<(), String> {
        if !self.client_sends && !self.server_sends {
            return Err("at least one side has to send".to_owned());
        }
        let Load { until, message_bytes, streams, bits_per_second, .. } = self.load;
        if !(1..=LONGEST_MESSAGE).contains(&message_bytes) {
            return Err(format!("messages have 1 to {LONGEST_MESSAGE} bytes, not {message_bytes}"));
        }
        if let Until::Seconds(seconds) = until
            && !(seconds > 0.0 && seconds <= LONGEST_SECONDS)
        {
            return Err(format!("a measurement takes {LONGEST_SECONDS} s at most, not {seconds} s"));
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

    fn ask() -> Ask {
        let until = Until::Seconds(1.5);
        let load = Load { until, message_bytes: 1000, streams: 3, unordered: false, bits_per_second: None };
        Ask { client_sends: true, server_sends: false, load }
    }

    #[test]
    fn messages_survive_the_way() {
        let bytes = Control::Ask(ask()).encode().expect("a document");
        let Ok(Control::Ask(back)) = Control::decode(&bytes) else { panic!("{bytes:?}") };
        assert_eq!(back.load.streams, 3);
        assert!(matches!(back.load.until, Until::Seconds(seconds) if seconds == 1.5));
        assert!(matches!(Control::decode(&Control::Go.encode().expect("one")), Ok(Control::Go)));
    }

    #[test]
    fn what_is_no_message_is_named() {
        for (bytes, complaint) in [
            (&b"\xff"[..], "that is none"),
            (br#"{"version":2,"dance":1}"#, "version 2, where version 1"),
            (br#"{"version":1,"dance":1}"#, "cannot be read"),
        ] {
            let error = Control::decode(bytes).err().expect("refused");
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn a_server_does_what_is_reasonable() {
        assert_eq!(ask().check((4, 4)), Ok(()));
        let refused = |change: fn(&mut Ask)| {
            let mut ask = ask();
            change(&mut ask);
            ask.check((4, 4)).expect_err("refused")
        };
        assert!(refused(|ask| ask.client_sends = false).contains("at least one side"));
        assert!(refused(|ask| ask.load.message_bytes = 0).contains("1 to 1048576 bytes"));
        assert!(refused(|ask| ask.load.until = Until::Seconds(f64::NAN)).contains("86400 s at most"));
        assert!(refused(|ask| ask.load.streams = 4).contains("3 streams"));
        assert!(refused(|ask| ask.load.bits_per_second = Some(0)).contains("more than nothing"));
    }
}
