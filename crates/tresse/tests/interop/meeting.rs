//! One association between tresse and a peer, with a relay between them that can lose, reorder and cut, and
//! that sees which chunks either side sends.

use std::net::IpAddr;

use tresse::{Association, AssociationConfig, Endpoint, EndpointConfig, Peer as Remote};

use crate::messages::STREAMS;
use crate::peer::{Callee, Peer, Settings, Stack, Work, free_port};
use crate::relay::Relay;

/// How the two are to meet.
pub(crate) struct Plan {
    stack: Stack,
    paths: usize,
    work: Work,
    extensions: &'static [&'static str],
    settings: AssociationConfig,
}

/// Two that have met.
pub(crate) struct Meeting {
    pub(crate) association: Association,
    _endpoint: Endpoint,
    pub(crate) peer: Peer,
    pub(crate) relay: Relay,
    /// Whether tresse opened the association.
    called: bool,
}

impl Plan {
    /// On one path, with a peer that counts, and without extensions that a peer has to be told of.
    pub(crate) fn new(stack: Stack) -> Self {
        let mut settings = AssociationConfig { outbound_streams: STREAMS, ..AssociationConfig::default() };
        for (name, value) in SETTINGS {
            settings.set(name, value).expect("a switch");
        }
        Plan { stack, paths: 1, work: Work::Count, extensions: &[], settings }
    }

    /// On two paths.
    pub(crate) fn on_two_paths(self) -> Self {
        Plan { paths: 2, ..self }
    }

    /// With a peer that sends everything back.
    pub(crate) fn echoing(self) -> Self {
        Plan { work: Work::Echo, ..self }
    }

    /// With extensions that the peer speaks only when told so.
    pub(crate) fn telling(self, extensions: &'static [&'static str]) -> Self {
        Plan { extensions, ..self }
    }

    /// With a switch of tresse.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.set(name, value).expect("a switch");
        self
    }

    fn endpoint(&self, listen: bool) -> Endpoint {
        let config = EndpointConfig { port: PORT, listen, ..EndpointConfig::default() };
        Endpoint::bind(&ours(self.paths), 0, config, self.settings.clone()).expect("loopback addresses")
    }

    fn peer_settings(&self, call: Option<Callee>) -> Settings {
        Settings {
            work: self.work,
            local: theirs(self.paths),
            udp: free_port(),
            sctp: PORT,
            call,
            streams: STREAMS,
            extensions: self.extensions,
        }
    }

    /// tresse opens the association.
    pub(crate) async fn call(self) -> Meeting {
        let peer_settings = self.peer_settings(None);
        let mut peer = self.stack.start(&peer_settings);
        peer.says("listening").await;
        let relay = Relay::start(&ours(self.paths), &peer_settings.local, peer_settings.udp).await;
        let endpoint = self.endpoint(false);
        let remote = Remote::new(peer_settings.local.as_slice(), PORT).with_udp_port(relay.port());
        let association = endpoint.connect(remote).await.expect("the peer answers");
        peer.says("connected").await;
        Meeting { association, _endpoint: endpoint, peer, relay, called: true }
    }

    /// The peer opens the association.
    pub(crate) async fn answer(self) -> Meeting {
        let endpoint = self.endpoint(true);
        let relay = Relay::start(&theirs(self.paths), &ours(self.paths), endpoint.udp_port()).await;
        let callee = Callee { addresses: ours(self.paths), udp: relay.port(), sctp: PORT };
        let peer_settings = self.peer_settings(Some(callee));
        let mut peer = self.stack.start(&peer_settings);
        let association = endpoint.accept().await.expect("the driver runs");
        peer.says("connected").await;
        Meeting { association, _endpoint: endpoint, peer, relay, called: false }
    }
}

impl Meeting {
    /// Types of the chunks that tresse sent, and of those that the peer sent.
    pub(crate) fn chunks(&self) -> [std::collections::BTreeSet<u8>; 2] {
        let [client, server] = self.relay.chunks();
        if self.called { [client, server] } else { [server, client] }
    }

    /// Checks that both sides sent chunks of the first type, and neither one of the second.
    pub(crate) fn assert_spoke(&self, spoken: u8, instead_of: u8) {
        for (who, chunks) in ["tresse", "the peer"].into_iter().zip(self.chunks()) {
            assert!(chunks.contains(&spoken), "{who} sent no chunk {spoken}: {chunks:?}");
            assert!(!chunks.contains(&instead_of), "{who} sent chunks {instead_of}: {chunks:?}");
        }
    }
}

fn ours(paths: usize) -> Vec<IpAddr> {
    (1..=paths).map(|position| IpAddr::from([127, 0, 0, position as u8])).collect()
}

fn theirs(paths: usize) -> Vec<IpAddr> {
    (1..=paths).map(|position| IpAddr::from([127, 0, 0, 10 + position as u8])).collect()
}

/// SCTP port of both sides: pion/sctp calls no other.
const PORT: u16 = 5000;

/// Losses are part of the tests; a second for each would only make them long.
const SETTINGS: [(&str, &str); 4] =
    [("rto_initial", "200ms"), ("rto_min", "100ms"), ("path_max_retrans", "2"), ("heartbeat_interval", "1s")];
