//! Request for an association.

use std::net::IpAddr;
use std::time::Duration;

use crate::config::AssociationConfig;

/// Addresses and settings of an association to be set up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connect {
    /// Own addresses.
    pub local: Vec<IpAddr>,
    /// The peer's addresses; the first is the primary one.
    pub remote: Vec<IpAddr>,
    /// The peer's SCTP port.
    pub remote_port: u16,
    /// The peer's UDP port for encapsulation (RFC 6951); `None` takes the endpoint's `encapsulation_port`.
    pub encapsulation_port: Option<u16>,
    /// Largest RTO of INIT and COOKIE ECHO, instead of the setting `rto_max` (RFC 6458 §5.3.1).
    pub setup_rto_max: Option<Duration>,
    /// Settings of this association.
    pub config: AssociationConfig,
}

impl Connect {
    /// Creates a request for an association between these addresses, to the SCTP port `remote_port`, with the endpoint's UDP
    /// encapsulation.
    pub fn new(local: Vec<IpAddr>, remote: Vec<IpAddr>, remote_port: u16, config: AssociationConfig) -> Self {
        Connect { local, remote, remote_port, encapsulation_port: None, setup_rto_max: None, config }
    }

    /// Returns this request, changed by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
