//! Errors of a run that could not be started or finished.

use tresse_proto::{AddressError, ConfigError, ConnectError, Instant, ScheduleError};

/// Reason for which a run has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The transport's settings contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A stream scheduler of the caller cannot be registered.
    #[error(transparent)]
    Scheduler(#[from] ScheduleError),
    /// The sender could not start its association.
    #[error("the sender cannot connect: {0}")]
    Connect(#[from] ConnectError),
    /// A path could not be added or removed.
    #[error("the scenario's paths cannot change: {0}")]
    Addresses(#[from] AddressError),
    /// Fewer streams were negotiated than the traffic needs.
    #[error(
        "the traffic needs {wanted} streams, and {negotiated} were negotiated: raise \"inbound_streams\""
    )]
    TooFewStreams {
        /// Number of streams that the scenario needs.
        wanted: u16,
        /// Number of streams that the hosts negotiated.
        negotiated: u16,
    },
    /// A message cannot be sent at all.
    #[error("the transport refuses the scenario's messages: {0}")]
    Message(#[from] tresse_proto::SendError),
    /// The transport lost, doubled, reordered or changed a message.
    #[error("at {:.9} s: {breach}", .at.as_secs_f64())]
    Broken {
        /// Time at which the violation was detected.
        at: Instant,
        /// The violated rule.
        breach: DeliveryViolation,
    },
    /// A host sends packets without end at one instant.
    #[error("at {:.9} s host {host} has sent {packets} packets and wants to send more", .at.as_secs_f64())]
    Runaway {
        /// Virtual time.
        at: Instant,
        /// Number of the host: 0 is the sender, 1 the receiver.
        host: u16,
        /// Number of packets that it sent at that time.
        packets: usize,
    },
    /// A host requests a wake-up again and again at one instant.
    #[error("at {:.9} s host {host} asks to be woken at once, again and again", .at.as_secs_f64())]
    Sleepless {
        /// Virtual time.
        at: Instant,
        /// Number of the host: 0 is the sender, 1 the receiver.
        host: u16,
    },
    /// Time does not advance: there are more and more events at one instant.
    #[error("at {:.9} s {events} things have happened at once and time stands still; the last was {last}", .at.as_secs_f64())]
    Standstill {
        /// Virtual time.
        at: Instant,
        /// Number of events at that time.
        events: u32,
        /// The last of them, and its place.
        last: String,
    },
    /// More messages are under way than a run may hold.
    #[error("at {:.9} s {messages} messages wait or are under way, which is more than a run may hold: \
             take longer messages, a smaller send_buffer, or a longer gap between sporadic ones", .at.as_secs_f64())]
    TooManyMessages {
        /// Virtual time.
        at: Instant,
        /// Number of messages.
        messages: u64,
    },
    /// More packets are under way than a run may hold.
    #[error("at {:.9} s {packets} packets are under way, which is more than a run may hold: \
             take lower rates, shorter delays or queues, or fewer flows", .at.as_secs_f64())]
    TooManyPackets {
        /// Virtual time.
        at: Instant,
        /// Number of packets.
        packets: usize,
    },
    /// The capture could not be written.
    #[error("the capture could not be written: {0}")]
    Capture(#[source] std::io::Error),
    /// The trace could not be written.
    #[error("the trace could not be written: {0}")]
    Trace(#[source] std::io::Error),
}

/// Violated guarantee of the transport.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryViolation {
    /// A message was delivered twice, or was never sent.
    #[error("stream {stream}: message {message} came out although it is not under way: twice, or never sent")]
    NotUnderWay {
        /// The stream.
        stream: u16,
        /// The message's number in the stream, modulo 2^32.
        message: u32,
    },
    /// An ordered message overtook another.
    #[error("stream {stream}: message {message} came out before message {expected}")]
    OutOfOrder {
        /// The stream.
        stream: u16,
        /// The message that was delivered.
        message: u32,
        /// The message that should have been delivered.
        expected: u32,
    },
    /// A message was delivered on a stream that carries no traffic.
    #[error("a message came out of stream {0}, which carries none")]
    NoSuchStream(u16),
    /// A message was delivered with another length or content.
    #[error("stream {stream}: message {message} came out altered")]
    Altered {
        /// The stream.
        stream: u16,
        /// The message's number in the stream, modulo 2^32.
        message: u32,
    },
    /// A rule on the counters of the transport is violated.
    #[error("{0}")]
    Counters(String),
}
