//! Checks of a table before any of its hooks is called. The behaviour of hooks is not checked here.

use std::ffi::c_char;

use crate::abi::{
    ABI, ASSIGNS, COPIES, ControllerHooks, ControllerTable, Hooks, Life, NAME_SIZE, PathHooks, PathTable,
    StreamHooks, StreamTable,
};
use crate::error::Fault;

/// Checks the version and the size that a table states, before any other field is read.
pub(crate) fn check_head<Table>(abi: u32, size: u32) -> Result<(), Fault> {
    let expected = size_of::<Table>();
    if abi != ABI {
        return Err(Fault::Version(abi));
    }
    if usize::try_from(size) != Ok(expected) {
        return Err(Fault::Size { found: size, expected });
    }
    Ok(())
}

/// Returns the name and the hooks of a stream scheduler.
pub(crate) fn of_streams(table: &StreamTable) -> Result<(String, Hooks), Fault> {
    let name = name(&table.name)?;
    let hooks = StreamHooks {
        life: Life {
            create: table.create.ok_or(Fault::Missing("create"))?,
            destroy: table.destroy.ok_or(Fault::Missing("destroy"))?,
            failure: table.failure,
        },
        on_queued: table.on_queued.ok_or(Fault::Missing("on_queued"))?,
        next: table.next.ok_or(Fault::Missing("next"))?,
        on_taken: table.on_taken.ok_or(Fault::Missing("on_taken"))?,
        is_empty: table.is_empty.ok_or(Fault::Missing("is_empty"))?,
        on_removed: table.on_removed,
        on_packet_end: table.on_packet_end,
        set_value: table.set_value,
        value: table.value,
    };
    Ok((name, Hooks::Stream(hooks)))
}

/// Returns the name and the hooks of a path scheduler.
pub(crate) fn of_paths(table: &PathTable) -> Result<(String, Hooks), Fault> {
    let name = name(&table.name)?;
    if table.flags & !(ASSIGNS | COPIES) != 0 {
        return Err(Fault::Flags(table.flags));
    }
    let hooks = PathHooks {
        flags: table.flags,
        life: Life {
            create: table.create.ok_or(Fault::Missing("create"))?,
            destroy: table.destroy.ok_or(Fault::Missing("destroy"))?,
            failure: table.failure,
        },
        pick: table.pick.ok_or(Fault::Missing("pick"))?,
        on_sent: table.on_sent,
    };
    Ok((name, Hooks::Path(hooks)))
}

/// Returns the name and the hooks of a congestion controller.
pub(crate) fn of_controllers(table: &ControllerTable) -> Result<(String, Hooks), Fault> {
    let name = name(&table.name)?;
    let hooks = ControllerHooks {
        life: Life {
            create: table.create.ok_or(Fault::Missing("create"))?,
            destroy: table.destroy.ok_or(Fault::Missing("destroy"))?,
            failure: table.failure,
        },
        on_ack: table.on_ack.ok_or(Fault::Missing("on_ack"))?,
        on_loss: table.on_loss.ok_or(Fault::Missing("on_loss"))?,
        on_timeout: table.on_timeout,
        on_idle: table.on_idle,
        on_path_added: table.on_path_added,
        pacing_rate: table.pacing_rate,
    };
    Ok((name, Hooks::Controller(hooks)))
}

fn name(letters: &[c_char; NAME_SIZE]) -> Result<String, Fault> {
    let bytes = letters.map(|letter| letter as u8);
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(Fault::Name)?;
    let accepted = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    let letters = &bytes[..end];
    if letters.is_empty() || !letters.iter().all(accepted) {
        return Err(Fault::Name);
    }
    Ok(letters.iter().copied().map(char::from).collect())
}
