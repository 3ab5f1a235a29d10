//! Reads of integers from headers. The size of a header is part of its type, so a read outside it does not compile.

/// Returns the big-endian `u16` at offset `AT`; an offset outside the header does not compile.
#[inline]
pub(crate) fn u16_at<const AT: usize, const N: usize>(header: &[u8; N]) -> u16 {
    const { assert!(AT + 2 <= N) };
    u16::from_be_bytes([header[AT], header[AT + 1]])
}

/// Returns the big-endian `u32` at offset `AT`; an offset outside the header does not compile.
#[inline]
pub(crate) fn u32_at<const AT: usize, const N: usize>(header: &[u8; N]) -> u32 {
    const { assert!(AT + 4 <= N) };
    u32::from_be_bytes([header[AT], header[AT + 1], header[AT + 2], header[AT + 3]])
}

/// Returns the bytes that bring `len` to a multiple of four: 0 to 3 (RFC 9260 §3.2).
#[inline]
pub(crate) const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}

/// Returns `len` with its padding.
#[inline]
pub(crate) const fn padded(len: usize) -> usize {
    len + padding(len)
}

/// Appends the zero bytes that bring everything written since `start` to a multiple of four.
#[inline]
pub(crate) fn pad(out: &mut Vec<u8>, start: usize) {
    const ZEROS: [u8; 3] = [0; 3];
    let missing = padding(out.len() - start);
    if missing > 0 {
        out.extend_from_slice(&ZEROS[..missing]);
    }
}
