//! Key contexts: the keys of one epoch in one direction, with their record numbers and limits
//! (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.1, RFC 9147 §4).

use bytes::Bytes;
use tresse_wire::{COMMON_HEADER_LEN, Dtls, PacketWriter, RECORD_TAG_LEN};

use super::number::NumberHistories;
use super::opened::OpenedPackets;
use super::window::{NumberStatus, ReplayWindow};
use crate::interface::event::CloseReason;
use crate::interface::protection::{Epoch, EpochStats, RecordFault, RecordKeys, Suite};

/// Limits on the use of one key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyLimits {
    /// Encrypted, or decrypted, bytes after which new keys are requested.
    pub(crate) rekey_bytes: u64,
    /// Blocks of 16 bytes that AES-GCM may encrypt: RFC 9147 §4.5.3 allows 2^24.5 records, which have up to 2^34.5 blocks.
    pub(crate) most_blocks: u64,
    /// Records that may fail to decrypt (RFC 9147 §4.5.3).
    pub(crate) most_failures: u64,
}

impl KeyLimits {
    /// Creates the limits of the standards; new keys are requested after `rekey_megabytes`.
    pub(crate) fn new(rekey_megabytes: u32) -> Self {
        KeyLimits {
            rekey_bytes: u64::from(rekey_megabytes).saturating_mul(1_000_000),
            most_blocks: 1 << 34,
            most_failures: 1 << 36,
        }
    }
}

/// Reason for which no packet can be encrypted any more.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum SealFault {
    /// The key has reached its limit.
    Spent,
    /// The cipher refused.
    Cipher,
}

impl SealFault {
    /// Returns the reason for which the association ends.
    pub(crate) fn reason(self) -> CloseReason {
        match self {
            SealFault::Spent => CloseReason::KeysSpent,
            SealFault::Cipher => CloseReason::PeerFault("the cipher of the record layer refused a packet"),
        }
    }
}

/// Returns the nonce of a record (RFC 8446 §5.3).
// Computed in words: a cipher that loads a nonce stored byte by byte waits for the stores.
fn nonce(iv: &[u8; 12], number: u64) -> [u8; 12] {
    let [head @ .., a, b, c, d] = *iv;
    let head = u64::from_be_bytes(head) ^ (number >> 32);
    let tail = u32::from_be_bytes([a, b, c, d]) ^ number as u32;
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&head.to_be_bytes());
    nonce[8..].copy_from_slice(&tail.to_be_bytes());
    nonce
}

/// Encrypts or decrypts the record number in a header, by the sample, the 16 bytes behind the header (RFC 9147 §4.2.3).
fn mask(keys: &mut RecordKeys, header: [u8; 3], text: &[u8], tag: &[u8; RECORD_TAG_LEN]) -> [u8; 3] {
    let [high, low] = match text.first_chunk() {
        Some(sample) => keys.layer.mask(sample),
        None => {
            let mut sample = [0; 16];
            for (byte, &from) in sample.iter_mut().zip(text.iter().chain(tag)) {
                *byte = from;
            }
            keys.layer.mask(&sample)
        }
    };
    [header[0], header[1] ^ high, header[2] ^ low]
}

/// Sending keys of one epoch, and their record numbers.
#[derive(Debug)]
pub(super) struct SendContext {
    pub(super) epoch: Epoch,
    keys: RecordKeys,
    /// The number of the next record; each number is used at most once.
    next: u64,
    blocks: u64,
}

impl SendContext {
    pub(super) fn new(epoch: Epoch, keys: RecordKeys) -> Self {
        SendContext { epoch, keys, next: 0, blocks: 0 }
    }

    /// Returns the number of encrypted records.
    pub(super) fn sealed(&self) -> u64 {
        self.next
    }

    /// Returns the number of encrypted bytes, in whole blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(16)
    }

    /// Encrypts a packet whose chunks are complete.
    ///
    /// # Errors
    /// The packet must not be sent.
    pub(super) fn seal(
        &mut self,
        limits: &KeyLimits,
        writer: &mut PacketWriter<'_>,
    ) -> Result<(), SealFault> {
        let Some(place) = writer.record() else { return Err(SealFault::Cipher) };
        // One more block for the header and the lengths, which the tag covers as well.
        let blocks = self.blocks + 1 + (place.text.len() as u64).div_ceil(16);
        let counted = self.keys.suite != Suite::ChaCha20Poly1305;
        if (counted && blocks > limits.most_blocks) || self.next == u64::MAX {
            return Err(SealFault::Spent);
        }
        let header = Dtls::record_header(self.epoch.0, self.next);
        let nonce = nonce(&self.keys.iv, self.next);
        self.next += 1;
        self.blocks = blocks;
        self.keys
            .layer
            .seal(&nonce, &header, place.text, place.tag)
            .map_err(|RecordFault| SealFault::Cipher)?;
        *place.header = mask(&mut self.keys, header, place.text, place.tag);
        Ok(())
    }
}

/// Receiving keys of one epoch, and their record numbers.
#[derive(Debug)]
pub(super) struct ReceiveContext {
    pub(super) epoch: Epoch,
    keys: RecordKeys,
    window: ReplayWindow,
    histories: NumberHistories,
    blocks: u64,
    tries_failed: u64,
    stats: EpochStats,
}

impl ReceiveContext {
    pub(super) fn new(epoch: Epoch, keys: RecordKeys) -> Self {
        ReceiveContext {
            epoch,
            keys,
            window: ReplayWindow::default(),
            histories: NumberHistories::default(),
            blocks: 0,
            tries_failed: 0,
            stats: EpochStats::default(),
        }
    }

    pub(super) fn stats(&self) -> EpochStats {
        self.stats
    }

    /// Returns the number of decrypted bytes, in whole blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(16)
    }

    #[cfg(test)]
    pub(super) fn tries_failed(&self) -> u64 {
        self.tries_failed
    }

    /// Returns whether more records have failed to decrypt than allowed.
    pub(super) fn is_spent(&self, limits: &KeyLimits) -> bool {
        self.tries_failed > limits.most_failures
    }

    /// Decrypts a record that arrived on `path`. Returns the packet: `head` and the chunks. `None` if the record cannot be
    /// decrypted with any possible number, is a replay, or contains no SCTP chunks. Such a record is not answered.
    pub(super) fn open(
        &mut self,
        path: usize,
        head: &[u8; COMMON_HEADER_LEN],
        record: &Dtls<'_>,
        memory: &mut OpenedPackets,
    ) -> Option<Bytes> {
        let (header, text, tag) = record.parts()?;
        let header = mask(&mut self.keys, *header, text, tag);
        let low = u16::from_be_bytes([header[1], header[2]]);
        let next = self.window.next();
        let first = self.histories.first(path, low, next);
        let mut packet = memory.copy(head, text);
        let mut found = self.try_number(first, &header, &mut packet, tag).then_some(first);
        let searched = found.is_none();
        if searched {
            for number in self.histories.others(path, low, next, first) {
                // The attempt before has overwritten the text.
                packet[COMMON_HEADER_LEN..].copy_from_slice(text);
                if self.try_number(number, &header, &mut packet, tag) {
                    found = Some(number);
                    break;
                }
            }
        }
        let Some(number) = found else {
            self.histories.on_search_failed(path);
            self.stats.failed += 1;
            return None;
        };
        if self.window.look(number) != NumberStatus::Fresh {
            self.stats.replayed += 1;
            return None;
        }
        self.window.mark(number);
        self.histories.on_opened(path, number, self.window.next(), searched);
        self.stats.opened += 1;
        self.stats.far_behind += u64::from(next.saturating_sub(number) > 1 << 15);
        self.blocks = self.blocks.saturating_add(1 + (text.len() as u64).div_ceil(16));
        let chunks = Dtls::chunks_in(&packet[COMMON_HEADER_LEN..])?.len();
        packet.truncate(COMMON_HEADER_LEN + chunks);
        Some(packet.freeze())
    }

    /// Decrypts the bytes behind the common header in `packet`; returns whether `number` is that of the record.
    fn try_number(
        &mut self,
        number: u64,
        header: &[u8; 3],
        packet: &mut [u8],
        tag: &[u8; RECORD_TAG_LEN],
    ) -> bool {
        let nonce = nonce(&self.keys.iv, number);
        let opened = self.keys.layer.open(&nonce, header, &mut packet[COMMON_HEADER_LEN..], tag).is_ok();
        self.tries_failed += u64::from(!opened);
        opened
    }
}
