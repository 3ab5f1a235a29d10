//! Target for the key management: messages with any content, in both roles. No keys are installed and no peer is
//! accepted without proof of its identity.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tresse::security::{Action, Identity, KeyManager, Peers, Security};
use tresse_proto::protection::{Agreed, KEY_CONTROL, KEY_MANAGEMENT, METHOD_TLS13, Role};
use tresse_proto::{Instant, Ppid};

use crate::source::Source;

/// Security of a side that trusts no peer: no exchange may succeed, no matter what the bytes are.
static SECURITY: LazyLock<Arc<Security>> = LazyLock::new(|| {
    let key = Identity::generate_pem().expect("random numbers");
    let identity = Identity::from_pem(key.as_bytes()).expect("a key");
    Arc::new(Security::pinned(&identity, &Peers::default()).expect("sound"))
});

/// Most bytes that may be sent in answer to each message; as many may be sent before the first message.
const ANSWER: usize = 4_000;

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let role = if source.byte().is_multiple_of(2) { Role::Client } else { Role::Server };
    let (own, peer) = (source.slice(16).into(), source.slice(16).into());
    let agreed = Agreed { role, method: METHOD_TLS13, own_parameter: own, peer_parameter: peer };
    let mut manager = KeyManager::new(Arc::clone(&SECURITY), agreed, Instant::ZERO);
    let (mut now, mut sent, mut messages) = (Instant::ZERO, 0, 1);
    loop {
        while let Some(action) = manager.poll_action() {
            match action {
                Action::Send { message, .. } => sent += message.len(),
                Action::Abort => assert!(manager.fault().is_some(), "an end without a reason"),
                other => panic!("{other:?} for a peer that has proved nothing"),
            }
        }
        assert!(sent <= ANSWER * messages, "{sent} bytes in answer to {messages} messages");
        assert!(manager.peer().is_none() && manager.epoch().is_none());
        if source.is_empty() {
            break;
        }
        let kind = source.byte();
        match kind % 4 {
            0 => {
                now += Duration::from_secs(kind.into());
                manager.handle_timeout(now);
            }
            1 => manager.rekey(now, kind & 4 != 0),
            _ => {
                let ppid = match kind >> 2 & 3 {
                    0 => KEY_CONTROL,
                    1 => Ppid(kind.into()),
                    _ => KEY_MANAGEMENT,
                };
                manager.handle_message(now, ppid, source.slice(600), kind & 64 != 0);
                messages += 1;
            }
        }
    }
}
