//! The packet checksum: CRC32c, stored least significant byte first (RFC 9260 §6.8, appendix A).
//!
//! Owns its computation and storage. The caller decides when a packet may have none (RFC 9653); see
//! [`crate::ChecksumRule`].

/// Length of the common header, which holds the checksum.
pub const COMMON_HEADER_LEN: usize = 12;

/// Bytes of the common header that hold the checksum.
const FIELD: std::ops::Range<usize> = 8..12;

/// Returns the CRC32c of `packet`, computed with a checksum field of zero whatever the field contains. A slice too
/// short for a common header has no such field: the result is the CRC32c of its bytes.
#[inline]
pub fn checksum(packet: &[u8]) -> u32 {
    match packet.split_first_chunk::<COMMON_HEADER_LEN>() {
        None => of(packet),
        Some((header, rest)) => {
            let mut header = *header;
            header[FIELD].fill(0);
            let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
            digest.update(&header);
            digest.update(rest);
            digest.finalize() as u32
        }
    }
}

/// Computes the CRC32c of `packet` and stores it in its common header. Does not change a slice too short for a common
/// header.
#[inline]
pub fn seal(packet: &mut [u8]) {
    let crc = checksum(packet);
    store(packet, crc);
}

/// Computes and stores the CRC32c of a packet whose checksum field is still zero, as after
/// [`Seal::Zero`](crate::Seal::Zero). Does not change a slice too short for a common header.
///
/// A processor that reads bytes immediately after it wrote them waits for its own stores. So a caller that writes
/// several packets writes all of them first, and then calls this for each.
#[inline]
pub fn seal_zeroed(packet: &mut [u8]) {
    // The field is zero, so the checksum takes one pass over the unchanged packet.
    let crc = of(packet);
    store(packet, crc);
}

/// Returns the CRC32c of `bytes` unchanged. The catalogue of CRCs lists CRC32c as CRC-32/ISCSI.
#[inline]
pub(crate) fn of(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Writes `crc` into the checksum field.
#[inline]
pub(crate) fn store(packet: &mut [u8], crc: u32) {
    if let Some(field) = packet.get_mut(FIELD) {
        field.copy_from_slice(&crc.to_le_bytes());
    }
}

/// Returns the checksum field of a common header.
#[inline]
pub(crate) fn stored(header: &[u8; COMMON_HEADER_LEN]) -> u32 {
    u32::from_le_bytes([header[8], header[9], header[10], header[11]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc32c() {
        assert_eq!(checksum(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn the_field_itself_does_not_count() {
        let mut packet: Vec<u8> = (0..40).collect();
        packet[8..12].fill(0);
        let expected = of(&packet);
        packet[8..12].copy_from_slice(&[9, 8, 7, 6]);
        assert_eq!(checksum(&packet), expected);
        seal(&mut packet);
        assert_eq!(packet[8..12], expected.to_le_bytes());
        assert_eq!(checksum(&packet), expected);

        let sealed = packet.clone();
        packet[8..12].fill(0);
        seal_zeroed(&mut packet);
        assert_eq!(packet, sealed);
    }

    #[test]
    fn too_short_to_seal_is_left_alone() {
        let mut short = [1u8; 11];
        seal(&mut short);
        seal_zeroed(&mut short);
        assert_eq!(short, [1; 11]);
    }
}
