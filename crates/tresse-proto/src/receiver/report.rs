//! Contents of a SACK (RFC 9260 §3.3.4) or NR-SACK (draft-tuexen-tsvwg-sctp-multipath §4), cut to
//! the space left in the packet.
//!
//! Owns the list of duplicates and the window that was announced last. Independent of the time at which a report is due.

use std::iter::Peekable;
use std::ops::Range;

use tresse_wire::{Chunk, GapBlock, List, NoRoom, NrSack as NrSackChunk, PacketWriter, Sack, Tsn};

use super::tsn_map::TsnMap;
use crate::config::{AssociationConfig, NrSack};

/// Writes reports and remembers what the next one needs of the last.
#[derive(Debug)]
pub(super) struct Report {
    policy: NrSack,
    /// Most blocks where all are non-renegable; 0 for what fits the packet.
    most_blocks: u16,
    /// A window smaller than this is no use to the peer.
    mtu: u32,
    announced: u32,
    /// Made with the first report, or the first duplicate.
    lists: Option<Box<Lists>>,
}

/// Lists of a report.
#[derive(Debug, Default)]
struct Lists {
    /// TSNs received again since the last report, once for each extra copy, at most [`MAX_DUPLICATES`].
    duplicates: Vec<Tsn>,
    blocks: Blocks,
}

/// Of the report being written; kept for their memory.
#[derive(Debug, Default)]
struct Blocks {
    renegable: Vec<GapBlock>,
    non_renegable: Vec<GapBlock>,
    /// Ranges that something came to last.
    latest: Vec<Range<u64>>,
}

impl Report {
    pub(super) fn new(config: &AssociationConfig) -> Self {
        Report {
            policy: config.nr_sack,
            most_blocks: config.nr_sack_blocks,
            mtu: config.mtu.0 as u32,
            // INIT or INIT ACK announced the whole buffer.
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

    /// Forgets duplicates, which have no number any more.
    pub(super) fn forget_duplicates(&mut self) {
        if let Some(lists) = &mut self.lists {
            lists.duplicates.clear();
        }
    }

    /// The window can grow by a quarter of the buffer, or from nothing useful to two full packets.
    pub(super) fn wants_window_update(&self, window: usize, buffer: usize) -> bool {
        let (announced, mtu) = (self.announced as usize, self.mtu as usize);
        let grew = window.saturating_sub(announced) >= buffer / 4;
        let reopened = announced < mtu && window >= 2 * mtu;
        grew || reopened
    }

    /// No full packet fits into a window of `window` bytes.
    pub(super) fn leaves_no_packet(&self, window: usize) -> bool {
        window < self.mtu as usize
    }

    /// Appends a report that says for how many packets it stands if that is given; see
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
    /// Fills the two block lists with at most `limit` blocks together. A TSN is in exactly one of them, and a
    /// plain SACK has only the renegable one.
    ///
    /// Renegable blocks are the lowest: what a later report leaves out below its last block would count as
    /// dropped (RFC 9260 §6.2.1 D iii). Non-renegable ones cannot be taken back, so where all are such, they need not
    /// be told twice: `most` of them do, if what came last is among them.
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

/// A range as a block beyond `cumulative`. The map holds nothing that is too far away for 16 bits.
fn block(cumulative: u64, range: Range<u64>) -> Option<GapBlock> {
    let end = u16::try_from(range.end - 1 - cumulative).ok()?;
    Some(GapBlock { start: (range.start - cumulative) as u16, end })
}

/// Cuts what was received where it changes between deliverable and not; gives each piece with whether it
/// is deliverable.
struct Split<R, D: Iterator> {
    received: R,
    deliverable: Peekable<D>,
    /// Rest of the range being cut.
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

/// Duplicates noted between two reports; a packet has room for little more, and each is only a hint.
const MAX_DUPLICATES: usize = 256;
