//! Decryption of packets with the keys of a key log.

use std::path::Path;

use tresse::security::{LoggedKey, Opener};
use tresse_wire::{COMMON_HEADER_LEN, ChecksumRule, Chunk, Packet, seal};

use crate::failure::{Failure, words};
use crate::input;

/// Reads a key log, and returns a decryptor of records with its keys.
pub(super) fn read(file: &Path) -> Result<Opener, Failure> {
    let shown = file.display();
    let wrong = |what: &str| Failure::usage(format!("--key-log {shown}: {what}"));
    let text = input::read_text(file, LONGEST_LOG).map_err(|error| wrong(&words(&error)))?;
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let keys = lines.map(|(number, line)| {
        line.parse::<LoggedKey>().map_err(|error| wrong(&format!("line {} {error}", number + 1)))
    });
    Ok(Opener::new(keys.collect::<Result<Vec<_>, _>>()?))
}

/// Most bytes of a key log: the keys of some hundred thousand associations.
const LONGEST_LOG: u64 = 256 << 20;

/// Returns the packet as it was before encryption; `None` if it is not encrypted, or no key decrypts it.
pub(super) fn opened(opener: &mut Opener, packet: &[u8]) -> Option<Vec<u8>> {
    let parsed = Packet::parse(packet, ChecksumRule::Trust).ok()?;
    let Some(Ok(Chunk::Dtls(record))) = parsed.chunks().next() else { return None };
    let chunks = opener.open(&record)?;
    let mut clear = packet.get(..COMMON_HEADER_LEN)?.to_vec();
    clear.extend(chunks);
    seal(&mut clear);
    Some(clear)
}
