//! The crate `sctp-proto` doing the work of this benchmark.

#![expect(clippy::disallowed_types, reason = "that crate takes the standard library's instants")]

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Payload,
    ServerConfig, Transmit,
};

use crate::Crowd;

/// A client and a server.
pub(crate) struct Pair {
    client: Host,
    server: Host,
    now: Instant,
}

struct Host {
    endpoint: Endpoint,
    /// By handle; boxed, so that room that the vector has in reserve is not room for associations.
    associations: Vec<Option<Box<Association>>>,
    /// The association of the packet under way.
    current: Option<AssociationHandle>,
}

impl Crowd for Pair {
    fn new() -> Result<Self, Box<dyn Error>> {
        let config = Arc::new(EndpointConfig::new());
        Ok(Pair {
            client: Host::new(Endpoint::new(Arc::clone(&config), None)),
            server: Host::new(Endpoint::new(config, Some(Arc::new(ServerConfig::new())))),
            now: Instant::now(),
        })
    }

    fn meet(&mut self, number: u32) -> Result<(), Box<dyn Error>> {
        let [client, server] = [address(10, number), address(11, number)];
        let (handle, association) = self.client.endpoint.connect(ClientConfig::new(), server)?;
        self.client.keep(handle, association);
        self.client.current = Some(handle);
        self.server.current = None;
        loop {
            let sent = hand_over(self.now, &mut self.client, &mut self.server, client)
                + hand_over(self.now, &mut self.server, &mut self.client, server);
            if sent == 0 {
                return Ok(());
            }
        }
    }

    fn established(&mut self) -> usize {
        let open = |host: &Host| host.associations.iter().flatten().filter(|a| !a.is_handshaking()).count();
        open(&self.client).min(open(&self.server))
    }
}

impl Host {
    fn new(endpoint: Endpoint) -> Self {
        Host { endpoint, associations: Vec::new(), current: None }
    }

    fn keep(&mut self, handle: AssociationHandle, association: Association) {
        let position = usize::from(handle);
        if position >= self.associations.len() {
            self.associations.resize_with(position + 1, || None);
        }
        self.associations[position] = Some(Box::new(association));
    }

    fn current(&mut self) -> Option<&mut Association> {
        self.associations.get_mut(usize::from(self.current?))?.as_deref_mut()
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(transmit) = self.endpoint.poll_transmit() {
            return Some(transmit);
        }
        let handle = self.current?;
        let association = self.associations.get_mut(usize::from(handle))?.as_deref_mut()?;
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                association.handle_event(event);
            }
        }
        while association.poll().is_some() {}
        association.poll_transmit(now)
    }
}

fn hand_over(now: Instant, from: &mut Host, to: &mut Host, source: SocketAddr) -> usize {
    let mut packets = 0;
    while let Some(transmit) = from.poll_transmit(now) {
        let Payload::RawEncode(contents) = transmit.payload else { continue };
        for packet in contents {
            packets += 1;
            // In memory of the receiver's own, as on the side of tresse.
            take(now, to, source, Bytes::copy_from_slice(&packet));
        }
    }
    packets
}

fn take(now: Instant, host: &mut Host, source: SocketAddr, packet: Bytes) {
    match host.endpoint.handle(now, source, None, None, packet) {
        Some((handle, DatagramEvent::NewAssociation(association))) => {
            host.keep(handle, association);
            host.current = Some(handle);
        }
        Some((_, DatagramEvent::AssociationEvent(event))) => {
            if let Some(association) = host.current() {
                association.handle_event(event);
            }
        }
        None => {}
    }
}

/// Host `number` of network `network`.0.0.0/8.
fn address(network: u8, number: u32) -> SocketAddr {
    let [_, high, middle, low] = number.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(network, high, middle, low)), 9899)
}
