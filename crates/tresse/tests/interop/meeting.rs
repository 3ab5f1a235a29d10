//! One association between tresse and a peer, with a relay between them that can lose, reorder and cut, and
//! that sees which chunks either side sends.

use std::net::IpAddr;

use tokio::runtime::{Builder, Runtime};
use tresse::{Association, AssociationConfig, BindError, Endpoint, EndpointConfig, Peer as Remote};

use crate::messages::STREAMS;
use crate::peer::{Callee, Peer, Settings, Stack, Work};
use crate::relay::Relay;

/// How the two are to meet.
#[derive(Clone)]
pub(crate) struct Plan {
    stack: Stack,
    paths: usize,
    /// Whether there is no relay between them.
    direct: bool,
    work: Work,
    extensions: &'static [&'static str],
    settings: AssociationConfig,
}

/// Two that have met.
pub(crate) struct Meeting {
    pub(crate) association: Association,
    pub(crate) peer: Peer,
    pub(crate) relay: Relay,
    plan: Plan,
    host: Host,
    peer_settings: Settings,
}

/// What tresse runs on: it can stop in the middle of everything.
struct Host {
    endpoint: Endpoint,
    runtime: Option<Runtime>,
}

impl Host {
    fn start(plan: &Plan, listen: bool, udp_port: u16) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let entered = runtime.enter();
        let config = EndpointConfig::default().with(|c| {
            c.port = PORT;
            c.listen = listen;
        });
        let bind = || Endpoint::bind(&ours(plan.paths), udp_port, config.clone(), plan.settings.clone());
        // Sockets of a host that has just stopped may take a moment to go.
        let mut bound = bind();
        while matches!(bound, Err(BindError::Io { .. })) && udp_port != 0 {
            std::thread::yield_now();
            bound = bind();
        }
        let endpoint = bound.expect("loopback addresses");
        drop(entered);
        Host { endpoint, runtime: Some(runtime) }
    }

    /// Stops without a word to anybody, as a crash does.
    fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Plan {
    /// On one path, with a peer that counts, and without extensions that a peer has to be told of.
    pub(crate) fn new(stack: Stack) -> Self {
        let mut settings = AssociationConfig::default().with(|c| c.outbound_streams = STREAMS);
        for (name, value) in SETTINGS {
            settings.set(name, value).expect("a switch");
        }
        Plan { stack, paths: 1, direct: false, work: Work::Count, extensions: &[], settings }
    }

    /// On two paths.
    pub(crate) fn on_two_paths(self) -> Self {
        Plan { paths: 2, ..self }
    }

    /// Without the relay, which knows no addresses but the first ones.
    pub(crate) fn directly(self) -> Self {
        Plan { direct: true, ..self }
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

    /// A peer that waits to be called.
    fn peer_settings(&self) -> Settings {
        let place = self.stack.place(self.paths);
        Settings {
            work: self.work,
            local: place.local,
            spare: place.spare,
            udp: place.udp,
            seat: place.seat,
            sctp: PORT,
            call: None,
            streams: STREAMS,
            extensions: self.extensions,
        }
    }

    /// tresse opens the association.
    pub(crate) async fn call(self) -> Meeting {
        let peer_settings = self.peer_settings();
        let mut peer = self.stack.start(&peer_settings);
        peer.says("listening").await;
        let relay = Relay::start(&ours(self.paths), &peer_settings.local, peer_settings.udp).await;
        let host = Host::start(&self, false, 0);
        let association = self.open(&host, &peer_settings, &relay).await;
        peer.says("connected").await;
        Meeting { association, peer, relay, plan: self, host, peer_settings }
    }

    /// The peer opens the association.
    pub(crate) async fn answer(self) -> Meeting {
        let host = Host::start(&self, true, 0);
        let endpoint = &host.endpoint;
        let mut peer_settings = self.peer_settings();
        let relay = Relay::start(&peer_settings.local, &ours(self.paths), endpoint.udp_port()).await;
        let udp = if self.direct { endpoint.udp_port() } else { relay.port() };
        peer_settings.call = Some(Callee { addresses: ours(self.paths), udp, sctp: PORT });
        let mut peer = self.stack.start(&peer_settings);
        let association = endpoint.accept().await.expect("the driver runs");
        peer.says("connected").await;
        Meeting { association, peer, relay, plan: self, host, peer_settings }
    }

    /// Opens an association, through the relay if there is one.
    async fn open(&self, host: &Host, peer: &Settings, relay: &Relay) -> Association {
        let udp = if self.direct { peer.udp } else { relay.port() };
        let remote = Remote::new(peer.local.as_slice(), PORT).with_udp_port(udp);
        host.endpoint.connect(remote).await.expect("the peer answers")
    }
}

impl Meeting {
    /// tresse crashes and opens the association again, from the same addresses and ports.
    pub(crate) async fn restart_tresse(&mut self) {
        let port = self.host.endpoint.udp_port();
        self.host.stop();
        // What the peer sends again to the old association would be answered with ABORT (RFC 9260 §8.4), and the peer would end
        // it before the INIT comes.
        self.relay.gag(&[INIT_ACK, COOKIE_ACK]);
        self.host = Host::start(&self.plan, false, port);
        self.association = self.plan.open(&self.host, &self.peer_settings, &self.relay).await;
        self.relay.gag(&[]);
    }

    /// The peer crashes and opens the association again, from the same addresses and ports.
    pub(crate) async fn restart_peer(&mut self) {
        self.peer.kill();
        self.peer = self.plan.stack.start(&self.peer_settings);
        self.peer.says("connected").await;
    }

    /// tresse's address, of one path, and another that it may have.
    pub(crate) fn own_addresses(&self) -> (IpAddr, IpAddr) {
        let both = ours(2);
        (both[0], both[1])
    }

    /// The peer's first address, and another that it may have.
    pub(crate) fn peer_addresses(&self) -> (IpAddr, IpAddr) {
        (self.peer_settings.local[0], self.peer_settings.spare)
    }

    /// tresse's host gets one more address.
    pub(crate) fn bind(&self, address: IpAddr) {
        self.host.endpoint.add_local_address(address).expect("an address of this host");
    }

    /// Types of the chunks that tresse sent, and of those that the peer sent.
    pub(crate) fn chunks(&self) -> [std::collections::BTreeSet<u8>; 2] {
        let [client, server] = self.relay.chunks();
        if self.peer_settings.call.is_none() { [client, server] } else { [server, client] }
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

/// SCTP port of both sides: pion/sctp calls no other.
const PORT: u16 = 5000;
/// Types of the chunks with which a peer answers a set-up.
const INIT_ACK: u8 = 2;
const COOKIE_ACK: u8 = 11;

/// Losses are part of the tests, and so are hosts that stand still: longer timers would only make them long. A peer that is
/// slow to answer is no lost one.
const SETTINGS: [(&str, &str); 6] = [
    ("rto_initial", "200ms"),
    ("rto_min", "100ms"),
    ("rto_max", "1s"),
    ("path_max_retrans", "2"),
    ("association_max_retrans", "60"),
    ("heartbeat_interval", "1s"),
];
