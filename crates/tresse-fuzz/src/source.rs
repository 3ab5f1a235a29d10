//! Source of decisions: reads the fuzzer's bytes as numbers until no byte is left.

/// The bytes that are left.
pub(crate) struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Source(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte; 0 if none is left.
    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn word(&mut self) -> u32 {
        u32::from(self.short()) << 16 | u32::from(self.short())
    }

    /// Returns a number, in most cases near 0: errors of sequence numbers are likely near the limits.
    pub(crate) fn offset(&mut self) -> u32 {
        match self.byte() {
            0xff => self.word(),
            0xfe => u32::from(self.short()),
            near => (near as i8 as i32 - 8) as u32,
        }
    }

    /// Returns up to `most` bytes; their number is read first.
    pub(crate) fn slice(&mut self, most: usize) -> &'a [u8] {
        let len = usize::from(self.short()) % (most + 1);
        let (slice, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        slice
    }

    /// Returns all bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
