//! Encrypted packets in the clear, with keys that were logged.

use std::fs;
use std::path::Path;

use tresse::security::{LoggedKey, Opener};
use tresse_wire::{COMMON_HEADER_LEN, ChecksumRule, Chunk, Packet, seal};

use crate::failure::{Failure, words};

/// Reads the keys of a file, and makes of them what opens records.
pub(super) fn read(file: &Path) -> Result<Opener, Failure> {
    let shown = file.display();
    let wrong = |what: &str| Failure::usage(format!("--key-log {shown}: {what}"));
    let text = fs::read_to_string(file).map_err(|error| wrong(&words(&error)))?;
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let keys = lines.map(|(number, line)| {
        line.parse::<LoggedKey>().map_err(|error| wrong(&format!("line {} {error}", number + 1)))
    });
    Ok(Opener::new(keys.collect::<Result<Vec<_>, _>>()?))
}

/// The packet as it was before it became a record; `None` for one that is none, or that no key opens.
pub(super) fn opened(opener: &mut Opener, packet: &[u8]) -> Option<Vec<u8>> {
    let parsed = Packet::parse(packet, ChecksumRule::Trust).ok()?;
    let Some(Ok(Chunk::Dtls(record))) = parsed.chunks().next() else { return None };
    let chunks = opener.open(&record)?;
    let mut clear = packet.get(..COMMON_HEADER_LEN)?.to_vec();
    clear.extend(chunks);
    seal(&mut clear);
    Some(clear)
}
