//! Associations whose packets are protected by DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk-04), with keys that both ends
//! have.

mod attacks;
mod inside;
mod keys;
mod set_up;
mod stalls;

use std::time::Duration;

use tresse_proto::config::{Encryption, KeyManagement, KeyRole};
use tresse_proto::protection::{Agreed, EpochStats, Role};
use tresse_proto::{AssociationConfig, Event};
use tresse_wire::ChunkKind;

use crate::common::{Flight, Pair};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Protection is required, with keys that are there.
fn required() -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.encryption = Encryption::Require;
        c.key_management = KeyManagement::PreShared;
    })
}

/// The same for an end of one role.
fn of_role(key_role: KeyRole) -> AssociationConfig {
    required().with(|c| c.key_role = key_role)
}

/// A protected association over `paths` paths, as its first packets find it.
fn protected(paths: u8, config: &AssociationConfig) -> Pair {
    let mut pair = Pair::established(paths, config);
    assert!(is_protected(&mut pair), "{}", pair.log.join("\n"));
    pair
}

/// Whether both ends take nothing but DTLS chunks.
fn is_protected(pair: &mut Pair) -> bool {
    let required =
        |stats: Option<tresse_proto::protection::ProtectionStats>| stats.is_some_and(|stats| stats.required);
    required(pair.client().protection_stats()) && required(pair.server().protection_stats())
}

/// The statistics of the newest keys of both ends.
fn newest(pair: &mut Pair) -> [EpochStats; 2] {
    [pair.client().protection_stats(), pair.server().protection_stats()]
        .map(|stats| stats.expect("protected").epochs.last().expect("keys").1)
}

/// Sends `count` messages of 3000 bytes from the client, and waits until the server has all of them in order.
fn transfer(pair: &mut Pair, first: u32, count: u32) {
    for number in first..first + count {
        pair.send(0, number, 3000);
    }
    let all = (first + count) as usize;
    pair.run_until(Duration::from_secs(120), |pair| pair.server.received.len() == all);
    assert_eq!(pair.server.numbers_on(0), (0..first + count).collect::<Vec<_>>());
}

fn agreed(events: &[Event]) -> Option<&Agreed> {
    events.iter().rev().find_map(|event| match event {
        Event::ProtectionAgreed(agreed) => Some(&**agreed),
        _ => None,
    })
}

fn role(events: &[Event]) -> Option<Role> {
    agreed(events).map(|agreed| agreed.role)
}

fn in_records(flights: &[Flight]) -> bool {
    flights.iter().all(|flight| flight.kinds() == [ChunkKind::DTLS])
}
