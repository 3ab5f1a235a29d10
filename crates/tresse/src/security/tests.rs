//! Two sides of the key management connected in memory, with a model of the core's part.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{Instant, Ppid};

use super::{Action, Fingerprint, Identity, KeyManager, Names, Peers, Rekeying, Security, SecurityFault};
use tresse_proto::protection::{Agreed, Epoch, KEY_CONTROL, KEY_MANAGEMENT, RecordKeys, Role};

mod authorities;
mod exchange;
mod failures;
mod newcomers;
mod order;

fn identity() -> Identity {
    Identity::from_pem(Identity::generate_pem().expect("random numbers").as_bytes()).expect("a key")
}

/// Client and server that trust each other.
fn friends() -> [Security; 2] {
    let [client, server] = [identity(), identity()];
    let trusts = |own: &Identity, peer: &Identity| Security::pinned(own, &Peers::new([peer.fingerprint()]));
    [trusts(&client, &server).expect("sound"), trusts(&server, &client).expect("sound")]
}

/// A message in flight: protected with the keys of an epoch, or unprotected.
struct OnItsWay {
    ppid: Ppid,
    message: Bytes,
    epoch: Option<Epoch>,
}

/// One end: the key management, and the core's part in handling keys.
struct End {
    manager: KeyManager,
    sending: Option<(Epoch, RecordKeys)>,
    receiving: BTreeMap<Epoch, RecordKeys>,
    only_sealed: bool,
    aborted: bool,
    outbox: VecDeque<OnItsWay>,
    /// The names of actions, in order.
    log: Vec<String>,
}

impl End {
    fn new(security: Arc<Security>, agreed: Agreed) -> Self {
        let manager = KeyManager::new(security, agreed, Instant::ZERO);
        let mut end = End {
            manager,
            sending: None,
            receiving: BTreeMap::new(),
            only_sealed: false,
            aborted: false,
            outbox: VecDeque::new(),
            log: Vec::new(),
        };
        end.act();
        end
    }

    fn act(&mut self) {
        while let Some(action) = self.manager.poll_action() {
            self.log.push(format!("{action:?}"));
            match action {
                Action::Send { ppid, message } => {
                    let epoch = self.sending.as_ref().map(|(epoch, _)| *epoch);
                    self.outbox.push_back(OnItsWay { ppid, message, epoch });
                }
                Action::InstallReceiveKeys(epoch, keys) => {
                    assert!(self.receiving.insert(epoch, keys).is_none(), "the keys of an epoch twice");
                    assert!(self.receiving.len() <= 2, "three epochs at once");
                }
                Action::InstallSendKeys(epoch, keys) => {
                    assert!(self.sending.as_ref().is_none_or(|(old, _)| old.next() == epoch));
                    self.sending = Some((epoch, keys));
                }
                Action::DestroyReceiveKeys(epoch) => drop(self.receiving.remove(&epoch)),
                Action::RequireProtection => self.only_sealed = true,
                Action::Abort => self.aborted = true,
            }
        }
    }

    /// Processes a message as the core: opens it, or accepts it unprotected as long as that is allowed.
    fn hear(&mut self, now: Instant, heard: &OnItsWay) {
        match heard.epoch {
            Some(epoch) => {
                assert!(self.receiving.contains_key(&epoch), "sealed with keys that are not there")
            }
            None => assert!(!self.only_sealed, "clear, when only sealed messages are taken"),
        }
        self.manager.handle_message(now, heard.ppid, &heard.message, heard.epoch.is_some());
        self.act();
    }
}

/// Both ends and the ordered, reliable stream between them.
struct Pair {
    now: Instant,
    client: End,
    server: End,
}

impl Pair {
    fn new([client, server]: [Security; 2]) -> Self {
        Pair::with_parameters([client, server], [(b"\x80\x06client", b"\x80\x06server"); 2])
    }

    /// Makes a pair with each side's view of the two parameters.
    fn with_parameters([client, server]: [Security; 2], parameters: [(&[u8; 8], &[u8; 8]); 2]) -> Self {
        let agreed = |role, own: &[u8], peer: &[u8]| Agreed {
            role,
            method: 192,
            own_parameter: own.into(),
            peer_parameter: peer.into(),
        };
        let [(of_client, of_server), (at_client, at_server)] = parameters;
        Pair {
            now: Instant::ZERO,
            client: End::new(Arc::new(client), agreed(Role::Client, of_client, of_server)),
            server: End::new(Arc::new(server), agreed(Role::Server, at_server, at_client)),
        }
    }

    /// Returns the ends of one direction: from, to.
    fn ends(&mut self, to_server: bool) -> (&mut End, &mut End) {
        match to_server {
            true => (&mut self.client, &mut self.server),
            false => (&mut self.server, &mut self.client),
        }
    }

    /// Delivers the next message of one direction, if there is one.
    fn step(&mut self, to_server: bool) -> bool {
        let now = self.now;
        let (from, to) = self.ends(to_server);
        let Some(message) = from.outbox.pop_front() else { return false };
        if !to.aborted {
            to.hear(now, &message);
        }
        true
    }

    fn run(&mut self) {
        while self.step(true) || self.step(false) {}
    }

    /// Advances the clock and handles timers until no message and no timer is left.
    fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        loop {
            self.run();
            let ends = [&self.client, &self.server].into_iter().filter(|end| !end.aborted);
            let due = ends.filter_map(|end| end.manager.poll_timeout()).min().filter(|due| *due <= end);
            let Some(due) = due else { break };
            assert!(due >= self.now, "a deadline in the past");
            self.now = due;
            for side in [&mut self.client, &mut self.server] {
                side.manager.handle_timeout(due);
                side.act();
            }
        }
        self.now = end;
    }

    /// Checks that both sides use the keys of this epoch, and that each opens the records of the other.
    fn assert_agreed(&mut self, epoch: u64) {
        let epoch = Epoch(epoch);
        for to_server in [true, false] {
            let (from, to) = self.ends(to_server);
            assert_eq!(to.manager.fault(), None);
            assert!(to.only_sealed && !to.aborted);
            let (sent, sealing) = from.sending.as_mut().expect("send keys");
            assert_eq!(*sent, epoch);
            let opening = to.receiving.get_mut(&epoch).expect("receive keys");
            assert!(opens(sealing, opening));
            assert_eq!(to.manager.epoch(), Some(epoch));
        }
    }
}

/// Returns whether `opening` opens records of `sealing`.
fn opens(sealing: &mut RecordKeys, opening: &mut RecordKeys) -> bool {
    let (mut text, mut tag) = (*b"a record", [0; 16]);
    let header = [0x2b, 0, 7];
    sealing.layer.seal(&sealing.iv, &header, &mut text, &mut tag).expect("it seals");
    assert_ne!(&text, b"a record");
    let sample = [text.as_slice(), &tag[..8]].concat().try_into().expect("16 bytes");
    let masks = sealing.layer.mask(&sample) == opening.layer.mask(&sample);
    masks && opening.layer.open(&opening.iv, &header, &mut text, &tag).is_ok() && &text == b"a record"
}

#[test]
fn the_record_layer_gives_the_published_vector() {
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
    };
    let (key, iv) = (hex("00112233445566778899aabbccddeeff"), hex("deadbeefcafebabe12345678"));
    let sn_key = hex("a1b2c3d4e5f60718293a4b5c6d7e8f90");
    let suite = tresse_proto::protection::Suite::Aes128Gcm;
    let mut keys = super::layer::record_keys(suite, &key, &sn_key, &iv).expect("sound");
    let (mut text, mut tag) = (hex("0b00000417"), [0; 16]);
    keys.layer.seal(&keys.iv, &[0x2b, 0, 0], &mut text, &mut tag).expect("it seals");
    let sealed = [text.as_slice(), &tag].concat();
    assert_eq!(sealed, hex("70211d582fa48edf37fb2b31b21bf88de36e372a64"));
    assert_eq!(keys.layer.mask(&sealed[..16].try_into().expect("16 bytes")), [0x6f, 0xb7]);
    keys.layer.open(&keys.iv, &[0x2b, 0, 0], &mut text, &tag).expect("it opens");
    assert_eq!(text, hex("0b00000417"));
    assert!(super::layer::record_keys(suite, &key[1..], &sn_key, &iv).is_none(), "a key of another length");
}
