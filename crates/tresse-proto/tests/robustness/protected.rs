//! Attacks on endpoints that encrypt: by strangers, who have no keys.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_proto::AssociationConfig;
use tresse_proto::config::{Encryption, KeyManagement, KeyRole};
use tresse_proto::protection::Epoch;
use tresse_wire::{Chunk, DataFlags, Dtls, KeyRoles, Param};

use crate::attacks::{ANSWERS, Attack, Honest, Packets, REQUESTS, data};
use crate::victim::{Victim, init, peer};

const OFFER: Param<'static> =
    Param::DtlsKeyManagement { tie_breaker: 1, flags: KeyRoles::CLIENT, methods: &[0] };

/// They cost what they cost an endpoint that does not encrypt.
pub(crate) const ATTACKS: [Attack; 4] = [
    Attack {
        name: "INITs of strangers that offer encryption",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 600,
        requests: REQUESTS,
        make: offers,
    },
    Attack {
        name: "INITs in the clear where encryption is required",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: refused,
    },
    Attack {
        name: "forged records",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: records,
    },
    Attack {
        name: "packets in the clear to an encrypted association",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: clear,
    },
];

fn required() -> Victim {
    Victim::with(AssociationConfig::default().with(|c| {
        c.encryption = Encryption::Require;
        c.key_management = KeyManagement::PreShared;
        c.key_role = KeyRole::Server;
    }))
}

/// With an association that takes nothing but records.
fn encrypted() -> Victim {
    let mut victim = required();
    victim.connect(&init(crate::victim::PEER_TAG, &[OFFER]));
    victim.encrypt();
    victim
}

fn offers(count: usize) -> (Victim, Packets) {
    let packets = (0..count).map(|number| (init(number as u32 + 1, &[OFFER]), peer(number)));
    (required(), packets.collect())
}

fn refused(count: usize) -> (Victim, Packets) {
    let packets = (0..count).map(|number| (init(number as u32 + 1, &[]), peer(number)));
    (required(), packets.collect())
}

fn with_tag(victim: Victim, count: usize, packet: impl Fn(&Victim, usize) -> Bytes) -> (Victim, Packets) {
    let packets: Vec<(Bytes, IpAddr)> = (0..count).map(|number| (packet(&victim, number), peer(0))).collect();
    (victim, packets)
}

fn records(count: usize) -> (Victim, Packets) {
    with_tag(encrypted(), count, |victim, number| {
        let mut record = vec![number as u8; 1400];
        record[0] = 0x28 | Epoch::FIRST.0 as u8 & 3;
        victim.packet(&[Chunk::Dtls(Dtls { restart: false, record: &record })])
    })
}

fn clear(count: usize) -> (Victim, Packets) {
    with_tag(encrypted(), count, |victim, number| {
        victim.packet(&[data(number as u32, 0, number as u16, DataFlags::WHOLE, &[0; 1000])])
    })
}
