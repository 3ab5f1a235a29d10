//! Script of a simulation: the paths, each host's settings, and acts in the order of their times.
//!
//! Owns the kinds of acts and their text form. Independent of `draw` and `world`, so a script from a file runs in the
//! same way as a drawn script.

mod text;

use std::time::Duration;

use tresse_proto::{AddressChange, AssociationConfig, ConfigError, Direction, EndpointConfig, Reliability};

pub use text::ScriptError;

/// Complete input of a simulation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// Seed of all random choices of endpoints and links.
    pub seed: u64,
    /// The paths between the hosts; path `i` connects the `i`th addresses of both.
    pub paths: Vec<PathPlan>,
    /// Settings of client and server.
    pub hosts: [HostPlan; 2],
    /// Acts, in the order of their times.
    pub acts: Vec<Act>,
}

/// One of the two hosts. Either can open an association.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Host {
    /// The host that usually opens the association.
    Client,
    /// The other host.
    Server,
}

/// A path with the same properties in both directions.
#[derive(Clone, PartialEq, Debug)]
pub struct PathPlan {
    /// Rate in bits per second.
    pub rate: u64,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Most packets in the queue of the link.
    pub queue: u32,
    /// Probability that a packet is marked at a full queue, in proportion to the queue length. A packet that cannot be
    /// marked is dropped instead.
    pub marks: f64,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub twice: f64,
    /// Probability that a packet is delayed, and its additional delay.
    pub late: Option<(f64, Duration)>,
    /// Bit error rate: the probability of each bit to be flipped.
    pub damage: f64,
    /// Path MTU in bytes; `None` for no limit.
    pub mtu: Option<u32>,
    /// True if the addresses are IPv6 addresses.
    pub ipv6: bool,
}

/// Settings of a host, as names and values of switches; `preset` may come first. Two switches do not belong to the core. With
/// `wrap_in`, the first TSN of the host's associations is so many TSNs before the wrap, until the host restarts. With
/// `messages_wrap_in`, the first message that the host sends on each stream is so many messages before the wrap of SSNs and MIDs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostPlan {
    /// Names of switches of the association or the endpoint, with values in their text form.
    pub switches: Vec<(String, String)>,
}

/// A deed and its time.
#[derive(Clone, PartialEq, Debug)]
pub struct Act {
    /// Time from the start.
    pub at: Duration,
    /// The deed.
    pub deed: Deed,
}

/// Deed of an application, of the network or of an off-path attacker.
#[derive(Clone, PartialEq, Debug)]
pub enum Deed {
    /// The application of a host acts.
    Host(Host, Move),
    /// A property of a path changes.
    Path {
        /// Index of the path.
        path: u8,
        /// Sender of the packets that the change affects; `None` for both directions.
        from: Option<Host>,
        /// The change.
        change: Change,
    },
    /// A packet that was sent before is delivered once more.
    Replay {
        /// Receiver of the packet.
        to: Host,
        /// Number of packets to this host that were sent after the replayed packet.
        back: u16,
    },
    /// A packet from an off-path attacker, who knows addresses and ports but not the verification tag.
    Forge {
        /// Receiver of the packet.
        to: Host,
        /// Kind of the packet.
        what: Forgery,
    },
}

/// Deed of an application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Move {
    /// Opens an association, if none is open.
    Connect {
        /// Number of the peer's addresses that the initiator knows.
        addresses: u8,
    },
    /// Sends messages. Messages that do not fit in the send buffer wait in the application.
    Send {
        /// Bytes of each message.
        len: u32,
        /// The stream, taken modulo the number of negotiated streams.
        stream: u16,
        /// True for unordered messages.
        unordered: bool,
        /// Reliability of the messages.
        reliability: Reliability,
        /// Number of messages.
        times: u16,
    },
    /// The application stops reading.
    Pause,
    /// The application reads again.
    Resume,
    /// Shuts the association down gracefully.
    Shutdown,
    /// Aborts the association.
    Abort,
    /// The host restarts and loses all its state.
    Restart,
    /// Makes a path the primary path.
    Primary {
        /// Index of the path.
        path: u8,
    },
    /// Changes a local address while the association exists.
    Address {
        /// Change of the address.
        change: AddressChange,
        /// Index of the path of the address.
        path: u8,
    },
    /// Selects a stream scheduler.
    Scheduler {
        /// Name of the scheduler.
        name: String,
    },
    /// Resets a stream, or all streams (RFC 6525).
    Reset {
        /// The stream, taken modulo the number of negotiated streams; `None` for all streams.
        stream: Option<u16>,
        /// Direction of the reset.
        direction: Direction,
    },
    /// Resets all SSNs and TSNs of the association (RFC 6525 §4.3).
    ResetAssociation,
    /// Adds streams.
    AddStreams {
        /// Number of streams to add for this side to send on.
        outbound: u16,
        /// Number of streams to add for the peer to send on.
        inbound: u16,
    },
    /// Selects another of the shared keys that both sides have for AUTH.
    UseKey {
        /// Identifier of the shared key.
        number: u16,
    },
    /// Changes to new encryption keys, or requests that from the peer.
    Rekey,
}

/// Change of a path; values that are `None` stay the same.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// True if an outage begins, false if it ends.
    pub out: Option<bool>,
    /// Probability of loss.
    pub loss: Option<f64>,
    /// Propagation delay.
    pub delay: Option<Duration>,
    /// Rate in bits per second.
    pub rate: Option<u64>,
    /// Path MTU in bytes.
    pub mtu: Option<u32>,
}

/// Packet of an off-path attacker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Forgery {
    /// An INIT.
    Init,
    /// A COOKIE ECHO with a random cookie.
    Cookie,
    /// DATA with a random verification tag.
    Data,
    /// An ABORT with a random verification tag.
    Abort,
    /// A SHUTDOWN ACK with a random verification tag.
    ShutdownAck,
    /// Random bytes behind a valid common header.
    Noise,
}

impl Host {
    /// Both hosts.
    pub const BOTH: [Host; 2] = [Host::Client, Host::Server];

    /// Returns the index of the host.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the other host.
    pub fn peer(self) -> Host {
        match self {
            Host::Client => Host::Server,
            Host::Server => Host::Client,
        }
    }

    /// Returns the name that scripts use.
    pub fn name(self) -> &'static str {
        match self {
            Host::Client => "client",
            Host::Server => "server",
        }
    }
}

impl HostPlan {
    /// Returns the settings that result from the switches.
    ///
    /// # Errors
    /// An unknown switch, or a value that it does not accept.
    pub fn settings(&self) -> Result<(AssociationConfig, EndpointConfig), ConfigError> {
        let (mut association, mut endpoint) = (AssociationConfig::default(), EndpointConfig::default());
        for (name, value) in &self.switches {
            match name.as_str() {
                "preset" => association = AssociationConfig::preset(value)?,
                WRAP_IN | MESSAGES_WRAP_IN => read_wrap(name, value).map(drop)?,
                name if EndpointConfig::names().any(|known| known == name) => endpoint.set(name, value)?,
                name => association.set(name, value)?,
            }
        }
        Ok((association, endpoint))
    }

    /// Returns the number of TSNs before the wrap; `None` for a random first TSN.
    pub fn wrap_in(&self) -> Option<u32> {
        self.wrap(WRAP_IN)
    }

    /// Returns the number of messages on each stream before the wrap of SSNs and MIDs; `None` if they begin at 0.
    pub fn messages_wrap_in(&self) -> Option<u32> {
        self.wrap(MESSAGES_WRAP_IN)
    }

    fn wrap(&self, what: &str) -> Option<u32> {
        let (name, value) = self.switches.iter().rfind(|(name, _)| name == what)?;
        read_wrap(name, value).ok()
    }
}

const WRAP_IN: &str = "wrap_in";
const MESSAGES_WRAP_IN: &str = "messages_wrap_in";

fn read_wrap(name: &str, value: &str) -> Result<u32, ConfigError> {
    value.parse().map_err(|_| ConfigError::BadValue {
        name: name.to_owned(),
        value: value.to_owned(),
        accepted: "a whole number of them".to_owned(),
    })
}

/// Changes of addresses, with the names that scripts use.
pub(crate) const ADDRESS_CHANGES: [(AddressChange, &str); 3] = [
    (AddressChange::Add, "add_address"),
    (AddressChange::Remove, "remove_address"),
    (AddressChange::Prefer, "prefer_address"),
];

impl Forgery {
    /// All kinds, with the names that scripts use.
    pub const ALL: [(Forgery, &'static str); 6] = [
        (Forgery::Init, "init"),
        (Forgery::Cookie, "cookie"),
        (Forgery::Data, "data"),
        (Forgery::Abort, "abort"),
        (Forgery::ShutdownAck, "shutdown_ack"),
        (Forgery::Noise, "noise"),
    ];
}

impl Script {
    /// Returns the acts of `host`'s application, each with its time.
    pub fn moves(&self, host: Host) -> impl Iterator<Item = (Duration, &Move)> {
        self.acts.iter().filter_map(move |act| match &act.deed {
            Deed::Host(of, what) if *of == host => Some((act.at, what)),
            _ => None,
        })
    }

    /// Returns the bytes of user data that applications send; 100 bytes for each message are added for headers.
    pub fn payload(&self) -> u64 {
        let of_move = |what: &Move| match what {
            Move::Send { len, times, .. } => u64::from(*len + 100) * u64::from(*times),
            _ => 0,
        };
        Host::BOTH.into_iter().flat_map(|host| self.moves(host)).map(|(_, what)| of_move(what)).sum()
    }

    /// Returns the time of the last act.
    pub fn end(&self) -> Duration {
        self.acts.last().map_or(Duration::ZERO, |act| act.at)
    }
}
