//! Peers that set up an association without proving their identity: their number, and the data held for them.

use std::net::{IpAddr, Ipv4Addr};

use tresse_proto::{
    AssociationConfig, AssociationId, Connect, Datagram, Ecn, Endpoint, EndpointConfig, Event,
};

use super::super::keyring::{Keyring, MOST_HELD, MOST_NEWCOMERS};
use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const PORT: u16 = 7;

/// An endpoint without sockets.
struct Host {
    core: Endpoint,
    address: IpAddr,
}

impl Host {
    fn new(address: IpAddr, config: EndpointConfig, keyring: &Keyring) -> Self {
        let template = AssociationConfig::preset("cmt").expect("a preset");
        let template = keyring.require(template.with(|c| c.receive_buffer.0 = 4 << 20));
        let seed = [config.port.to_be_bytes()[1]; 32];
        let mut core = Endpoint::new(config, template, seed).expect("sound");
        core.set_local_addresses(vec![address]);
        Host { core, address }
    }

    /// Returns all packets that are to be sent.
    fn packets(&mut self, now: Instant) -> Vec<Bytes> {
        let mut packets = Vec::new();
        let mut packet = Vec::new();
        while self.core.poll_transmit(now, 1, &mut packet).is_some() {
            packets.push(Bytes::from(std::mem::take(&mut packet)));
        }
        packets
    }

    fn hear(&mut self, now: Instant, packet: Bytes) {
        let (local, remote) = (self.address, if self.address == HERE { THERE } else { HERE });
        let datagram =
            Datagram { local, remote, encapsulation_port: None, ecn: Ecn::NotEct, payload: packet };
        self.core.handle_datagram(now, datagram);
    }
}

/// A listening endpoint with its key management.
struct Server {
    host: Host,
    keyring: Keyring,
    now: Instant,
    /// Associations in the order in which they began, and in which they ended.
    begun: Vec<AssociationId>,
    ended: Vec<AssociationId>,
}

impl Server {
    fn new() -> Self {
        let [_, server] = friends();
        let keyring = Keyring::new(Arc::new(server), true);
        let host = Host::new(THERE, EndpointConfig::listening(PORT), &keyring);
        Server { host, keyring, now: Instant::ZERO, begun: Vec::new(), ended: Vec::new() }
    }

    fn handle_events(&mut self) {
        while let Some((id, event)) = self.host.core.poll_event() {
            match &event {
                Event::ProtectionAgreed(_) => self.begun.push(id),
                Event::Closed(_) => self.ended.push(id),
                _ => {}
            }
            self.keyring.on_event(&mut self.host.core, self.now, (id, false), &event);
        }
    }

    /// Exchanges packets until there are none. Packets of the client for which `lost` returns true do not arrive.
    fn exchange(&mut self, client: &mut Host, lost: impl Fn(&[u8]) -> bool) {
        loop {
            let sent = client.packets(self.now);
            for packet in sent.iter().filter(|packet| !lost(packet)) {
                self.host.hear(self.now, packet.clone());
            }
            self.handle_events();
            let answers = self.host.packets(self.now);
            if sent.is_empty() && answers.is_empty() {
                return;
            }
            answers.into_iter().for_each(|packet| client.hear(self.now, packet));
        }
    }

    /// Adds a host that sets up an association without agreeing on keys.
    fn meet_stranger(&mut self, port: u16) -> (Host, AssociationId) {
        let [stranger, _] = friends();
        let keyring = Keyring::new(Arc::new(stranger), false);
        let config = EndpointConfig::default().with(|c| c.port = port);
        let mut client = Host::new(HERE, config, &keyring);
        let template = client.core.template().clone();
        let connect = Connect::new(vec![HERE], vec![THERE], PORT, template);
        let id = client.core.connect(self.now, connect).expect("it may");
        self.exchange(&mut client, |_| false);
        (client, id)
    }
}

#[test]
fn the_oldest_of_too_many_strangers_gives_its_place_up() {
    let mut server = Server::new();
    for number in 0..MOST_NEWCOMERS {
        server.meet_stranger(1000 + number as u16);
    }
    assert_eq!((server.begun.len(), server.ended.len()), (MOST_NEWCOMERS, 0));
    server.meet_stranger(999);
    assert_eq!(server.ended, server.begun[..1]);
    assert_eq!(server.keyring.fault(server.begun[0]), Some(&SecurityFault::NoAnswer));
    // The place of a removed association is free.
    server.keyring.forget(server.begun[1]);
    server.meet_stranger(998);
    assert_eq!(server.ended.len(), 1);
}

/// Returns the TSN of the first DATA or I-DATA chunk of a packet.
fn first_tsn(packet: &[u8]) -> Option<u32> {
    let mut rest = packet.get(12..)?;
    while let [kind, _, high, low, tsn @ ..] = rest {
        if matches!(kind, 0 | 64) {
            return Some(u32::from_be_bytes(tsn.get(..4)?.try_into().ok()?));
        }
        let len = usize::from(u16::from_be_bytes([*high, *low])).next_multiple_of(4);
        rest = rest.get(len.max(4)..)?;
    }
    None
}

#[test]
fn a_stranger_has_no_more_held_than_an_agreement_takes() {
    let mut server = Server::new();
    let (mut client, id) = server.meet_stranger(1000);
    let there = server.begun[0];
    for _ in 0..20 {
        let mut association = client.core.association(id).expect("it is set up");
        let message = Bytes::from(vec![0; 60_000]);
        association.send_key_message(server.now, KEY_MANAGEMENT, message).expect("it is taken");
    }
    let first = std::cell::Cell::new(None);
    // No message is deliverable as long as the first chunk is missing.
    let lost = |packet: &[u8]| {
        let tsn = first_tsn(packet);
        first.set(first.get().or(tsn));
        tsn.is_some() && tsn == first.get()
    };
    let mut most = 0;
    for _millisecond in 0..20_000 {
        server.now += Duration::from_millis(1);
        if client.core.poll_timeout().is_some_and(|due| due <= server.now) {
            client.core.handle_timeout(server.now);
        }
        if server.keyring.poll_timeout().is_some_and(|due| due <= server.now) {
            server.keyring.handle_timeout(&mut server.host.core, server.now);
        }
        if server.host.core.poll_timeout().is_some_and(|due| due <= server.now) {
            server.host.core.handle_timeout(server.now);
        }
        let stats = server.host.core.association(there).and_then(|one| one.stats(server.now));
        most = most.max(stats.map_or(0, |stats| stats.receive_buffer_used));
        server.exchange(&mut client, lost);
        if !server.ended.is_empty() {
            break;
        }
    }
    assert!(most > MOST_HELD / 2, "the test holds something: {most}");
    assert_eq!(server.ended, [there], "with {most} bytes held");
    assert!(matches!(server.keyring.fault(there), Some(SecurityFault::Broken(_))));
}
