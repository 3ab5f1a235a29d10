//! The crate `sctp-proto` doing the work of this benchmark.

#![expect(clippy::disallowed_types, reason = "that crate takes the standard library's instants")]

use std::collections::VecDeque;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier, ServerConfig, StreamEvent, Transmit, TransportConfig,
};

use crate::pair::{MTU, Side, Stack};

const STREAM: u16 = 0;
/// Of an IPv4 packet with one DATA chunk: IP header, common header, DATA header.
const OVERHEAD: usize = 20 + 12 + 16;
const ADDRESSES: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 9899),
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 9899),
];

/// Two connected endpoints of `sctp-proto`.
pub(crate) struct SctpProto {
    sender: Host,
    receiver: Host,
    now: Instant,
    /// The crate accepts any amount; this is how much the benchmark lets it hold.
    buffer: usize,
    readable: bool,
}

struct Host {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    peer: SocketAddr,
}

impl SctpProto {
    /// Two endpoints after the handshake, with the stream open at the sender; `buffer` bytes to send from and to receive into.
    pub(crate) fn connected(buffer: usize) -> Result<Self, Box<dyn Error>> {
        let mut endpoint_config = EndpointConfig::new();
        endpoint_config.max_payload_size((MTU - OVERHEAD) as u32);
        let endpoint_config = Arc::new(endpoint_config);
        let transport = Arc::new(TransportConfig::default().with_max_receive_buffer_size(buffer as u32));
        let mut server = ServerConfig::new();
        server.transport = Arc::clone(&transport);
        let mut client = ClientConfig::new();
        client.transport = transport;

        let mut endpoint = Endpoint::new(Arc::clone(&endpoint_config), None);
        let association = endpoint.connect(client, ADDRESSES[1])?;
        let mut stack = SctpProto {
            sender: Host { endpoint, association: Some(association), peer: ADDRESSES[1] },
            receiver: Host {
                endpoint: Endpoint::new(endpoint_config, Some(Arc::new(server))),
                association: None,
                peer: ADDRESSES[0],
            },
            now: Instant::now(),
            buffer,
            readable: false,
        };
        stack.shake_hands()?;
        Ok(stack)
    }

    fn shake_hands(&mut self) -> Result<(), Box<dyn Error>> {
        let mut packets = VecDeque::new();
        loop {
            self.poll(Side::Sender, &mut packets);
            packets.drain(..).for_each(|packet| self.deliver(Side::Receiver, packet));
            self.poll(Side::Receiver, &mut packets);
            if packets.is_empty() {
                break;
            }
            packets.drain(..).for_each(|packet| self.deliver(Side::Sender, packet));
        }
        let (_, association) = self.sender.association.as_mut().ok_or("sctp-proto: no association")?;
        if association.is_handshaking() {
            return Err("sctp-proto: the handshake did not complete".into());
        }
        association.open_stream(STREAM, PayloadProtocolIdentifier::Binary)?;
        Ok(())
    }

    fn host(&mut self, side: Side) -> &mut Host {
        match side {
            Side::Sender => &mut self.sender,
            Side::Receiver => &mut self.receiver,
        }
    }
}

impl Stack for SctpProto {
    fn send(&mut self, message: &Bytes) -> Result<bool, Box<dyn Error>> {
        let Some((_, association)) = &mut self.sender.association else { return Ok(false) };
        let mut stream = association.stream(STREAM)?;
        if stream.buffered_amount()? + message.len() > self.buffer {
            return Ok(false);
        }
        stream.write_chunk(message)?;
        Ok(true)
    }

    fn receive(&mut self) -> Result<usize, Box<dyn Error>> {
        if let Some((_, association)) = &mut self.sender.association {
            while association.poll().is_some() {}
        }
        let Some((_, association)) = &mut self.receiver.association else { return Ok(0) };
        while let Some(event) = association.poll() {
            if matches!(event, Event::Stream(StreamEvent::Readable { .. })) {
                self.readable = true;
            }
        }
        let mut bytes = 0;
        if std::mem::take(&mut self.readable) {
            let mut stream = association.stream(STREAM)?;
            while let Some(message) = stream.read()? {
                bytes += message.len();
            }
        }
        Ok(bytes)
    }

    fn poll(&mut self, side: Side, packets: &mut VecDeque<Bytes>) {
        let now = self.now;
        let host = self.host(side);
        let mut queue = |transmit: Transmit| {
            if let Payload::RawEncode(contents) = transmit.payload {
                packets.extend(contents);
            }
        };
        while let Some(transmit) = host.endpoint.poll_transmit() {
            queue(transmit);
        }
        if let Some((handle, association)) = &mut host.association {
            while let Some(event) = association.poll_endpoint_event() {
                if let Some(event) = host.endpoint.handle_event(*handle, event) {
                    association.handle_event(event);
                }
            }
            while let Some(transmit) = association.poll_transmit(now) {
                queue(transmit);
            }
        }
    }

    fn deliver(&mut self, side: Side, packet: Bytes) {
        let now = self.now;
        let host = self.host(side);
        match host.endpoint.handle(now, host.peer, None, None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                host.association = Some((handle, association));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut host.association {
                    association.handle_event(event);
                }
            }
            None => {}
        }
    }

    fn next_timer(&self) -> Option<Duration> {
        let deadline = |host: &Host| host.association.as_ref().and_then(|(_, a)| a.poll_timeout());
        let next = deadline(&self.sender).into_iter().chain(deadline(&self.receiver)).min()?;
        Some(next.saturating_duration_since(self.now))
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        for host in [&mut self.sender, &mut self.receiver] {
            if let Some((_, association)) = &mut host.association
                && association.poll_timeout().is_some_and(|deadline| deadline <= self.now)
            {
                association.handle_timeout(self.now);
            }
        }
    }
}
