//! Taps of an endpoint, which get every packet as it leaves or arrives, and the state of its associations.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tresse_proto::{AssociationStats, Ecn, PathStats};

use crate::association_id::AssociationId;

/// A watcher of all drivers of an endpoint.
pub(crate) type SharedTap = Arc<Mutex<Box<dyn Tap>>>;

/// Watches an endpoint ([`Endpoint::watch`](crate::Endpoint::watch)).
///
/// It is called by the task that moves packets, which waits for it. Times count from when the endpoint was bound.
pub trait Tap: Send {
    /// A packet leaves: it is handed to the system, which may refuse it.
    fn on_sent(&mut self, at: Duration, packet: &Tapped<'_>);

    /// A packet arrived, whoever it is for.
    fn on_received(&mut self, at: Duration, packet: &Tapped<'_>);

    /// An association and its paths, after packets arrived or left.
    fn on_state(
        &mut self,
        at: Duration,
        id: AssociationId,
        association: &AssociationStats,
        paths: &[PathStats],
    );
}

/// A packet between this host and another.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Tapped<'a> {
    /// The own address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// The peer's UDP port; `None` over raw IP.
    pub udp_port: Option<u16>,
    /// The ECN codepoint of its IP header.
    pub ecn: Ecn,
    /// The SCTP packet. With encryption all but its header is for the two hosts only.
    pub packet: &'a [u8],
}
