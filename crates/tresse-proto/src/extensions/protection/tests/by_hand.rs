//! A record layer written from the standards only: AES-GCM from single blocks (NIST SP 800-38D), the record of RFC 9147 §4, and
//! the chunk around it. It shares no code with the core, except the block cipher.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

fn encrypt_block(key: &[u8; 16], block: [u8; 16]) -> [u8; 16] {
    let mut block: Array<u8, _> = block.into();
    Aes128::new(&(*key).into()).encrypt_block(&mut block);
    block.into()
}

/// Returns the product of two elements of GF(2^128), SP 800-38D §6.3.
fn product(x: u128, y: u128) -> u128 {
    const R: u128 = 0xe1 << 120;
    let (mut z, mut v) = (0, y);
    for bit in (0..128).rev() {
        if (x >> bit) & 1 == 1 {
            z ^= v;
        }
        v = if v & 1 == 1 { (v >> 1) ^ R } else { v >> 1 };
    }
    z
}

/// Returns the GHASH (SP 800-38D §6.4) of the authenticated `header` and the encrypted `cipher`.
fn ghash(key: &[u8; 16], header: &[u8], cipher: &[u8]) -> u128 {
    let h = u128::from_be_bytes(encrypt_block(key, [0; 16]));
    let blocks = header.chunks(16).chain(cipher.chunks(16)).map(|part| {
        let mut block = [0; 16];
        block[..part.len()].copy_from_slice(part);
        u128::from_be_bytes(block)
    });
    let lengths = ((header.len() as u128 * 8) << 64) | (cipher.len() as u128 * 8);
    blocks.chain([lengths]).fold(0, |hash, block| product(hash ^ block, h))
}

fn counter(nonce: &[u8; 12], count: u32) -> [u8; 16] {
    let mut block = [0; 16];
    block[..12].copy_from_slice(nonce);
    block[12..].copy_from_slice(&count.to_be_bytes());
    block
}

fn stream(key: &[u8; 16], nonce: &[u8; 12], text: &[u8]) -> Vec<u8> {
    let blocks = text.chunks(16).zip(2..);
    blocks
        .flat_map(|(part, count)| {
            let pad = encrypt_block(key, counter(nonce, count));
            part.iter().zip(pad).map(|(byte, pad)| byte ^ pad).collect::<Vec<_>>()
        })
        .collect()
}

fn tag(key: &[u8; 16], nonce: &[u8; 12], header: &[u8], cipher: &[u8]) -> [u8; 16] {
    let first = u128::from_be_bytes(encrypt_block(key, counter(nonce, 1)));
    (ghash(key, header, cipher) ^ first).to_be_bytes()
}

fn nonce(iv: &[u8; 12], number: u64) -> [u8; 12] {
    let iv = u128::from_be_bytes([&[0; 4][..], iv].concat().try_into().expect("16 bytes"));
    (iv ^ u128::from(number)).to_be_bytes()[4..].try_into().expect("12 bytes")
}

/// Returns the DTLS chunk with its padding that contains `chunks`.
pub(super) fn seal(
    key: &[u8; 16],
    number_key: &[u8; 16],
    iv: &[u8; 12],
    epoch: u64,
    number: u64,
    chunks: &[u8],
) -> Vec<u8> {
    let (n, text) = (nonce(iv, number), [chunks, &[23]].concat());
    let header = [0x28 + (epoch % 4) as u8, (number / 256 % 256) as u8, (number % 256) as u8];
    let cipher = stream(key, &n, &text);
    let encrypted = [&cipher[..], &tag(key, &n, &header, &cipher)].concat();
    let mask = encrypt_block(number_key, encrypted[..16].try_into().expect("a tag at least"));
    let length = (5 + 3 + encrypted.len()) as u16;
    let mut chunk = vec![0x41, 0];
    chunk.extend(length.to_be_bytes());
    chunk.extend([0, header[0], header[1] ^ mask[0], header[2] ^ mask[1]]);
    chunk.extend(encrypted);
    chunk.resize(chunk.len().div_ceil(4) * 4, 0);
    chunk
}

/// Returns the chunks in a DTLS chunk with this epoch and number; `None` if the chunk has others, or a wrong tag.
pub(super) fn open(
    key: &[u8; 16],
    number_key: &[u8; 16],
    iv: &[u8; 12],
    epoch: u64,
    number: u64,
    chunk: &[u8],
) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes([chunk[2], chunk[3]]));
    let encrypted = &chunk[8..length];
    let mask = encrypt_block(number_key, encrypted[..16].try_into().ok()?);
    let header = [chunk[5], chunk[6] ^ mask[0], chunk[7] ^ mask[1]];
    let (cipher, its_tag) = encrypted.split_at(encrypted.len() - 16);
    let n = nonce(iv, number);
    let right = header == [0x28 + (epoch % 4) as u8, (number / 256 % 256) as u8, (number % 256) as u8]
        && tag(key, &n, &header, cipher) == its_tag;
    let text = stream(key, &n, cipher);
    let (&kind, chunks) = text.split_last()?;
    (right && kind == 23).then(|| chunks.to_vec())
}
