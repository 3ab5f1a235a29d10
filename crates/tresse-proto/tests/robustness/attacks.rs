//! The attacks: for each, a victim and the packets that it gets, and beside what honest traffic its cost is shown.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{Ppid, Ssn, StreamId, Tsn};
use tresse_wire::{
    Auth, Chunk, ChunkKind, CookieEcho, Data, DataFlags, ForwardTsn, GapBlock, IData, List, Mid, PacketDrop,
    Pad, Param, Params, PpidOrFsn, Reconfig, Sack, SkippedStream,
};

use crate::victim::{BUFFER, PEER_TAG, PEER_TSN, ROOM, Victim, init, packet, peer};
use crate::{asconf, protected};

/// Honest traffic to compare with.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Honest {
    /// Peers that set up one association each.
    SetUps,
    /// A peer that sends messages of 1000 bytes.
    Messages,
    /// A peer that acknowledges two messages at a time.
    Reports,
}

impl Honest {
    /// A victim and `count` packets of this kind for it.
    pub(crate) fn make(self, count: usize) -> (Victim, Packets) {
        match self {
            Honest::SetUps => {
                // Cookies have to be fetched first: INITs and COOKIE ECHOs take turns.
                let victim = Victim::listening();
                let mut twin = Victim::listening();
                let pairs = (0..count / 2).flat_map(|number| {
                    let init = init(number as u32 + 1, &[]);
                    twin.feed(&init, peer(number));
                    [(init, peer(number)), (twin.cookie_echo(), peer(number))]
                });
                let packets = pairs.collect();
                (victim, packets)
            }
            Honest::Messages => {
                let victim = Victim::established();
                let packets = (0..count).map(|number| {
                    let data = data(number as u32, 0, number as u16, DataFlags::WHOLE, &[0; 1000]);
                    (victim.packet(&[data]), peer(0))
                });
                let packets = packets.collect();
                (victim, packets)
            }
            Honest::Reports => {
                let mut victim = Victim::established();
                victim.send(BUFFER / 100, 100);
                let packets = (0..count.min(600)).map(|number| {
                    let cumulative = victim.tsn.0.wrapping_add(2 * number as u32).wrapping_add(1);
                    (victim.packet(&[sack(Tsn(cumulative), &[])]), peer(0))
                });
                let packets = packets.collect();
                (victim, packets)
            }
        }
    }
}

pub(crate) type Packets = Vec<(Bytes, IpAddr)>;

/// An attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// What it is compared with.
    pub(crate) beside: Honest,
    /// The most bytes that the victim may hold on to at any moment, beyond what it held before.
    pub(crate) most: i64,
    /// The most bytes that the victim may answer for each that it gets, in hundredths.
    pub(crate) amplification: usize,
    /// How often a packet may make it ask for memory, on average.
    pub(crate) requests: usize,
    /// The victim, and so many packets, or fewer.
    pub(crate) make: fn(usize) -> (Victim, Packets),
}

/// What buffers hold in the worst case: twice their size, and what surrounds each chunk.
const BUFFERS: i64 = 4 * BUFFER as i64;
/// What an endpoint needs for answers, and to remember which associations have ended.
pub(crate) const ANSWERS: i64 = 96 * 1024;
/// What it keeps of 65,535 streams beside their data: the peer was offered as many.
const STREAMS: i64 = 65_536 * 64;

/// Requests for memory that a packet may cause which makes nothing that lasts. Most cause two; an answer that fills a
/// packet causes eight, by growing from nothing, and an INIT nine.
pub(crate) const REQUESTS: usize = 15;
/// Streams in a request to reset some; a set of them is kept in nodes of eleven.
const RESET_AT_ONCE: u16 = 600;
const NODES: usize = RESET_AT_ONCE as usize / 11;

/// All attacks.
pub(crate) fn all() -> impl Iterator<Item = &'static Attack> {
    ATTACKS.iter().chain(&asconf::ATTACKS).chain(&protected::ATTACKS)
}

const ATTACKS: [Attack; 21] = [
    Attack {
        name: "INITs of strangers",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 200,
        requests: REQUESTS,
        make: inits,
    },
    Attack {
        name: "the smallest INITs",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 600,
        requests: REQUESTS,
        make: small_inits,
    },
    Attack {
        name: "cookies of noise",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: forged,
    },
    Attack {
        name: "stale cookies",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: stale,
    },
    Attack {
        name: "one cookie again and again",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: replayed,
    },
    Attack {
        name: "packets out of the blue",
        beside: Honest::SetUps,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: strays,
    },
    Attack {
        name: "wrong tags",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: wrong_tags,
    },
    Attack {
        name: "fragments of one byte",
        beside: Honest::Messages,
        most: BUFFERS,
        amplification: 100,
        requests: REQUESTS,
        make: fragments,
    },
    Attack {
        name: "a byte in a packet of padding",
        beside: Honest::Messages,
        most: BUFFERS,
        amplification: 100,
        requests: REQUESTS,
        make: padded,
    },
    Attack {
        name: "first fragments on all streams (I-DATA)",
        beside: Honest::Messages,
        most: BUFFERS + STREAMS,
        amplification: 100,
        requests: REQUESTS,
        make: half_messages,
    },
    Attack {
        name: "every second TSN",
        beside: Honest::Messages,
        most: BUFFERS,
        amplification: 100,
        requests: REQUESTS,
        make: scattered,
    },
    Attack {
        name: "duplicates",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: duplicates,
    },
    Attack {
        name: "SACKs of gaps",
        beside: Honest::Reports,
        most: BUFFERS,
        amplification: 100,
        requests: REQUESTS,
        make: gaps,
    },
    Attack {
        name: "unknown chunks to report",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: unknown,
    },
    Attack {
        name: "heartbeats",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: heartbeats,
    },
    Attack {
        name: "requests to reset streams",
        beside: Honest::Messages,
        most: BUFFERS,
        amplification: 100,
        requests: REQUESTS + NODES,
        make: resets,
    },
    Attack {
        name: "wrong HMACs",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 0,
        requests: REQUESTS,
        make: hmacs,
    },
    Attack {
        name: "damaged packets",
        beside: Honest::Messages,
        most: ANSWERS,
        amplification: 100,
        requests: REQUESTS,
        make: damaged,
    },
    Attack {
        name: "false reports of damage",
        beside: Honest::Reports,
        most: BUFFERS,
        amplification: 100,
        requests: REQUESTS,
        make: false_reports,
    },
    Attack {
        name: "FORWARD TSNs of many streams",
        beside: Honest::Messages,
        most: STREAMS,
        amplification: 100,
        requests: REQUESTS,
        make: forwards,
    },
    Attack {
        name: "FORWARD TSNs that leap",
        beside: Honest::Messages,
        most: ANSWERS,
        // Each leaves a gap, which is reported at once (RFC 9260 §6.7).
        amplification: 160,
        requests: REQUESTS,
        make: leaps,
    },
];

pub(crate) fn from_association(
    victim: Victim,
    count: usize,
    make: impl Fn(&Victim, usize) -> Bytes,
) -> (Victim, Packets) {
    let packets = (0..count).map(|number| (make(&victim, number), peer(0))).collect();
    (victim, packets)
}

fn inits(count: usize) -> (Victim, Packets) {
    let address = |number: usize, place: usize| Param::Address(peer(100_000 + number * 16 + place));
    let packets = (0..count).map(|number| {
        let addresses: Vec<Param<'_>> = (0..16).map(|place| address(number, place)).collect();
        (init(number as u32 + 1, &addresses), peer(number))
    });
    (Victim::listening(), packets.collect())
}

/// INITs without anything in them: an INIT ACK says more, whoever sends it.
fn small_inits(count: usize) -> (Victim, Packets) {
    let packets = (0..count).map(|number| (init(number as u32 + 1, &[]), peer(number)));
    (Victim::listening(), packets.collect())
}

fn forged(count: usize) -> (Victim, Packets) {
    let noise = |number: usize| (0..200).map(|place| (number * 31 + place * 7) as u8).collect::<Vec<u8>>();
    let packets = (0..count).map(|number| {
        let echo = Chunk::CookieEcho(CookieEcho { cookie: &noise(number) });
        (packet(number as u32 + 1, &[echo]), peer(number))
    });
    (Victim::listening(), packets.collect())
}

fn stale(count: usize) -> (Victim, Packets) {
    let mut victim = Victim::listening();
    victim.feed(&init(PEER_TAG, &[]), peer(0));
    let echo = victim.cookie_echo();
    victim.now += Duration::from_secs(61);
    (victim, vec![(echo, peer(0)); count])
}

fn replayed(count: usize) -> (Victim, Packets) {
    let victim = Victim::established();
    let echo = victim.cookie_echo();
    (victim, vec![(echo, peer(0)); count])
}

fn strays(count: usize) -> (Victim, Packets) {
    let packets = (0..count).map(|number| {
        let data = data(0, 0, 0, DataFlags::WHOLE, &[0; 10]);
        (packet(number as u32 + 1, &[data]), peer(1 + number))
    });
    (Victim::established(), packets.collect())
}

fn wrong_tags(count: usize) -> (Victim, Packets) {
    let packets = (0..count).map(|number| {
        let data = data(0, 0, 0, DataFlags::WHOLE, &[0; 1000]);
        (packet(number as u32 + 1, &[data]), peer(0))
    });
    (Victim::established(), packets.collect())
}

/// The middle of a message that has no end, in packets full of chunks of one byte.
fn fragments(count: usize) -> (Victim, Packets) {
    let flags = |tsn: u32| DataFlags { beginning: tsn == 0, ending: false, ..DataFlags::default() };
    let in_packet = ROOM / 20;
    from_association(Victim::established(), count, |victim, number| {
        let chunks: Vec<Chunk<'_>> = (0..in_packet)
            .map(|place| (number * in_packet + place) as u32)
            .map(|tsn| data(tsn, 0, 0, flags(tsn), b"."))
            .collect();
        victim.packet(&chunks)
    })
}

/// The same, a byte a packet, and padding behind it.
fn padded(count: usize) -> (Victim, Packets) {
    from_association(Victim::established(), count, |victim, number| {
        let flags = DataFlags { beginning: number == 0, ..DataFlags::default() };
        victim.packet(&[data(number as u32, 0, 0, flags, b"."), Chunk::Pad(Pad { len: (ROOM - 24) as u16 })])
    })
}

/// On each stream the beginning of a message that never goes on.
fn half_messages(count: usize) -> (Victim, Packets) {
    let mut config = tresse_proto::AssociationConfig::default();
    (config.send_buffer.0, config.receive_buffer.0, config.interleaving) = (BUFFER, BUFFER, true);
    let victim = Victim::with(config).connected(&[ChunkKind::I_DATA, ChunkKind::I_FORWARD_TSN]);
    let in_packet = ROOM / 24;
    from_association(victim, count, |victim, number| {
        let chunks: Vec<Chunk<'_>> = (0..in_packet)
            .map(|place| {
                let position = number * in_packet + place;
                Chunk::IData(IData {
                    tsn: Tsn(PEER_TSN.0 + position as u32),
                    stream: StreamId((position % 65_000) as u16),
                    mid: Mid(0),
                    ppid_or_fsn: PpidOrFsn::Ppid(Ppid(0)),
                    flags: DataFlags { beginning: true, ..DataFlags::default() },
                    payload: b".",
                })
            })
            .collect();
        victim.packet(&chunks)
    })
}

/// Messages with gaps between them, the highest first in each packet.
fn scattered(count: usize) -> (Victim, Packets) {
    let in_packet = ROOM / 20;
    from_association(Victim::established(), count, |victim, number| {
        let chunks: Vec<Chunk<'_>> = (0..in_packet)
            .rev()
            .map(|place| 2 * (number * in_packet + place) as u32 + 1)
            .map(|tsn| data(tsn, 0, tsn as u16, DataFlags { unordered: true, ..DataFlags::WHOLE }, b"."))
            .collect();
        victim.packet(&chunks)
    })
}

fn duplicates(count: usize) -> (Victim, Packets) {
    let mut victim = Victim::established();
    let first = victim.packet(&[data(0, 0, 0, DataFlags::WHOLE, b".")]);
    victim.feed(&first, peer(0));
    from_association(victim, count, |victim, _| {
        let chunks = vec![data(0, 0, 0, DataFlags::WHOLE, b"."); ROOM / 20];
        victim.packet(&chunks)
    })
}

/// Blocks that come and go over everything that is in flight, a packet full of them at a time.
fn gaps(count: usize) -> (Victim, Packets) {
    let mut victim = Victim::established();
    victim.send(BUFFER / 4, 4);
    let before = Tsn(victim.tsn.0.wrapping_sub(1));
    from_association(victim, count, |victim, number| {
        let block = |place: usize| {
            let start = (2 * place + 2 + number % 2) as u16;
            GapBlock { start, end: start }
        };
        let blocks: Vec<GapBlock> = (0..(ROOM - 16) / 4).map(block).collect();
        victim.packet(&[sack(before, &blocks)])
    })
}

fn unknown(count: usize) -> (Victim, Packets) {
    from_association(Victim::established(), count, |victim, _| victim.packet_full_of(|_| vec![0xfe, 0, 0, 4]))
}

fn heartbeats(count: usize) -> (Victim, Packets) {
    from_association(Victim::established(), count, |victim, number| {
        victim.packet_full_of(|place| {
            [&[4, 0, 0, 12, 0, 1, 0, 8][..], &((number + place) as u32).to_be_bytes()].concat()
        })
    })
}

/// Requests with the right number each time, over all streams.
fn resets(count: usize) -> (Victim, Packets) {
    from_association(Victim::established(), count, |victim, number| {
        let sequence = PEER_TSN.0 + number as u32;
        let streams: Vec<u16> = (0..RESET_AT_ONCE).collect();
        let param = Param::OutgoingReset {
            request: sequence,
            response: 0,
            last_tsn: Tsn(PEER_TSN.0 - 1),
            streams: List::Values(&streams),
        };
        victim.packet(&[Chunk::Reconfig(Reconfig { params: Params::Values(&[param]) })])
    })
}

fn hmacs(count: usize) -> (Victim, Packets) {
    let (victim, _) = Victim::authenticated();
    from_association(victim, count, |victim, number| {
        let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 3, hmac: &[number as u8; 32] });
        victim.packet(&[auth, data(0, 0, 0, DataFlags::WHOLE, &[0; 1000])])
    })
}

/// Full packets whose checksum is wrong, and whose tag is right: each is reported.
fn damaged(count: usize) -> (Victim, Packets) {
    let victim = Victim::listening().connected(&[ChunkKind::PACKET_DROP]);
    from_association(victim, count, |victim, number| {
        let chunks = vec![data(number as u32, 0, 0, DataFlags::WHOLE, b"."); ROOM / 20];
        let mut packet = victim.packet(&chunks).to_vec();
        packet[8] ^= 1;
        packet.into()
    })
}

/// Reports that everything in flight arrived damaged, as often as there is room for one.
fn false_reports(count: usize) -> (Victim, Packets) {
    let mut victim = Victim::listening().connected(&[ChunkKind::PACKET_DROP]);
    victim.send(BUFFER / 4, 4);
    let first = victim.tsn;
    from_association(victim, count, |victim, _| {
        let sent = |number: usize| {
            let tsn = Tsn(first.0.wrapping_add(number as u32));
            let (stream, ssn) = (StreamId(0), Ssn(number as u16));
            Chunk::Data(Data { tsn, stream, ssn, ppid: Ppid(0), flags: DataFlags::WHOLE, payload: &[0; 4] })
        };
        let chunks: Vec<Chunk<'_>> = (0..ROOM / 20 - 2).map(sent).collect();
        let quoted = victim.packet_sent(&chunks);
        let report = PacketDrop {
            middlebox: false,
            bad_checksum: true,
            truncated: false,
            bandwidth: 0,
            queue_size: 0,
            truncated_len: 0,
            packet: &quoted,
        };
        victim.packet(&[Chunk::PacketDrop(report)])
    })
}

/// Each skips something on as many streams as a packet names.
fn forwards(count: usize) -> (Victim, Packets) {
    from_association(Victim::established(), count, |victim, number| {
        let streams: Vec<SkippedStream> = (0..(ROOM - 8) / 4)
            .map(|place| SkippedStream {
                stream: StreamId((number * 359 + place) as u16),
                ssn: Ssn(number as u16),
            })
            .collect();
        let forward =
            ForwardTsn { cumulative_tsn: Tsn(PEER_TSN.0 + number as u32), streams: List::Values(&streams) };
        victim.packet(&[Chunk::ForwardTsn(forward)])
    })
}

/// Each as far ahead as serial numbers reach.
fn leaps(count: usize) -> (Victim, Packets) {
    from_association(Victim::established(), count, |victim, number| {
        let cumulative_tsn = Tsn((number as u32 + 1).wrapping_mul(0x7fff_0000));
        victim.packet(&[Chunk::ForwardTsn(ForwardTsn { cumulative_tsn, streams: List::Values(&[]) })])
    })
}

pub(crate) fn data(number: u32, stream: u16, ssn: u16, flags: DataFlags, payload: &[u8]) -> Chunk<'_> {
    Chunk::Data(Data {
        tsn: Tsn(PEER_TSN.0.wrapping_add(number)),
        stream: StreamId(stream),
        ssn: Ssn(ssn),
        ppid: Ppid(0),
        flags,
        payload,
    })
}

fn sack(cumulative_tsn: Tsn, gaps: &[GapBlock]) -> Chunk<'_> {
    let (gaps, duplicates) = (List::Values(gaps), List::Values(&[][..]));
    Chunk::Sack(Sack { flags: 0, cumulative_tsn, a_rwnd: BUFFER as u32, gaps, duplicates })
}
