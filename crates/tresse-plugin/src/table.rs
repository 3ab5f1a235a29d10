//! What of a table can be checked before anything of it is called. What its hooks do cannot.

use crate::abi::{ABI, Hooks, Table};
use crate::error::Fault;

/// Refuses a table that says of itself that it is none of ours: before more of it is read than these two fields.
pub(crate) fn check_head(abi: u32, size: u32) -> Result<(), Fault> {
    let expected = size_of::<Table>();
    if abi != ABI {
        return Err(Fault::Version(abi));
    }
    if usize::try_from(size) != Ok(expected) {
        return Err(Fault::Size { found: size, expected });
    }
    Ok(())
}

/// The name and the hooks of a table.
pub(crate) fn read(table: &Table) -> Result<(String, Hooks), Fault> {
    Ok((name(table)?, hooks(table)?))
}

fn name(table: &Table) -> Result<String, Fault> {
    let bytes = table.name.map(|letter| letter as u8);
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(Fault::Name)?;
    let accepted = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    let letters = &bytes[..end];
    if letters.is_empty() || !letters.iter().all(accepted) {
        return Err(Fault::Name);
    }
    Ok(letters.iter().copied().map(char::from).collect())
}

fn hooks(table: &Table) -> Result<Hooks, Fault> {
    Ok(Hooks {
        create: table.create.ok_or(Fault::Missing("create"))?,
        destroy: table.destroy.ok_or(Fault::Missing("destroy"))?,
        on_queued: table.on_queued.ok_or(Fault::Missing("on_queued"))?,
        next: table.next.ok_or(Fault::Missing("next"))?,
        on_taken: table.on_taken.ok_or(Fault::Missing("on_taken"))?,
        is_empty: table.is_empty.ok_or(Fault::Missing("is_empty"))?,
        on_removed: table.on_removed,
        on_packet_end: table.on_packet_end,
        set_value: table.set_value,
        value: table.value,
        failure: table.failure,
    })
}
