//! Buffers that packets are received into. A buffer that is at least half full is not copied: its packets refer to it until the
//! last part of them is dropped, and another buffer takes its place.
//!
//! A few bytes of a packet can keep a whole buffer allocated, so the number of shared buffers is bounded; other packets are copied
//! to memory of their own size.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Receive buffers, one for each message of a receive call.
pub(crate) struct Buffers {
    pub(crate) ready: Vec<Vec<u8>>,
    pool: Arc<Mutex<BufferPool>>,
}

/// Free buffers, and the number of shared ones.
#[derive(Default)]
struct BufferPool {
    free: Vec<Vec<u8>>,
    out: usize,
}

fn lock(pool: &Mutex<BufferPool>) -> MutexGuard<'_, BufferPool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffers {
    pub(crate) fn new(count: usize) -> Self {
        Buffers { ready: vec![vec![0; SIZE]; count], pool: Arc::default() }
    }

    /// Returns the first `length` bytes of the buffer at `at`. If they are not to be copied, another buffer takes its place.
    pub(crate) fn take(&mut self, at: usize, length: usize) -> Filled<'_> {
        let length = length.min(SIZE);
        let mut pool = lock(&self.pool);
        if length < LEAST_OUT || pool.out == MOST_OUT {
            drop(pool);
            return Filled::Here(&self.ready[at][..length]);
        }
        pool.out += 1;
        let fresh = pool.free.pop();
        drop(pool);
        let buffer = std::mem::replace(&mut self.ready[at], fresh.unwrap_or_else(|| vec![0; SIZE]));
        let out = SharedBuffer { buffer, pool: Arc::clone(&self.pool) };
        Filled::Out(Bytes::from_owner(out).slice(..length))
    }
}

/// Bytes received in one buffer.
pub(crate) enum Filled<'a> {
    /// Bytes in a receive buffer, to be copied.
    Here(&'a [u8]),
    /// Bytes of a shared buffer, which is kept as long as any part of them.
    Out(Bytes),
}

impl Filled<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Filled::Here(bytes) => bytes,
            Filled::Out(bytes) => bytes,
        }
    }

    /// Returns a part of `bytes` that can be kept.
    pub(crate) fn keep(&self, part: &[u8]) -> Bytes {
        match self {
            Filled::Here(_) => Bytes::copy_from_slice(part),
            Filled::Out(bytes) => bytes.slice_ref(part),
        }
    }
}

/// A shared buffer: packets refer to it.
struct SharedBuffer {
    buffer: Vec<u8>,
    pool: Arc<Mutex<BufferPool>>,
}

impl AsRef<[u8]> for SharedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        let mut pool = lock(&self.pool);
        pool.out -= 1;
        if pool.free.len() < MOST_FREE {
            pool.free.push(std::mem::take(&mut self.buffer));
        }
    }
}

/// Size of a buffer in bytes: the most that receive offload joins.
const SIZE: usize = 65_536;
/// Least number of bytes for which a buffer is shared.
const LEAST_OUT: usize = SIZE / 2;
/// Greatest number of shared buffers: 4 MiB.
const MOST_OUT: usize = 64;
/// Greatest number of free buffers.
const MOST_FREE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of shared and of free buffers.
    fn count(buffers: &Buffers) -> (usize, usize) {
        let pool = lock(&buffers.pool);
        (pool.out, pool.free.len())
    }

    #[test]
    fn a_full_buffer_is_out_until_its_last_part_is_gone() {
        let mut buffers = Buffers::new(2);
        buffers.ready[1].fill(7);
        let part = {
            let filled = buffers.take(1, 60_000);
            assert_eq!(filled.bytes().len(), 60_000);
            filled.keep(&filled.bytes()[100..200])
        };
        assert_eq!(buffers.ready[1][0], 0, "another one is in its place");
        assert_eq!(count(&buffers), (1, 0));
        assert_eq!(part[..], [7; 100]);
        drop(part);
        assert_eq!(count(&buffers), (0, 1));
    }

    #[test]
    fn little_is_copied_and_only_so_many_are_out() {
        let mut buffers = Buffers::new(1);
        assert!(matches!(buffers.take(0, LEAST_OUT - 1), Filled::Here(_)));
        let kept: Vec<Bytes> = (0..1000)
            .map(|_| {
                let filled = buffers.take(0, SIZE + 1);
                filled.keep(&filled.bytes()[..1])
            })
            .collect();
        assert_eq!(lock(&buffers.pool).out, MOST_OUT);
        drop(kept);
        assert_eq!(count(&buffers), (0, MOST_FREE));
    }
}
