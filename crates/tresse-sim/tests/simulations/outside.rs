//! Endpoints of the core on an emulated network, outside the simulator's own hosts.

use std::net::IpAddr;
use std::ops::Range;

use bytes::Bytes;
use tresse_proto::{
    AssociationConfig, AssociationId, Connect, Datagram, Ecn, Endpoint, EndpointConfig, Event, Instant,
    SendOptions, StreamId,
};
use tresse_sim::{Delivery, Emulation, End};

const MESSAGE: &[u8] = &[7; 1452];

/// Two hosts with an association between them, which sends all it can.
pub(crate) struct Flow {
    ends: [Endpoint; 2],
    /// The paths of the network that it uses.
    paths: Range<usize>,
    association: AssociationId,
    open: bool,
    /// Bytes of user data that have arrived.
    pub(crate) received: u64,
}

fn address(end: usize, path: usize) -> IpAddr {
    [192, 0, 2, (10 * path + end) as u8].into()
}

impl Flow {
    /// Over these paths of the network. What is of chance in it depends on `seed`, and on the paths.
    pub(crate) fn new(config: &AssociationConfig, paths: Range<usize>, seed: u8) -> Self {
        let addresses = |end| paths.clone().map(|path| address(end, path)).collect::<Vec<_>>();
        let endpoint = |listen, port| {
            let settings = EndpointConfig::default().with(|c| {
                c.port = port;
                c.listen = listen;
            });
            let seed = [seed ^ (port as u8) << 4 ^ (paths.start as u8) << 6; 32];
            Endpoint::new(settings, config.clone(), seed).expect("good settings")
        };
        let mut ends = [endpoint(false, 1), endpoint(true, 2)];
        ends[1].set_local_addresses(addresses(1));
        let connect = Connect::new(addresses(0), addresses(1), 2, config.clone());
        let association = ends[0].connect(Instant::ZERO, connect).expect("good addresses");
        Flow { ends, paths, association, open: false, received: 0 }
    }

    /// When it wants to act next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.ends.iter().filter_map(|end| end.poll_timeout()).min()
    }

    /// Takes what came out of one of its paths.
    pub(crate) fn take(&mut self, now: Instant, delivery: Delivery) {
        let end = usize::from(delivery.to == End::Receiver);
        let datagram = Datagram {
            local: address(end, delivery.path),
            remote: address(1 - end, delivery.path),
            encapsulation_port: None,
            ecn: Ecn::NotEct,
            payload: delivery.payload,
        };
        self.ends[end].handle_datagram(now, datagram);
    }

    /// Timers, events, and all that can be sent now.
    pub(crate) fn act(&mut self, now: Instant, network: &mut Emulation<'_>) {
        for end in 0..2 {
            if self.ends[end].poll_timeout().is_some_and(|at| at <= now) {
                self.ends[end].handle_timeout(now);
            }
            while let Some((id, event)) = self.ends[end].poll_event() {
                self.open |= end == 0 && matches!(event, Event::Established { .. });
                let mut association = self.ends[end].association(id).expect("it is told of");
                while let Some(message) = association.recv(now) {
                    self.received += message.payload.len() as u64;
                }
            }
        }
        if self.open {
            let mut association = self.ends[0].association(self.association).expect("it lives");
            let message = || Bytes::from_static(MESSAGE);
            while association.send(now, SendOptions::on(StreamId(0)), message()).is_ok() {}
        }
        for end in 0..2 {
            let mut packet = Vec::new();
            while let Some(transmit) = self.ends[end].poll_transmit(now, 1, &mut packet) {
                let path = self
                    .paths
                    .clone()
                    .find(|path| address(1 - end, *path) == transmit.remote)
                    .expect("a path");
                let from = [End::Sender, End::Receiver][end];
                network.offer(now, path, from, std::mem::take(&mut packet).into());
            }
        }
    }
}
