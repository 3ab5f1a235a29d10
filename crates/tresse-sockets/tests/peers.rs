//! Peers that do what tresse's sockets never would: the test is the other end, at a UDP port of its own.

#![cfg(target_os = "linux")]

mod common;

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant as Clock};

use common::{compiled, udp_port};
use tresse_proto::{
    AssociationConfig, AssociationId, Connect, Datagram, Ecn, Endpoint, EndpointConfig, Event, Instant,
    SendOptions,
};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const BESIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const PORT: u16 = 7;

/// An endpoint of the core around a UDP socket for each of its addresses.
struct Peer {
    endpoint: Endpoint,
    sockets: Vec<(IpAddr, UdpSocket)>,
    started: Clock,
    /// Packets to this address are lost.
    deaf: Option<IpAddr>,
    /// Results of its answers to requests about streams, in place of its own (RFC 6525 §4.4).
    answers: Option<u32>,
    /// The SCTP port and the UDP port of the program.
    program: Option<(u16, u16)>,
    /// The last packet that it sent, and to which UDP port.
    sent: Option<(Vec<u8>, u16)>,
    /// The association of the last event.
    latest: Option<AssociationId>,
}

fn endpoint(addresses: &[IpAddr], config: AssociationConfig, seed: u8) -> Endpoint {
    let settings = EndpointConfig::listening(PORT);
    let mut endpoint = Endpoint::new(settings, config, [seed; 32]).expect("sound settings");
    endpoint.set_local_addresses(addresses.to_vec());
    endpoint
}

impl Peer {
    fn new(addresses: &[IpAddr]) -> Self {
        let port: u16 = udp_port().parse().expect("a number");
        let bound = |&address| (address, UdpSocket::bind((address, port)).expect("nobody else has it"));
        let sockets: Vec<(IpAddr, UdpSocket)> = addresses.iter().map(bound).collect();
        for (_, socket) in &sockets {
            socket.set_read_timeout(Some(Duration::from_millis(10))).expect("a socket");
        }
        let endpoint = endpoint(addresses, AssociationConfig::default(), 7);
        Peer {
            endpoint,
            sockets,
            started: Clock::now(),
            deaf: None,
            answers: None,
            program: None,
            sent: None,
            latest: None,
        }
    }

    fn port(&self) -> u16 {
        self.sockets[0].1.local_addr().expect("bound").port()
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// Takes what comes for a moment, and answers; the events that this brought, and the messages.
    fn turn(&mut self) -> (Vec<Event>, Vec<String>) {
        let mut room = [0; 65_536];
        for (local, socket) in &self.sockets {
            let Ok((len, from)) = socket.recv_from(&mut room) else { continue };
            if len < 12 || self.deaf == Some(*local) {
                continue;
            }
            let (local, port) = (*local, from.port());
            self.program = Some((u16::from_be_bytes([room[0], room[1]]), port));
            let datagram = Datagram {
                local,
                remote: HERE,
                encapsulation_port: Some(port),
                ecn: Ecn::NotEct,
                payload: room[..len].to_vec().into(),
            };
            self.endpoint
                .handle_datagram(Instant::from_nanos(self.started.elapsed().as_nanos() as u64), datagram);
        }
        let now = self.now();
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        let (mut events, mut messages) = (Vec::new(), Vec::new());
        while let Some((id, event)) = self.endpoint.poll_event() {
            if event == Event::Readable {
                let mut association = self.endpoint.association(id).expect("it has messages");
                while let Some(message) = association.recv(now) {
                    messages.push(String::from_utf8_lossy(&message.payload.into_bytes()).into_owned());
                }
            }
            events.push(event);
            self.latest = Some(id);
        }
        let mut out = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now, 1, &mut out) {
            let port = transmit.encapsulation_port.expect("in UDP");
            if let Some(result) = self.answers {
                answer_with(result, &mut out);
            }
            let from = self.sockets.iter().find(|(address, _)| *address == transmit.local);
            from.expect("an own address").1.send_to(&out, (transmit.remote, port)).expect("sent");
            self.sent = Some((std::mem::take(&mut out), port));
        }
        (events, messages)
    }

    /// Loses its memory, and sets the association up again, with fewer streams.
    fn restart(&mut self) {
        let (remote_port, port) = self.program.expect("it has written");
        let config = AssociationConfig::default().with(|c| c.outbound_streams = 3);
        self.endpoint = endpoint(&[HERE], config.clone(), 8);
        let now = self.now();
        let connect = Connect::new(vec![HERE], vec![HERE], remote_port, config)
            .with(|c| c.encapsulation_port = Some(port));
        self.endpoint.connect(now, connect).expect("sound settings");
    }

    /// Sends this chunk in a packet of the association that it talked to last.
    fn inject(&self, chunk: &[u8]) {
        let (last, port) = self.sent.as_ref().expect("it has sent something");
        let mut packet = [&last[..8], &[0; 4], chunk].concat();
        tresse_wire::seal(&mut packet);
        self.sockets[0].1.send_to(&packet, (HERE, *port)).expect("sent");
    }
}

/// Puts another result into the first answer of a RE-CONFIG chunk with which `packet` begins, if it does.
fn answer_with(result: u32, packet: &mut [u8]) {
    /// The types of the chunk, and of the parameter, whose result is behind its header and a sequence number (RFC 6525 §3.1, §4.4).
    const RECONFIG: u8 = 130;
    const RESPONSE: [u8; 2] = [0, 16];
    if packet.len() >= 28 && packet[12] == RECONFIG && packet[16..18] == RESPONSE {
        packet[24..28].copy_from_slice(&result.to_be_bytes());
        tresse_wire::seal(packet);
    }
}

fn started(program: &'static str, peer: &Peer, words: &[&str]) -> Child {
    Command::new("timeout")
        .arg("120")
        .arg(compiled(program))
        .arg(peer.port().to_string())
        .args(words)
        .env("TRESSE_UDP_PORT", udp_port())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it starts")
}

/// Is the peer until the program ends, and does what `act` does about what happens.
fn serve(peer: &mut Peer, mut child: Child, mut act: impl FnMut(&mut Peer, &[Event], &[String])) {
    let status = loop {
        let (events, messages) = peer.turn();
        act(peer, &events, &messages);
        if let Some(status) = child.try_wait().expect("it was started") {
            break status;
        }
    };
    assert!(status.success(), "{status}");
}

#[test]
fn an_error_of_the_peer_is_told_and_ends_nothing() {
    let mut peer = Peer::new(&[HERE]);
    let child = started("remote_error", &peer, &[]);
    serve(&mut peer, child, |peer, events, _| {
        if events.iter().any(|event| matches!(event, Event::Established { .. })) {
            // ERROR with the cause "invalid stream identifier", stream 0x1234.
            peer.inject(&[9, 0, 0, 12, 0, 1, 0, 8, 0x12, 0x34, 0, 0]);
        }
    });
}

/// The program reads nothing until the association has ended.
#[test]
fn errors_of_the_peer_that_nobody_reads_are_dropped_beyond_half_the_receive_buffer() {
    let mut peer = Peer::new(&[HERE]);
    let child = started("remote_errors", &peer, &[]);
    // ERROR with the cause "protocol violation", and what it is about.
    let mut error = vec![9, 0, 0x03, 0xec, 0, 13, 0x03, 0xe8];
    error.resize(1004, b'x');
    let (mut up, mut enough) = (false, false);
    serve(&mut peer, child, |peer, events, messages| {
        up |= events.iter().any(|event| matches!(event, Event::Established { .. }));
        if up && !enough {
            (0..20).for_each(|_| peer.inject(&error));
        }
        if messages.iter().any(|word| word == "enough") {
            enough = true;
            let (now, id) = (peer.now(), peer.latest.expect("it has events"));
            let mut association = peer.endpoint.association(id).expect("it is up");
            association.send(now, SendOptions::default(), "over".into()).expect("it has room");
            association.shutdown(now);
        }
    });
    assert!(enough);
}

/// What it denies by itself, so that nothing changes at its end either, it says to have failed at.
#[test]
fn requests_that_the_peer_fails_at_are_told_as_such() {
    const WRONG_SSN: u32 = 3;
    let mut peer = Peer::new(&[HERE]);
    let denies = AssociationConfig::default().with(|c| {
        c.accept_stream_resets = false;
        c.accept_association_resets = false;
        c.accept_added_streams = false;
    });
    peer.endpoint = endpoint(&[HERE], denies, 7);
    peer.answers = Some(WRONG_SSN);
    let child = started("reset_failures", &peer, &[]);
    let mut heard = Vec::new();
    serve(&mut peer, child, |_, _, messages| heard.extend_from_slice(messages));
    assert_eq!(heard, ["bye"]);
}

#[test]
fn a_peer_that_restarts_is_told_and_the_association_goes_on() {
    let mut peer = Peer::new(&[HERE]);
    let child = started("peer_changes", &peer, &["restart"]);
    let mut heard = Vec::new();
    serve(&mut peer, child, |peer, _, messages| {
        heard.extend_from_slice(messages);
        if messages.iter().any(|word| word == "restart") {
            peer.restart();
        }
    });
    assert_eq!(heard, ["restart", "done"]);
}

/// The peer's second address is deaf for as long as the program wants.
fn falls_silent(program: &str) {
    let mut peer = Peer::new(&[HERE, BESIDE]);
    let child = started("peer_changes", &peer, &[program]);
    let mut heard = Vec::new();
    serve(&mut peer, child, |peer, _, messages| {
        heard.extend_from_slice(messages);
        for word in messages {
            peer.deaf = (word == "deaf").then_some(BESIDE);
        }
    });
    assert_eq!(heard, ["hello", "deaf", "hear", "done"]);
}

#[test]
fn an_address_of_the_peer_is_confirmed_falls_silent_and_comes_back() {
    falls_silent("paths");
}

#[test]
fn doubts_that_a_program_does_not_hear_of_do_not_end_for_it_either() {
    falls_silent("doubts");
}
