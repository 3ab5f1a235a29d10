//! Memory for received packets. A full buffer is not copied: its packets refer to it until the last of these references
//! is dropped, and another buffer replaces it.
//!
//! A reference to a few bytes of a packet keeps the whole buffer. So only a bounded number of buffers is lent at a
//! time, and none for small packets; other packets get memory of their own size.

use std::io::IoSliceMut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// A buffer for each message of one receive call.
pub(crate) struct Buffers {
    ready: [Vec<u8>; RECEIVE_BATCH],
    pool: Arc<Pool>,
}

impl Buffers {
    pub(super) fn new() -> Self {
        Buffers { ready: std::array::from_fn(|_| empty()), pool: Arc::default() }
    }

    /// Returns the memory into which the system writes arriving packets.
    pub(super) fn slices(&mut self) -> [IoSliceMut<'_>; RECEIVE_BATCH] {
        self.ready.each_mut().map(|buffer| IoSliceMut::new(buffer))
    }

    /// Returns the first `len` bytes of one buffer.
    pub(super) fn filled(&self, at: usize, len: usize) -> &[u8] {
        let buffer = &self.ready[at];
        buffer.get(..len).unwrap_or(buffer)
    }

    /// Returns the same bytes without a copy, and replaces the buffer; `None` if they are to be copied.
    pub(super) fn lend(&mut self, at: usize, len: usize) -> Option<Bytes> {
        if len < LEAST_LENT {
            return None;
        }
        let fresh = self.pool.swap()?;
        let buffer = std::mem::replace(&mut self.ready[at], fresh);
        let lent = SharedBuffer { buffer, pool: Arc::clone(&self.pool) };
        Some(Bytes::from_owner(lent).slice(..len.min(RECEIVE_BUFFER)))
    }
}

/// Buffers that have been returned, and the number of those that have not.
#[derive(Default)]
struct Pool(Mutex<FreeBuffers>);

#[derive(Default)]
struct FreeBuffers {
    free: Vec<Vec<u8>>,
    lent: usize,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, FreeBuffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a buffer that replaces one to be lent, unless too many are lent.
    fn swap(&self) -> Option<Vec<u8>> {
        let mut stock = self.lock();
        if stock.lent == MOST_LENT {
            return None;
        }
        stock.lent += 1;
        Some(stock.free.pop().unwrap_or_else(empty))
    }
}

/// A buffer to which parts of packets refer.
struct SharedBuffer {
    buffer: Vec<u8>,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for SharedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        let mut stock = self.pool.lock();
        stock.lent -= 1;
        if stock.free.len() < MOST_FREE {
            stock.free.push(std::mem::take(&mut self.buffer));
        }
    }
}

fn empty() -> Vec<u8> {
    vec![0; RECEIVE_BUFFER]
}

/// Number of buffers of one receive call.
pub(super) const RECEIVE_BATCH: usize = 8;
/// Size of a buffer: the most bytes that receive offload joins.
pub(super) const RECEIVE_BUFFER: usize = 65_536;
/// Least bytes in a buffer that is lent.
const LEAST_LENT: usize = RECEIVE_BUFFER / 2;
/// Most buffers of a thread that are lent at a time: 4 MiB.
const MOST_LENT: usize = 64;
/// Most unused buffers that are kept.
const MOST_FREE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_is_lent_and_comes_back_with_its_last_part() {
        let mut buffers = Buffers::new();
        buffers.ready[3].fill(7);
        let packets = buffers.lend(3, 60_000).expect("it is full");
        assert_eq!((packets.len(), packets[59_999]), (60_000, 7));
        assert_eq!(buffers.filled(3, 1), [0], "another one is in its place");
        let part = packets.slice(100..200);
        drop(packets);
        assert_eq!(buffers.pool.lock().free.len(), 0);
        assert_eq!(part[..], [7; 100]);
        drop(part);
        let stock = buffers.pool.lock();
        assert_eq!((stock.free.len(), stock.lent), (1, 0));
    }

    #[test]
    fn little_is_not_worth_a_buffer() {
        let mut buffers = Buffers::new();
        assert!(buffers.lend(0, LEAST_LENT - 1).is_none());
        assert!(buffers.lend(0, LEAST_LENT).is_some());
    }

    #[test]
    fn only_so_many_are_lent_and_kept() {
        let mut buffers = Buffers::new();
        let lent: Vec<Bytes> = std::iter::from_fn(|| buffers.lend(0, RECEIVE_BUFFER)).take(1000).collect();
        assert_eq!(lent.len(), MOST_LENT);
        drop(lent);
        assert_eq!(buffers.pool.lock().free.len(), MOST_FREE);
        assert!(buffers.lend(0, RECEIVE_BUFFER).is_some());
    }
}
