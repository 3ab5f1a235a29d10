//! CPU time of the AEAD alone for a packet, with the library that the record layer uses.

use std::error::Error;
use std::time::Duration;

#[cfg(feature = "aws-lc-rs")]
use aws_lc_rs as library;
#[cfg(not(feature = "aws-lc-rs"))]
use ring as library;

use library::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Packets between two looks at the clock.
const PACKETS: u32 = 2000;
/// Bytes of the record header that are authenticated with the packet.
const HEADER: [u8; 3] = [0; 3];

/// Seconds to encrypt a packet with AES-128-GCM and to decrypt it again, both in place, where `len` bytes of it are encrypted.
pub(crate) fn seconds_per_packet(len: usize, clock: impl Fn() -> Duration) -> Result<f64, Box<dyn Error>> {
    let key =
        LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_| "a key of another length")?);
    let mut packet = vec![0; len];
    let begin = clock();
    for number in 0..PACKETS {
        let nonce = || {
            let mut nonce = [0; 12];
            nonce[8..].copy_from_slice(&number.to_be_bytes());
            Nonce::assume_unique_for_key(nonce)
        };
        key.seal_in_place_append_tag(nonce(), Aad::from(HEADER), &mut packet).map_err(|_| "not encrypted")?;
        key.open_in_place(nonce(), Aad::from(HEADER), &mut packet).map_err(|_| "not decrypted")?;
        packet.truncate(len);
    }
    Ok((clock() - begin).as_secs_f64() / f64::from(PACKETS))
}
