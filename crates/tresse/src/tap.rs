//! Taps of an endpoint, which get every packet at its departure or arrival, and the state of its associations.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tresse_proto::{AssociationStats, Ecn, PathStats};

use crate::association_id::AssociationId;

/// A tap for all drivers of an endpoint.
pub(crate) type SharedTap = Arc<Mutex<Box<dyn Tap>>>;

/// Observer of an endpoint ([`Endpoint::watch`](crate::Endpoint::watch)).
///
/// The driver task calls it and waits until it returns. It must not call methods of the endpoint or of its associations,
/// which wait for the driver: that never returns. A panic ends the driver, and all associations with
/// [`CloseReason::DriverEnded`](crate::CloseReason::DriverEnded). Times count from the binding of the endpoint.
pub trait Tap: Send {
    /// A packet is passed to the system, which may refuse it.
    fn on_sent(&mut self, at: Duration, packet: &Tapped<'_>);

    /// A packet arrived, for any association or none.
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
    /// The address of the peer.
    pub remote: IpAddr,
    /// The peer's UDP port; `None` over raw IP.
    pub udp_port: Option<u16>,
    /// The ECN codepoint of its IP header.
    pub ecn: Ecn,
    /// The SCTP packet. With encryption only the two hosts can read what follows its header.
    pub packet: &'a [u8],
}
