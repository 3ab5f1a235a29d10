//! Attacks by requests about addresses (RFC 5061): of strangers on the path, who know the tag and no key, and of a peer
//! that can prove who it is.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_wire::{Asconf, Auth, Chunk, Param, Params};

use crate::attacks::{ANSWERS, Attack, Honest, Packets, REQUESTS, from_association};
use crate::victim::{PEER_TSN, ROOM, Victim, peer};

/// What a full house of paths costs, each with what it carries and measures.
const PATHS: i64 = 64 * 1024;

pub(crate) const ATTACKS: [Attack; 7] = [
    Attack {
        name: "ASCONFs without an HMAC",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: bare,
    },
    Attack {
        name: "ASCONFs with wrong HMACs from everywhere",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: forged,
    },
    Attack {
        name: "ASCONFs of long lists",
        beside: Honest::Messages,
        most: ANSWERS + PATHS,
        amplification: 200,
        requests: REQUESTS,
        make: lists,
    },
    Attack {
        name: "addresses that come and go",
        beside: Honest::Messages,
        most: ANSWERS + PATHS,
        amplification: 100,
        // Beside the packet and the answer: a list of its partners for an address that comes; for one that goes, a
        // list of what goes, and one of its paths.
        requests: 6 + AT_ONCE * 3 / 2,
        make: changing,
    },
    Attack {
        name: "one ASCONF again and again",
        beside: Honest::Messages,
        most: ANSWERS + PATHS,
        amplification: 200,
        requests: REQUESTS,
        make: repeated,
    },
    Attack {
        name: "ASCONFs of any number",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: leaping,
    },
    Attack {
        name: "requests that nobody knows",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 200,
        requests: REQUESTS,
        make: unknown,
    },
];

/// Requests that a packet has room for beside AUTH and the head of ASCONF, at 16 bytes each.
const MOST_REQUESTS: usize = (ROOM - 64) / 16;

/// Addresses that come or go with one packet; each makes a path or ends one.
const AT_ONCE: usize = 8;

fn serial(number: usize) -> u32 {
    PEER_TSN.0.wrapping_add(number as u32)
}

fn asconf<'a>(serial: u32, params: &'a [Param<'a>]) -> Chunk<'a> {
    Chunk::Asconf(Asconf { serial, address: peer(0), params: Params::Values(params) })
}

/// An address that nobody has named before.
fn fresh(number: usize) -> IpAddr {
    peer(1 + number)
}

fn additions(first: usize, count: usize) -> Vec<Param<'static>> {
    let add = |place| Param::AddAddress { correlation: place as u32, address: fresh(first + place) };
    (0..count).map(add).collect()
}

/// Of a peer that signs, with the right number each time.
fn signed(
    count: usize,
    from: impl Fn(usize) -> IpAddr,
    make: impl Fn(usize) -> (u32, Vec<Param<'static>>),
) -> (Victim, Packets) {
    let (victim, signer) = Victim::authenticated();
    let packet = |number| {
        let (serial, params) = make(number);
        (signer.packet(victim.header(), &[asconf(serial, &params)]), from(number))
    };
    let packets = (0..count).map(packet).collect();
    (victim, packets)
}

fn bare(count: usize) -> (Victim, Packets) {
    let (victim, _) = Victim::authenticated();
    from_association(victim, count, |victim, number| {
        victim.packet(&[asconf(serial(number), &additions(number, MOST_REQUESTS))])
    })
}

/// Each from an address that is not the peer's, so that it may be a move of the peer.
fn forged(count: usize) -> (Victim, Packets) {
    let (victim, _) = Victim::authenticated();
    let packet = |number: usize| -> (Bytes, IpAddr) {
        let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 3, hmac: &[number as u8; 32] });
        let requests = additions(number, MOST_REQUESTS);
        (victim.packet(&[auth, asconf(serial(0), &requests)]), fresh(number))
    };
    let packets = (0..count).map(packet).collect();
    (victim, packets)
}

/// As many addresses as a packet holds: there is place for few of them.
fn lists(count: usize) -> (Victim, Packets) {
    signed(count, |_| peer(0), |number| (serial(number), additions(number * MOST_REQUESTS, MOST_REQUESTS)))
}

/// A few at a time, and with the next packet they go: each asks for a path, and for a heartbeat on it.
fn changing(count: usize) -> (Victim, Packets) {
    signed(
        count,
        |_| peer(0),
        |number| {
            let added = additions(number / 2 * AT_ONCE, AT_ONCE);
            let removed = added.iter().filter_map(|param| match param {
                &Param::AddAddress { correlation, address } => {
                    Some(Param::DeleteAddress { correlation, address })
                }
                _ => None,
            });
            let params = if number % 2 == 0 { added } else { removed.collect() };
            (serial(number), params)
        },
    )
}

fn repeated(count: usize) -> (Victim, Packets) {
    signed(count, |_| peer(0), |_| (serial(0), additions(0, MOST_REQUESTS)))
}

fn leaping(count: usize) -> (Victim, Packets) {
    signed(
        count,
        |_| peer(0),
        |number| {
            let stray = serial(1).wrapping_add((number as u32).wrapping_mul(0x9e37_79b8));
            (stray, additions(number, MOST_REQUESTS))
        },
    )
}

/// Types whose highest bits ask for a report.
fn unknown(count: usize) -> (Victim, Packets) {
    let (victim, signer) = Victim::authenticated();
    let mut bytes = Vec::new();
    for place in 0..MOST_REQUESTS as u32 {
        bytes.extend([0xc0, 0xff, 0, 8]);
        bytes.extend(place.to_be_bytes());
    }
    let packet = |number| {
        let params = Params::Wire(&bytes);
        let chunk = Chunk::Asconf(Asconf { serial: serial(number), address: peer(0), params });
        (signer.packet(victim.header(), &[chunk]), peer(0))
    };
    let packets = (0..count).map(packet).collect();
    (victim, packets)
}
