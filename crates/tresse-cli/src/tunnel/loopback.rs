//! Two endpoints of this host, for tests.

use std::net::{IpAddr, Ipv4Addr};

use tresse::{AssociationConfig, Endpoint, EndpointConfig, Peer};

/// Returns an endpoint that accepts associations, another one, and the name of the first for the second.
pub(super) fn endpoints() -> (Endpoint, Endpoint, Peer) {
    let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let config = AssociationConfig::preset("cmt").expect("a preset");
    let listening = EndpointConfig::listening(5001);
    let listening = Endpoint::bind(&here, 0, listening, config.clone()).expect("a free port");
    let calling = Endpoint::bind(&here, 0, EndpointConfig::default(), config).expect("a free port");
    let peer = Peer::new(here, 5001).with_udp_port(listening.udp_port());
    (listening, calling, peer)
}
