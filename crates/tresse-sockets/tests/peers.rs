//! Peers that do what tresse's sockets never would: the test is the other end, at a UDP port of its own.

#![cfg(target_os = "linux")]

mod common;

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant as Clock};

use common::{compiled, udp_port};
use tresse_proto::{AssociationConfig, Datagram, Ecn, Endpoint, EndpointConfig, Event, Instant};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 7;

/// An endpoint of the core around a UDP socket.
struct Peer {
    endpoint: Endpoint,
    socket: UdpSocket,
    started: Clock,
    /// The last packet that it sent, and to which UDP port.
    sent: Option<(Vec<u8>, u16)>,
}

impl Peer {
    fn new() -> Self {
        let socket = UdpSocket::bind((HERE, 0)).expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(10))).expect("a socket");
        let config = EndpointConfig { port: PORT, listen: true, ..EndpointConfig::default() };
        let mut endpoint =
            Endpoint::new(config, AssociationConfig::default(), [7; 32]).expect("sound settings");
        endpoint.set_local_addresses(vec![HERE]);
        Peer { endpoint, socket, started: Clock::now(), sent: None }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().expect("bound").port()
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// Takes what comes for a moment, and answers; the events that this brought.
    fn turn(&mut self) -> Vec<Event> {
        let mut room = [0; 65_536];
        if let Ok((len, from)) = self.socket.recv_from(&mut room) {
            let payload = room[..len].to_vec().into();
            let port = Some(from.port());
            let now = self.now();
            let datagram =
                Datagram { local: HERE, remote: HERE, encapsulation_port: port, ecn: Ecn::NotEct, payload };
            self.endpoint.handle_datagram(now, datagram);
        }
        let now = self.now();
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        let mut out = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now, 1, &mut out) {
            let port = transmit.encapsulation_port.expect("in UDP");
            self.socket.send_to(&out, (HERE, port)).expect("sent");
            self.sent = Some((std::mem::take(&mut out), port));
        }
        std::iter::from_fn(|| self.endpoint.poll_event().map(|(_, event)| event)).collect()
    }

    /// Sends this chunk in a packet of the association that it talked to last.
    fn inject(&self, chunk: &[u8]) {
        let (last, port) = self.sent.as_ref().expect("it has sent something");
        let mut packet = [&last[..8], &[0; 4], chunk].concat();
        tresse_wire::seal(&mut packet);
        self.socket.send_to(&packet, (HERE, *port)).expect("sent");
    }
}

fn started(program: &'static str, peer: &Peer) -> Child {
    Command::new("timeout")
        .arg("60")
        .arg(compiled(program))
        .arg(peer.port().to_string())
        .env("TRESSE_UDP_PORT", udp_port())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it starts")
}

#[test]
fn an_error_of_the_peer_is_told_and_ends_nothing() {
    let mut peer = Peer::new();
    let mut child = started("remote_error", &peer);
    let status = loop {
        for event in peer.turn() {
            if let Event::Established { .. } = event {
                // ERROR with the cause "invalid stream identifier", stream 0x1234.
                peer.inject(&[9, 0, 0, 12, 0, 1, 0, 8, 0x12, 0x34, 0, 0]);
            }
        }
        if let Some(status) = child.try_wait().expect("it was started") {
            break status;
        }
    };
    assert!(status.success(), "{status}");
}
