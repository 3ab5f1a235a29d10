//! Two endpoints of this crate doing the work of this benchmark, through the public interface.

use std::collections::VecDeque;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{
    AssociationConfig, AssociationId, Connect, Datagram, Ecn, Endpoint, EndpointConfig, Event, Instant,
    Reliability, SendError, SendOptions, StreamId,
};

use crate::pair::{MTU, Side, Stack};

const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 5000;
/// Packets that one call of `poll_transmit` may append.
const POLL: usize = 32;

/// Two connected endpoints.
pub(crate) struct Tresse {
    sender: Host,
    receiver: Host,
    reliability: Reliability,
    now: Instant,
}

struct Host {
    endpoint: Endpoint,
    association: Option<AssociationId>,
    address: IpAddr,
    peer: IpAddr,
}

impl Tresse {
    /// Two endpoints after the handshake; `buffer` bytes to send from and to receive into, for messages of this reliability.
    pub(crate) fn connected(buffer: usize, reliability: Reliability) -> Result<Self, Box<dyn Error>> {
        let mut config = AssociationConfig::default();
        for (switch, value) in [
            ("send_buffer", format!("{buffer}B")),
            ("receive_buffer", format!("{buffer}B")),
            ("mtu", format!("{MTU}B")),
            // The reference has no burst limit.
            ("max_burst", "0".to_owned()),
        ] {
            config.set(switch, &value)?;
        }
        let mut client = EndpointConfig::default();
        client.set("port", "5001")?;
        let mut server = EndpointConfig::default();
        server.set("port", &PORT.to_string())?;
        server.set("listen", "true")?;

        let now = Instant::ZERO;
        let mut sender = Endpoint::new(client, config.clone(), [1; 32])?;
        let receiver = Endpoint::new(server, config.clone(), [2; 32])?;
        let connect = Connect::new(vec![SENDER], vec![RECEIVER], PORT, config);
        let id = sender.connect(now, connect)?;
        let mut stack = Tresse {
            sender: Host { endpoint: sender, association: Some(id), address: SENDER, peer: RECEIVER },
            receiver: Host { endpoint: receiver, association: None, address: RECEIVER, peer: SENDER },
            reliability,
            now,
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
        for host in [&mut self.sender, &mut self.receiver] {
            let established = std::iter::from_fn(|| host.endpoint.poll_event())
                .find_map(|(id, event)| matches!(event, Event::Established { .. }).then_some(id));
            host.association = Some(established.ok_or("tresse: the handshake did not complete")?);
        }
        Ok(())
    }

    fn host(&mut self, side: Side) -> &mut Host {
        match side {
            Side::Sender => &mut self.sender,
            Side::Receiver => &mut self.receiver,
        }
    }
}

impl Stack for Tresse {
    fn send(&mut self, message: &Bytes) -> Result<bool, Box<dyn Error>> {
        let now = self.now;
        let host = &mut self.sender;
        let Some(mut association) = host.association.and_then(|id| host.endpoint.association(id)) else {
            return Err("tresse: the association has ended".into());
        };
        let options = SendOptions::on(StreamId(0)).with(|o| o.reliability = self.reliability);
        match association.send(now, options, message.clone()) {
            Ok(()) => Ok(true),
            Err(SendError::Full { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self) -> Result<usize, Box<dyn Error>> {
        let now = self.now;
        for host in [&mut self.sender, &mut self.receiver] {
            while host.endpoint.poll_event().is_some() {}
        }
        let host = &mut self.receiver;
        let Some(mut association) = host.association.and_then(|id| host.endpoint.association(id)) else {
            return Err("tresse: the association has ended".into());
        };
        let mut bytes = 0;
        while let Some(message) = association.recv(now) {
            bytes += message.payload.len();
        }
        Ok(bytes)
    }

    fn poll(&mut self, side: Side, packets: &mut VecDeque<Bytes>) {
        let now = self.now;
        let host = self.host(side);
        loop {
            let mut buffer = Vec::with_capacity(POLL * MTU);
            let Some(transmit) = host.endpoint.poll_transmit(now, POLL, &mut buffer) else { break };
            let mut rest = Bytes::from(buffer);
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            while !rest.is_empty() {
                packets.push_back(rest.split_to(segment.min(rest.len())));
            }
        }
    }

    fn deliver(&mut self, side: Side, payload: Bytes) {
        let now = self.now;
        let host = self.host(side);
        let datagram = Datagram {
            local: host.address,
            remote: host.peer,
            encapsulation_port: None,
            ecn: Ecn::NotEct,
            payload,
        };
        host.endpoint.handle_datagram(now, datagram);
    }

    fn next_timer(&self) -> Option<Duration> {
        let deadlines = [self.sender.endpoint.poll_timeout(), self.receiver.endpoint.poll_timeout()];
        Some(deadlines.into_iter().flatten().min()?.since(self.now))
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        for host in [&mut self.sender, &mut self.receiver] {
            if host.endpoint.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
                host.endpoint.handle_timeout(self.now);
            }
        }
    }
}
