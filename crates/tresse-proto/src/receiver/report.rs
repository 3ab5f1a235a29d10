//! Contents of a SACK (RFC 9260 §3.3.4) or NR-SACK (draft-tuexen-tsvwg-sctp-multipath §4), cut to
//! the space left in the packet.
//!
//! Owns the list of duplicates and the window that was advertised last. Independent of the time at which a report is due.

use std::iter::Peekable;
use std::ops::Range;

use tresse_wire::{Chunk, GapBlock, List, NoRoom, NrSack as NrSackChunk, PacketWriter, Sack, Tsn};

use super::tsn_map::TsnMap;
use crate::config::{AssociationConfig, NrSack};

/// Writer of reports, with the state that the next report needs.
#[derive(Debug)]
pub(super) struct Report {
    policy: NrSack,
    /// Most blocks of a report whose blocks are all non-renegable; 0 for as many as fit the packet.
    most_blocks: u16,
    /// Size of a full packet: a smaller window is of no use to the peer.
    mtu: u32,
    announced: u32,
    /// Allocated with the first report or duplicate.
    lists: Option<Box<Lists>>,
}

/// Lists of a report.
#[derive(Debug, Default)]
struct Lists {
    /// TSNs received again since the last report, once for each extra arrival, at most [`MAX_DUPLICATES`].
    duplicates: Vec<Tsn>,
    blocks: Blocks,
}

/// Blocks of the report that is being written; kept to reuse their memory.
#[derive(Debug, Default)]
struct Blocks {
    renegable: Vec<GapBlock>,
    non_renegable: Vec<GapBlock>,
    /// Ranges that grew last.
    latest: Vec<Range<u64>>,
}

impl Report {
    pub(super) fn new(config: &AssociationConfig) -> Self {
        Report {
            policy: config.nr_sack,
            most_blocks: config.nr_sack_blocks,
            mtu: config.mtu.0 as u32,
            // INIT or INIT ACK advertised the whole buffer.
            announced: config.receive_buffer.0 as u32,
            lists: None,
        }
    }

    pub(super) fn note_duplicate(&mut self, tsn: Tsn) {
        let duplicates = &mut self.lists.get_or_insert_default().duplicates;
        if duplicates.len() < MAX_DUPLICATES {
            duplicates.push(tsn);
        }
    }

    /// Forgets the duplicates, whose TSNs are invalid after a renumbering.
    pub(super) fn forget_duplicates(&mut self) {
        if let Some(lists) = &mut self.lists {
            lists.duplicates.clear();
        }
    }

    /// Returns whether the advertised window can grow by a quarter of the buffer, or from less than one full packet to two.
    pub(super) fn wants_window_update(&self, window: usize, buffer: usize) -> bool {
        let (announced, mtu) = (self.announced as usize, self.mtu as usize);
        let grew = window.saturating_sub(announced) >= buffer / 4;
        let reopened = announced < mtu && window >= 2 * mtu;
        grew || reopened
    }

    /// Returns whether no full packet fits into a window of `window` bytes.
    pub(super) fn leaves_no_packet(&self, window: usize) -> bool {
        window < self.mtu as usize
    }

    /// Appends a report, with the number of `packets` that it reports if that is given (DAC); see
    /// [`super::Receiver::write_report`].
    pub(super) fn write(
        &mut self,
        map: &TsnMap,
        window: u32,
        packets: Option<u32>,
        nr: bool,
        writer: &mut PacketWriter<'_>,
    ) -> Result<(), NoRoom> {
        let room = writer.room();
        let entries = if nr { NrSackChunk::entries_in(room) } else { Sack::entries_in(room) };
        let Lists { duplicates, blocks } = &mut **self.lists.get_or_insert_default();
        let most = if self.most_blocks == 0 { usize::MAX } else { usize::from(self.most_blocks) };
        blocks.collect(map, nr.then_some(self.policy), entries, most);
        let Blocks { renegable, non_renegable, .. } = blocks;
        let taken = renegable.len() + non_renegable.len();
        let listed = duplicates.len().min(entries.saturating_sub(taken));

        let flags = packets.map_or(0, Sack::dac_flags);
        let (cumulative_tsn, a_rwnd) = (map.cumulative_tsn(), window);
        let (renegable, non_renegable) = (List::Values(renegable), List::Values(non_renegable));
        let reported = List::Values(&duplicates[..listed]);
        let pushed = writer.push(&if nr {
            let duplicates = reported;
            Chunk::NrSack(NrSackChunk { flags, cumulative_tsn, a_rwnd, renegable, non_renegable, duplicates })
        } else {
            Chunk::Sack(Sack { flags, cumulative_tsn, a_rwnd, gaps: renegable, duplicates: reported })
        });
        pushed?;
        self.announced = window;
        duplicates.clear();
        Ok(())
    }
}

impl Blocks {
    /// Fills the two block lists with at most `limit` blocks together. A TSN is in exactly one of them; a plain SACK has only
    /// renegable blocks.
    ///
    /// Renegable blocks are the lowest ones: a TSN that a later report omits below its last block would count as reneged (RFC
    /// 9260 §6.2.1 D iii). Non-renegable TSNs cannot be reneged on, so where all TSNs are such, a report may omit some that
    /// were reported: `most` blocks suffice, if the latest arrivals are among them.
    fn collect(&mut self, map: &TsnMap, policy: Option<NrSack>, limit: usize, most: usize) {
        self.renegable.clear();
        self.non_renegable.clear();
        let (cumulative, received) = (map.cumulative(), map.received().iter());
        let Blocks { renegable, non_renegable, latest } = self;
        match policy {
            Some(NrSack::Delivered) => {
                for (range, kept) in Split::new(received, map.deliverable().iter()).take(limit) {
                    let list = if kept { &mut *non_renegable } else { &mut *renegable };
                    if let Some(block) = block(cumulative, range) {
                        list.push(block);
                    }
                }
            }
            Some(NrSack::Everything) => {
                let limit = limit.min(most);
                non_renegable.reserve(limit.min(map.received().len()));
                map.excerpt(limit, latest, |range| {
                    if let Some(block) = block(cumulative, range) {
                        non_renegable.push(block);
                    }
                });
            }
            Some(NrSack::Off) | None => {
                renegable.extend(received.take(limit).filter_map(|range| block(cumulative, range)));
            }
        }
    }
}

/// Gap ack block of a range, relative to `cumulative`. The map has no index that is too far away for 16 bits.
fn block(cumulative: u64, range: Range<u64>) -> Option<GapBlock> {
    let end = u16::try_from(range.end - 1 - cumulative).ok()?;
    Some(GapBlock { start: (range.start - cumulative) as u16, end })
}

/// Iterator over the received ranges, split where they change between deliverable and not; each piece comes with whether it is
/// deliverable.
struct Split<R, D: Iterator> {
    received: R,
    deliverable: Peekable<D>,
    /// Rest of the range that is being split.
    rest: Option<Range<u64>>,
}

impl<R, D: Iterator<Item = Range<u64>>> Split<R, D> {
    fn new(received: R, deliverable: D) -> Self {
        Split { received, deliverable: deliverable.peekable(), rest: None }
    }
}

impl<R, D> Iterator for Split<R, D>
where
    R: Iterator<Item = Range<u64>>,
    D: Iterator<Item = Range<u64>>,
{
    type Item = (Range<u64>, bool);

    fn next(&mut self) -> Option<Self::Item> {
        let range = self.rest.take().or_else(|| self.received.next())?;
        while self.deliverable.next_if(|marked| marked.end <= range.start).is_some() {}
        let (end, kept) = match self.deliverable.peek() {
            Some(marked) if marked.start <= range.start => (marked.end.min(range.end), true),
            Some(marked) => (marked.start.min(range.end), false),
            None => (range.end, false),
        };
        self.rest = (end < range.end).then_some(end..range.end);
        Some((range.start..end, kept))
    }
}

/// Most duplicates kept between two reports. A packet has room for little more, and the peer does not depend on them.
const MAX_DUPLICATES: usize = 256;
