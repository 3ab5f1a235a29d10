//! Two endpoints of this crate doing the work of this benchmark, through the public interface.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{
    AssociationConfig, AssociationId, Connect, Datagram, Endpoint, EndpointConfig, Event, Instant,
};

use crate::Crowd;

const PORT: u16 = 5000;

/// A client and a server.
pub(crate) struct Pair {
    client: Endpoint,
    server: Endpoint,
    now: Instant,
    buffer: Vec<u8>,
    /// Associations that the client set up.
    ids: Vec<AssociationId>,
    /// `Event::Established` on either side, less what closed again.
    established: usize,
}

impl Crowd for Pair {
    fn new() -> Result<Self, Box<dyn Error>> {
        let mut client = EndpointConfig::default();
        client.set("port", "5001")?;
        client.set("max_associations", "1000000")?;
        let mut server = client.clone();
        server.set("port", &PORT.to_string())?;
        server.set("listen", "true")?;
        let config = AssociationConfig::default();
        Ok(Pair {
            client: Endpoint::new(client, config.clone(), [1; 32])?,
            server: Endpoint::new(server, config, [2; 32])?,
            now: Instant::ZERO,
            buffer: Vec::with_capacity(1500),
            ids: Vec::new(),
            established: 0,
        })
    }

    fn meet(&mut self, number: u32) -> Result<(), Box<dyn Error>> {
        let connect = Connect::new(
            vec![address(10, number)],
            vec![address(11, number)],
            PORT,
            AssociationConfig::default(),
        );
        self.ids.push(self.client.connect(self.now, connect)?);
        self.exchange();
        Ok(())
    }

    fn established(&mut self) -> usize {
        let mut open = 0;
        for &id in &self.ids {
            open += usize::from(
                self.client.association(id).is_some_and(|association| association.is_established()),
            );
        }
        open.min(self.established - self.ids.len())
    }
}

impl Pair {
    /// Lets `duration` pass; returns how many packets were sent.
    pub(crate) fn live(&mut self, duration: Duration) -> Result<usize, Box<dyn Error>> {
        let end = self.now + duration;
        let mut packets = 0;
        while let Some(next) =
            [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
            && next <= end
        {
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            packets += self.exchange();
        }
        self.now = end;
        Ok(packets)
    }

    /// Hands packets over until there are none; returns how many.
    fn exchange(&mut self) -> usize {
        let mut packets = 0;
        loop {
            let sent = hand_over(self.now, &mut self.client, &mut self.server, &mut self.buffer)
                + hand_over(self.now, &mut self.server, &mut self.client, &mut self.buffer);
            if sent == 0 {
                break;
            }
            packets += sent;
        }
        for endpoint in [&mut self.client, &mut self.server] {
            while let Some((_, event)) = endpoint.poll_event() {
                match event {
                    Event::Established { .. } => self.established += 1,
                    Event::Closed(_) => self.established -= 1,
                    _ => {}
                }
            }
        }
        packets
    }
}

fn hand_over(now: Instant, from: &mut Endpoint, to: &mut Endpoint, buffer: &mut Vec<u8>) -> usize {
    let mut packets = 0;
    while let Some(transmit) = from.poll_transmit(now, 1, buffer) {
        let datagram = Datagram {
            local: transmit.remote,
            remote: transmit.local,
            encapsulation_port: transmit.encapsulation_port,
            ecn: transmit.ecn,
            payload: Bytes::copy_from_slice(buffer),
        };
        buffer.clear();
        to.handle_datagram(now, datagram);
        packets += 1;
    }
    packets
}

/// Host `number` of network `network`.0.0.0/8.
fn address(network: u8, number: u32) -> IpAddr {
    let [_, high, middle, low] = number.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(network, high, middle, low))
}
