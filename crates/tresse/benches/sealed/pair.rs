//! Two cores and the key management of each, with a wire that hands over packets in batches as a driver would.

use std::collections::VecDeque;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tresse::security::{Action, KeyManager, Security};
use tresse_proto::config::{Encryption, KeyManagement, KeyRole};
use tresse_proto::{
    AssociationConfig, AssociationHandle, AssociationId, Connect, Datagram, Ecn, Endpoint, EndpointConfig,
    Event, Instant, SendError, SendOptions, StreamId,
};

const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
const PORT: u16 = 5000;
const MTU: usize = 1500;
/// Packets handed over before the other side may answer, as one batched system call would.
const BATCH: usize = 32;
/// What the clock advances with each batch, as on a path of some ten Gbit/s.
const ROUND: Duration = Duration::from_micros(40);
/// Rounds between two looks at the clock.
const ROUNDS_PER_LOOK: usize = 16;
/// Rounds in which a set-up has to be complete.
const PATIENCE: usize = 100;

/// Two connected endpoints.
pub(crate) struct Pair {
    now: Instant,
    ends: [End; 2],
    /// Packets to each end.
    wires: [VecDeque<Bytes>; 2],
}

struct End {
    core: Endpoint,
    association: Option<AssociationId>,
    /// What it is to agree on keys with, and what does so.
    security: Option<Arc<Security>>,
    keys: Option<KeyManager>,
    /// Application data may be sent.
    open: bool,
}

impl Pair {
    /// Two endpoints whose association takes messages: encrypted with `security`, and else in the clear.
    pub(crate) fn connected(security: Option<&Arc<Security>>) -> Result<Self, Box<dyn Error>> {
        let [client, server] = [KeyRole::Client, KeyRole::Server].map(|role| settings(security, role));
        let (client, server) = (client?, server?);
        let now = Instant::ZERO;
        let listening = EndpointConfig::listening(PORT);
        let mut calling = Endpoint::new(EndpointConfig::default(), client.clone(), [1; 32])?;
        let called = Endpoint::new(listening, server, [2; 32])?;
        let connect = Connect::new(vec![ADDRESSES[0]], vec![ADDRESSES[1]], PORT, client);
        calling.connect(now, connect)?;
        let ends = [calling, called].map(|core| End {
            core,
            association: None,
            security: security.cloned(),
            keys: None,
            open: false,
        });
        let mut pair = Pair { now, ends, wires: Default::default() };
        for _ in 0..PATIENCE {
            pair.exchange();
            if pair.ends.iter().all(|end| end.open) {
                return Ok(pair);
            }
        }
        Err("the set-up did not come to an end".into())
    }

    /// Carries messages of `size` for `budget` of the time that `clock` tells; bytes received, and the time it took.
    pub(crate) fn carry(
        &mut self,
        size: usize,
        budget: Duration,
        clock: impl Fn() -> Duration,
    ) -> Result<(u64, Duration), Box<dyn Error>> {
        let (message, begin, mut received) = (Bytes::from(vec![0x5a; size]), clock(), 0);
        loop {
            let before = received;
            for _ in 0..ROUNDS_PER_LOOK {
                let now = self.now;
                self.ends[0].fill(now, &message)?;
                self.exchange();
                received += self.ends[1].drain(now)?;
            }
            let spent = clock() - begin;
            if spent >= budget {
                return Ok((received, spent));
            }
            if received == before {
                let due = self.ends.iter().filter_map(|end| end.core.poll_timeout()).min();
                self.now = due.ok_or("the exchange has stalled: no packet and no timer")?;
            }
        }
    }

    /// A batch in each direction, and what follows from it.
    fn exchange(&mut self) {
        self.now += ROUND;
        let Pair { now, ends: [one, other], wires: [to_one, to_other] } = self;
        one.step(*now, ADDRESSES[0], to_one, to_other);
        other.step(*now, ADDRESSES[1], to_other, to_one);
    }
}

impl End {
    /// Takes a batch of what has arrived, and lets leave what is to.
    fn step(
        &mut self,
        now: Instant,
        here: IpAddr,
        arriving: &mut VecDeque<Bytes>,
        leaving: &mut VecDeque<Bytes>,
    ) {
        let there = if here == ADDRESSES[0] { ADDRESSES[1] } else { ADDRESSES[0] };
        for payload in arriving.drain(..arriving.len().min(BATCH)) {
            let datagram =
                Datagram { local: here, remote: there, encapsulation_port: None, ecn: Ecn::NotEct, payload };
            self.core.handle_datagram(now, datagram);
        }
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle_timeout(now);
        }
        self.hear(now);
        loop {
            let mut buffer = Vec::with_capacity(BATCH * MTU);
            let Some(transmit) = self.core.poll_transmit(now, BATCH, &mut buffer) else { break };
            let mut rest = Bytes::from(buffer);
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            while !rest.is_empty() {
                leaving.push_back(rest.split_to(segment.min(rest.len())));
            }
        }
        self.hear(now);
    }

    fn hear(&mut self, now: Instant) {
        while let Some((id, event)) = self.core.poll_event() {
            match event {
                Event::Established { .. } => {
                    self.association = Some(id);
                    self.open = self.security.is_none();
                }
                Event::ProtectionAgreed(agreed) => {
                    self.keys = self.security.clone().map(|security| KeyManager::new(security, *agreed, now));
                }
                Event::KeyMessage { ppid, data, protected } => {
                    if let Some(keys) = &mut self.keys {
                        keys.handle_message(now, ppid, &data, protected);
                    }
                }
                _ => {}
            }
            self.carry_out(now, id);
        }
    }

    /// Does in the core what the key management asks for. What is refused leaves a set-up without an end.
    fn carry_out(&mut self, now: Instant, id: AssociationId) {
        let Some(keys) = &mut self.keys else { return };
        while let Some(action) = keys.poll_action() {
            let Some(mut association) = self.core.association(id) else { return };
            let done = match action {
                Action::Send { ppid, message } => association.send_key_message(now, ppid, message),
                Action::InstallReceiveKeys(epoch, keys) => association.install_receive_keys(epoch, keys),
                Action::InstallSendKeys(epoch, keys) => association.install_send_keys(now, epoch, keys),
                Action::RequireProtection => {
                    self.open = true;
                    association.require_protection()
                }
                Action::DestroyReceiveKeys(_) | Action::Abort => return,
            };
            if done.is_err() {
                return;
            }
        }
    }

    fn association(&mut self) -> Result<AssociationHandle<'_>, Box<dyn Error>> {
        let open = self.association.and_then(|id| self.core.association(id));
        open.ok_or_else(|| "the association has ended".into())
    }

    /// Queues messages until the send buffer is full.
    fn fill(&mut self, now: Instant, message: &Bytes) -> Result<(), Box<dyn Error>> {
        let mut association = self.association()?;
        loop {
            match association.send(now, SendOptions::on(StreamId(1)), message.clone()) {
                Ok(()) => {}
                Err(SendError::Full { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes all messages that have arrived; their bytes.
    fn drain(&mut self, now: Instant) -> Result<u64, Box<dyn Error>> {
        let mut association = self.association()?;
        let messages = std::iter::from_fn(|| association.recv(now));
        Ok(messages.map(|message| message.payload.len() as u64).sum())
    }
}

fn settings(
    security: Option<&Arc<Security>>,
    key_role: KeyRole,
) -> Result<AssociationConfig, Box<dyn Error>> {
    let mut config = AssociationConfig::default();
    config.set("mtu", &format!("{MTU}B"))?;
    config.set("max_burst", "0")?;
    config.encryption = if security.is_some() { Encryption::Require } else { Encryption::Off };
    (config.key_management, config.key_role) = (KeyManagement::Tls13, key_role);
    Ok(config)
}
