//! Script of a simulation: the paths, each host's settings, and acts in the order of their times.
//!
//! Owns the kinds of acts and their text form. Independent of `draw` and `world`, so that a script from a file runs
//! like one that was drawn.

mod text;

use std::time::Duration;

use tresse_proto::{AddressChange, AssociationConfig, ConfigError, Direction, EndpointConfig, Reliability};

pub use text::ScriptError;

/// Complete input of a simulation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// Feeds every random choice of endpoints and links.
    pub seed: u64,
    /// The paths between the hosts; path `i` joins the `i`th address of each.
    pub paths: Vec<PathPlan>,
    /// Settings of client and server.
    pub hosts: [HostPlan; 2],
    /// Acts, in the order of their times.
    pub acts: Vec<Act>,
}

/// One of the two hosts. Either may open an association.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Host {
    /// The one that usually opens the association.
    Client,
    /// The other.
    Server,
}

/// A path, alike in both directions.
#[derive(Clone, PartialEq, Debug)]
pub struct PathPlan {
    /// Bits a second.
    pub rate: u64,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Packets that may wait for the transmitter.
    pub queue: u32,
    /// The longer the queue, the more packets are marked, or dropped where they cannot be; with this probability where it
    /// is full.
    pub marks: f64,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub twice: f64,
    /// Probability that a packet is late, and by how much.
    pub late: Option<(f64, Duration)>,
    /// Probability that a bit is flipped.
    pub damage: f64,
    /// The largest packet that it carries; `None` for any.
    pub mtu: Option<u32>,
    /// True if the addresses are of IPv6.
    pub ipv6: bool,
}

/// Settings of a host, as names and values of switches; `preset` may come first. Two are none of the core's: an association
/// of this host begins `wrap_in` TSNs before they wrap as long as it has not restarted, and what it sends on each stream begins `messages_wrap_in` messages
/// before their SSNs and MIDs do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostPlan {
    /// Names of the association's or the endpoint's switches with values in their text form.
    pub switches: Vec<(String, String)>,
}

/// Act at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Act {
    /// Time from the start.
    pub at: Duration,
    /// Deed.
    pub deed: Deed,
}

/// Deed of an application, of the network or of a host that is not the peer.
#[derive(Clone, PartialEq, Debug)]
pub enum Deed {
    /// An application does something with its association.
    Host(Host, Move),
    /// A path changes.
    Path {
        /// Position of the path.
        path: u8,
        /// Packets of this host are concerned; `None` for both directions.
        from: Option<Host>,
        /// Change of the path.
        change: Change,
    },
    /// A packet seen on the wire is handed in once more.
    Replay {
        /// Host that gets it.
        to: Host,
        /// The packet: so many before the latest one to this host.
        back: u16,
    },
    /// A packet of a stranger who guesses addresses and ports, not tags.
    Forge {
        /// Host that gets it.
        to: Host,
        /// Contents of the packet.
        what: Forgery,
    },
}

/// Deed of an application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Move {
    /// Opens an association, unless there is one.
    Connect {
        /// Number of the peer's addresses that it knows.
        addresses: u8,
    },
    /// Sends messages; what the send buffer does not take waits for room.
    Send {
        /// Bytes of each.
        len: u32,
        /// The stream; taken modulo those that were negotiated.
        stream: u16,
        /// Regardless of order.
        unordered: bool,
        /// Reliability of the messages.
        reliability: Reliability,
        /// Number of messages.
        times: u16,
    },
    /// Stops reading.
    Pause,
    /// Reads again.
    Resume,
    /// Ends the association once everything accepted is delivered.
    Shutdown,
    /// Ends it at once.
    Abort,
    /// The host loses everything and starts anew.
    Restart,
    /// Prefers a path.
    Primary {
        /// Position of the path.
        path: u8,
    },
    /// Changes an own address while the association runs.
    Address {
        /// Change of the address.
        change: AddressChange,
        /// The position of its path.
        path: u8,
    },
    /// Chooses a stream scheduler.
    Scheduler {
        /// Name of the scheduler or controller.
        name: String,
    },
    /// Lets a stream begin anew, or all of them.
    Reset {
        /// The stream, modulo those that were negotiated; `None` for all.
        stream: Option<u16>,
        /// Direction of the streams.
        direction: Direction,
    },
    /// Lets everything be numbered anew.
    ResetAssociation,
    /// Adds streams.
    AddStreams {
        /// Number of streams for this side to send on.
        outbound: u16,
        /// Number of streams for the peer to send on.
        inbound: u16,
    },
    /// Authenticates with another of the keys that both sides have.
    UseKey {
        /// Number of the key.
        number: u16,
    },
    /// Changes to new keys of encryption, or asks the other side to.
    Rekey,
}

/// Change of a path; what is `None` stays.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// True if everything is lost.
    pub out: Option<bool>,
    /// The probability of loss.
    pub loss: Option<f64>,
    /// Propagation delay.
    pub delay: Option<Duration>,
    /// Bits a second.
    pub rate: Option<u64>,
    /// The largest packet.
    pub mtu: Option<u32>,
}

/// Packet of a host that is not the peer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Forgery {
    /// An INIT.
    Init,
    /// A COOKIE ECHO with a cookie of chance.
    Cookie,
    /// DATA with a tag of chance.
    Data,
    /// An ABORT with a tag of chance.
    Abort,
    /// A SHUTDOWN ACK with a tag of chance.
    ShutdownAck,
    /// Bytes of chance behind a valid header.
    Noise,
}

impl Host {
    /// Both hosts.
    pub const BOTH: [Host; 2] = [Host::Client, Host::Server];

    /// Position among the two.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    pub fn peer(self) -> Host {
        match self {
            Host::Client => Host::Server,
            Host::Server => Host::Client,
        }
    }

    /// The name that scripts use.
    pub fn name(self) -> &'static str {
        match self {
            Host::Client => "client",
            Host::Server => "server",
        }
    }
}

impl HostPlan {
    /// The settings that the switches make.
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

    /// Number of TSNs before they wrap; `None` for a random first TSN.
    pub fn wrap_in(&self) -> Option<u32> {
        self.wrap(WRAP_IN)
    }

    /// Number of messages on each stream before their numbers wrap; `None` for numbers from 0 on.
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
    /// All there are, with the names that scripts use.
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
    /// The acts of `host`'s application.
    pub fn moves(&self, host: Host) -> impl Iterator<Item = (Duration, &Move)> {
        self.acts.iter().filter_map(move |act| match &act.deed {
            Deed::Host(of, what) if *of == host => Some((act.at, what)),
            _ => None,
        })
    }

    /// User data that applications want to send, in bytes; each message counts as a small packet at least.
    pub fn payload(&self) -> u64 {
        let of_move = |what: &Move| match what {
            Move::Send { len, times, .. } => u64::from(*len + 100) * u64::from(*times),
            _ => 0,
        };
        Host::BOTH.into_iter().flat_map(|host| self.moves(host)).map(|(_, what)| of_move(what)).sum()
    }

    /// Time of the last act.
    pub fn end(&self) -> Duration {
        self.acts.last().map_or(Duration::ZERO, |act| act.at)
    }
}
