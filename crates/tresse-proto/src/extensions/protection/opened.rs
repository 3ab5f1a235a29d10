//! Memory for decrypted records. Large packets share blocks, so that most need no allocation.
//!
//! A reference to a few bytes of a packet keeps its whole block in memory, so the number of blocks in use is bounded. Beyond the
//! bound, and for small packets, each packet has memory of its own.

use std::collections::VecDeque;

use bytes::BytesMut;

/// Size of a block in bytes: eleven packets that fill Ethernet frames.
const BLOCK: usize = 16 * 1024;

/// Minimum size in bytes of a packet that is put into a block.
const LEAST_LENT: usize = 512;

/// Maximum number of full blocks in use, besides the one that is being filled: 1 MiB.
const MOST_LENT: usize = 64;

/// Blocks of an endpoint, for the packets of all its associations.
#[derive(Debug, Default)]
pub(crate) struct OpenedPackets {
    /// Free part of the block that is being filled.
    room: Option<BytesMut>,
    /// Ends of full blocks, oldest first. Through its end a block is reclaimed once no packet refers to it.
    lent: VecDeque<BytesMut>,
}

impl OpenedPackets {
    /// Returns a copy of `head` followed by `text`.
    #[inline]
    pub(super) fn copy(&mut self, head: &[u8], text: &[u8]) -> BytesMut {
        let len = head.len() + text.len();
        let mut packet = match self.room(len) {
            Some(room) => {
                // Split while empty: after a write, the update of the block's reference count would wait for the stored bytes.
                let rest = room.split_off(len);
                std::mem::replace(room, rest)
            }
            None => BytesMut::with_capacity(len),
        };
        packet.extend_from_slice(head);
        packet.extend_from_slice(text);
        packet
    }

    /// Returns a block with room for `len` bytes; `None` if the packet gets memory of its own.
    #[inline]
    fn room(&mut self, len: usize) -> Option<&mut BytesMut> {
        if !(LEAST_LENT..=BLOCK).contains(&len) {
            // Small packets are a good moment to free blocks one by one that may not be needed any more.
            self.reclaim();
            return None;
        }
        if self.room.as_ref().is_none_or(|room| room.capacity() < len) {
            self.renew();
        }
        self.room.as_mut()
    }

    /// Takes another block, unless too many are in use.
    fn renew(&mut self) {
        self.lent.extend(self.room.take());
        self.room = self.reclaim();
        if self.room.is_some() {
            return;
        }
        if self.lent.len() < MOST_LENT {
            self.room = Some(BytesMut::with_capacity(BLOCK));
        } else {
            // The next call checks the next block: others may be free while the oldest is still in use.
            self.lent.rotate_left(1);
        }
    }

    /// Removes and returns the oldest block, if it is free.
    fn reclaim(&mut self) -> Option<BytesMut> {
        let free = self.lent.front_mut().is_some_and(|block| block.try_reclaim(BLOCK));
        if free { self.lent.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const HEAD: [u8; 12] = [1; 12];
    const TEXT: [u8; 1_400] = [2; 1_400];

    fn packet(blocks: &mut OpenedPackets) -> Bytes {
        let packet = blocks.copy(&HEAD, &TEXT).freeze();
        assert_eq!((&packet[..12], &packet[12..]), (&HEAD[..], &TEXT[..]));
        packet
    }

    #[test]
    fn packets_share_blocks_and_blocks_come_back() {
        let mut blocks = OpenedPackets::default();
        let held: Vec<Bytes> = (0..33).map(|_| packet(&mut blocks)).collect();
        let shares =
            held.windows(2).filter(|pair| pair[1].as_ptr() as usize == pair[0].as_ptr() as usize + 1_412);
        assert_eq!(shares.count(), 30, "three blocks of eleven");
        assert_eq!(blocks.lent.len(), 2);
        drop(held);
        for _ in 0..1_000 {
            packet(&mut blocks);
        }
        assert_eq!(blocks.lent.len(), 2, "what nobody holds is used again");
    }

    #[test]
    fn a_small_packet_holds_itself_alone() {
        let mut blocks = OpenedPackets::default();
        let large: Vec<Bytes> = (0..22).map(|_| packet(&mut blocks)).collect();
        assert_eq!(blocks.lent.len(), 1);
        drop(large);
        let small = blocks.copy(&HEAD, &TEXT[..40]);
        assert!(small.capacity() < LEAST_LENT);
        assert!(blocks.lent.is_empty(), "and gives up what is free");
    }

    #[test]
    fn only_so_many_blocks_are_lent() {
        let mut blocks = OpenedPackets::default();
        // One packet of each block is held, for as long as there are blocks.
        let mut held = Vec::new();
        for at in 0..11 * 1_000 {
            let packet = packet(&mut blocks);
            if at % 11 == 0 {
                held.push(packet);
            }
        }
        assert_eq!((blocks.lent.len(), blocks.room.is_none()), (MOST_LENT, true));
        drop(held.split_off(20));
        for _ in 0..MOST_LENT {
            packet(&mut blocks);
        }
        assert!(blocks.room.is_some(), "one that is free is found behind those that are not");
    }
}
