//! The receive buffer: held data, free room, and the announced window (a_rwnd).
//!
//! Counts DATA chunks with their headers, as the peer counts what it has outstanding (RFC 9260 §1.3): the announced window
//! has the same unit. Independent of the contents of the data.

/// Bytes and chunks held, and the size of the buffer.
#[derive(Debug)]
pub(super) struct Window {
    buffer: usize,
    /// Free space below this is announced as 0.
    tiny: usize,
    used: usize,
    chunks: usize,
    /// Bytes of the packets that brought data since the buffer was last empty: slices of packets keep no more memory allocated.
    packets: usize,
}

impl Window {
    /// An empty buffer of `buffer` bytes, on paths whose packets have at most `mtu` bytes.
    pub(super) fn new(buffer: usize, mtu: usize) -> Self {
        Window { buffer, tiny: mtu.min(buffer / 4), used: 0, chunks: 0, packets: 0 }
    }

    /// Returns the bytes held.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Returns the bytes and chunks held.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.used, self.chunks)
    }

    /// Adds a chunk of `len` bytes.
    #[inline]
    pub(super) fn hold(&mut self, len: usize) {
        self.used += len;
        self.chunks += 1;
    }

    /// Counts a packet of `len` bytes that brought data to keep.
    #[inline]
    pub(super) fn on_packet(&mut self, len: usize) {
        self.packets = self.packets.saturating_add(len);
    }

    /// Removes `chunks` chunks with `len` bytes together.
    #[inline]
    pub(super) fn release(&mut self, len: usize, chunks: usize) {
        self.used = self.used.saturating_sub(len);
        self.chunks = self.chunks.saturating_sub(chunks);
        if self.chunks == 0 {
            self.packets = 0;
        }
    }

    /// Returns whether a chunk of `len` bytes may be added: up to the size of the buffer, or up to twice that size if it fills
    /// a gap. An empty buffer takes any chunk.
    #[inline]
    pub(super) fn fits(&self, len: usize, fills_gap: bool) -> bool {
        let limit = if fills_gap { 2 * self.buffer } else { self.buffer };
        self.chunks == 0 || occupancy(self.used + len, self.chunks + 1) <= limit
    }

    /// Returns whether one more chunk may be added, however long: the held chunks take no more than twice the buffer, or are
    /// the one chunk that an empty buffer took.
    pub(super) fn has_room_for_one(&self) -> bool {
        self.chunks == 1 || self.fits(0, true)
    }

    /// Returns whether so much is held that wasted memory matters: a good part of the buffer, in packets that may together be
    /// larger than the buffer. An application that takes everything now and then never gets there.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.packets > self.buffer && occupancy(self.used, self.chunks) > self.buffer / CROWDED
    }

    /// Returns the window to announce, in bytes. A window smaller than a packet, or than a quarter of a small buffer, would be
    /// filled with small chunks: then 0 is announced until there is more (silly window syndrome, RFC 1122 §4.2.3.3).
    pub(super) fn announced(&self) -> usize {
        let free = self.buffer.saturating_sub(occupancy(self.used, self.chunks));
        if free < self.tiny { 0 } else { free }
    }
}

/// Returns the bytes of the buffer that `chunks` chunks of `bytes` bytes together occupy. It is their size, unless they are so
/// small on average that their overhead here outweighs it.
fn occupancy(bytes: usize, chunks: usize) -> usize {
    bytes.max(chunks * LEAST_CHARGE)
}

/// Least bytes that a held chunk occupies. Each needs a queue entry, and keeps its packet allocated or is a copy of its own. So
/// memory is bounded: little more than the limit if chunks fill their packets, and a few times the limit if a hostile peer puts
/// one byte of data into each packet of 1,500 bytes.
const LEAST_CHARGE: usize = 64;

/// Divisor of the buffer: while less than that part is held, the packets that stay allocated do not matter. An application that
/// reads lets less be held, except while packets are missing.
const CROWDED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn held(buffer: usize, chunks: &[usize]) -> Window {
        let mut window = Window::new(buffer, 1500);
        chunks.iter().for_each(|&len| window.hold(len));
        window
    }

    #[test]
    fn the_window_is_what_is_free() {
        let mut window = held(10_000, &[1400, 600]);
        assert_eq!((window.used(), window.announced()), (2000, 8000));
        window.release(1400, 1);
        assert_eq!((window.used(), window.announced()), (600, 9400));
    }

    #[test]
    fn a_tiny_window_is_announced_as_none() {
        assert_eq!(held(10_000, &[8500]).announced(), 1500);
        assert_eq!(held(10_000, &[8501]).announced(), 0);
        assert_eq!(held(10_000, &[20_000]).announced(), 0);
        // Of a buffer that holds few packets, a quarter is worth announcing.
        assert_eq!(held(2000, &[1500]).announced(), 500);
        assert_eq!(held(2000, &[1501]).announced(), 0);
    }

    #[test]
    fn the_buffer_is_the_limit_and_twice_that_for_gaps() {
        let window = held(10_000, &[9000]);
        assert!(window.fits(1000, false) && !window.fits(1001, false));
        assert!(window.fits(11_000, true) && !window.fits(11_001, true));
        assert!(held(2000, &[]).fits(9000, false), "an empty buffer takes any chunk");
    }

    #[test]
    fn only_more_packets_than_the_buffer_holds_without_a_pause_make_it_crowded() {
        let mut window = held(6400, &[64; 7]);
        window.on_packet(6400);
        assert!(!window.is_crowded());
        window.on_packet(1);
        assert!(window.is_crowded());
        window.release(128, 2);
        window.release(64, 1);
        assert!(!window.is_crowded(), "not much is left");
        [64; 3].into_iter().for_each(|len| window.hold(len));
        assert!(window.is_crowded());
        window.release(64 * 7, 7);
        [64; 7].into_iter().for_each(|len| window.hold(len));
        assert!(!window.is_crowded(), "it was empty");
    }

    #[test]
    fn small_chunks_are_charged_for_what_surrounds_them() {
        let window = held(6400, &[1; 60]);
        assert_eq!((window.used(), window.announced()), (60, 6400 - 60 * 64));
        let window = held(6400, &[1; 100]);
        assert_eq!(window.announced(), 0);
        assert!(!window.fits(1, false) && window.fits(1, true));
        assert!(!held(6400, &[1; 200]).fits(1, true));
        assert_eq!(held(6400, &[64; 60]).announced(), 6400 - 60 * 64, "no charge beyond the data");
    }
}
