//! Options by which Linux's libsctp makes its calls, for programs that libsctp is linked into.

use rustix::io::Errno;

use crate::layout::{Fields, Filled};
use crate::names::{local_names, peer_names};
use crate::open::{bind_add, bind_remove, connect, peel_off};

const BINDX_ADD: i32 = 100;
const BINDX_REM: i32 = 101;
const PEELOFF: i32 = 102;
const CONNECTX_OLD: i32 = 107;
const GET_PEER_ADDRS: i32 = 108;
const GET_LOCAL_ADDRS: i32 = 109;
const CONNECTX: i32 = 110;
const CONNECTX3: i32 = 111;
const PEELOFF_FLAGS: i32 = 122;

/// Sets one of these options; returns `None` for any other.
pub(super) fn set(fd: i32, name: i32, value: &[u8]) -> Option<Result<i32, Errno>> {
    Some(match name {
        BINDX_ADD => bind_add(fd, value).map(|()| 0),
        BINDX_REM => bind_remove(fd, value).map(|()| 0),
        CONNECTX_OLD => connect(fd, value).map(|_| 0),
        // The result is the association ID.
        CONNECTX => connect(fd, value),
        _ => return None,
    })
}

/// Reads one of these options; returns `None` for any other.
pub(super) fn get(fd: i32, name: i32, value: &[u8]) -> Option<Result<Vec<u8>, Errno>> {
    let number = value.i32_at(0);
    Some(match name {
        GET_PEER_ADDRS => number.and_then(|number| addresses(number, peer_names(fd, number)?, value.len())),
        GET_LOCAL_ADDRS => number.and_then(|number| addresses(number, local_names(fd, number)?, value.len())),
        PEELOFF => number.and_then(|number| {
            let made = peel_off(fd, number, 0)?;
            Ok(Filled::new(8).i32(0, number).i32(4, made).bytes())
        }),
        PEELOFF_FLAGS => number.and_then(|number| {
            let flags = value.i32_at(8)?;
            let made = peel_off(fd, number, flags)?;
            Ok(Filled::new(12).i32(0, number).i32(4, made).i32(8, flags).bytes())
        }),
        // `struct sctp_getaddrs_old` contains a pointer, which only the boundary to C can follow.
        CONNECTX3 => Err(Errno::OPNOTSUPP),
        _ => return None,
    })
}

/// `struct sctp_getaddrs`.
fn addresses(number: i32, (names, count): (Vec<u8>, u32), room: usize) -> Result<Vec<u8>, Errno> {
    if room < 8 + names.len() {
        return Err(Errno::NOMEM);
    }
    Ok(Filled::new(8).i32(0, number).u32(4, count).tail(&names).bytes())
}
