//! Memory that packets are received into. A buffer that is nearly full is not copied: its packets refer to it until the last part
//! of them is gone, and another one takes its place.
//!
//! A few bytes of a packet then keep a whole buffer, so only so many are out at a time; other packets get memory of their own
//! size.

use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::stack::lock;

/// A buffer for each message of one receive call.
pub(crate) struct Buffers {
    pub(crate) ready: Vec<Vec<u8>>,
    shelf: Arc<Mutex<BufferPool>>,
}

/// Buffers that wait for their turn, and how many are out.
#[derive(Default)]
struct BufferPool {
    free: Vec<Vec<u8>>,
    out: usize,
}

impl Buffers {
    pub(crate) fn new(count: usize) -> Self {
        Buffers { ready: vec![vec![0; SIZE]; count], shelf: Arc::default() }
    }

    /// The first `length` bytes of a buffer, as one piece of memory that may be cut.
    pub(crate) fn take(&mut self, at: usize, length: usize) -> Filled<'_> {
        let length = length.min(SIZE);
        let mut shelf = lock(&self.shelf);
        if length < LEAST_OUT || shelf.out == MOST_OUT {
            drop(shelf);
            return Filled::Here(&self.ready[at][..length]);
        }
        shelf.out += 1;
        let fresh = shelf.free.pop();
        drop(shelf);
        let buffer = std::mem::replace(&mut self.ready[at], fresh.unwrap_or_else(|| vec![0; SIZE]));
        let out = SharedBuffer { buffer, shelf: Arc::clone(&self.shelf) };
        Filled::Out(Bytes::from_owner(out).slice(..length))
    }
}

/// Bytes received in one buffer.
pub(crate) enum Filled<'a> {
    /// To be copied.
    Here(&'a [u8]),
    /// Kept as long as any part of it.
    Out(Bytes),
}

impl Filled<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Filled::Here(bytes) => bytes,
            Filled::Out(bytes) => bytes,
        }
    }

    /// A part of `bytes`, to be kept.
    pub(crate) fn keep(&self, part: &[u8]) -> Bytes {
        match self {
            Filled::Here(_) => Bytes::copy_from_slice(part),
            Filled::Out(bytes) => bytes.slice_ref(part),
        }
    }
}

/// A buffer that packets refer to.
struct SharedBuffer {
    buffer: Vec<u8>,
    shelf: Arc<Mutex<BufferPool>>,
}

impl AsRef<[u8]> for SharedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        let mut shelf = lock(&self.shelf);
        shelf.out -= 1;
        if shelf.free.len() < MOST_FREE {
            shelf.free.push(std::mem::take(&mut self.buffer));
        }
    }
}

/// Size of a buffer: what receive offload may join.
const SIZE: usize = 65_536;
/// Bytes that make a buffer worth it.
const LEAST_OUT: usize = SIZE / 2;
/// Buffers that are out at a time: 4 MiB.
const MOST_OUT: usize = 64;
/// Buffers that are kept for the next time.
const MOST_FREE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers that are out, and that wait.
    fn count(buffers: &Buffers) -> (usize, usize) {
        let shelf = lock(&buffers.shelf);
        (shelf.out, shelf.free.len())
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
        assert_eq!(lock(&buffers.shelf).out, MOST_OUT);
        drop(kept);
        assert_eq!(count(&buffers), (0, MOST_FREE));
    }
}
