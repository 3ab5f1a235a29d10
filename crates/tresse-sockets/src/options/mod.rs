//! Options of sockets and associations: `setsockopt`, `getsockopt` and `sctp_opt_info`.

use rustix::io::Errno;

use crate::layout::Fields;
use crate::socket::{Call, SocketState};

/// `setsockopt(2)`.
///
/// # Errors
/// As that call's and RFC 6458 §8.
pub fn set(fd: i32, level: i32, name: i32, value: &[u8]) -> Result<i32, Errno> {
    let call = Call::on(fd)?;
    let _ = (call, level, name, value);
    Err(Errno::NOPROTOOPT)
}

/// `getsockopt(2)`; `value` is what the program has put there, the association for instance.
///
/// # Errors
/// As that call's and RFC 6458 §8.
pub fn get(fd: i32, level: i32, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let call = Call::on(fd)?;
    if (level, name) == (libc::SOL_SOCKET, libc::SO_ERROR) {
        let mut state = call.lock();
        let error = state.take_error(call.key());
        return Ok(error.map_or(0, Errno::raw_os_error).to_ne_bytes().to_vec());
    }
    let _ = value;
    Err(Errno::NOPROTOOPT)
}

/// `struct sctp_initmsg`.
pub(crate) fn init_message(socket: &mut SocketState, bytes: &[u8]) -> Result<(), Errno> {
    let [outbound, inbound, attempts, timeout] = [0, 2, 4, 6].map(|at| bytes.u16_at(at));
    let (outbound, inbound, attempts, timeout) = (outbound?, inbound?, attempts?, timeout?);
    if outbound != 0 {
        socket.config.outbound_streams = outbound;
    }
    if inbound != 0 {
        socket.config.inbound_streams = inbound;
    }
    if attempts != 0 {
        socket.config.max_init_retransmits = u32::from(attempts);
    }
    if timeout != 0 {
        socket.options.init_timeout = timeout;
    }
    Ok(())
}

/// Where the structure of an option has its association, for `sctp_opt_info`.
pub(crate) fn association_offset(_option: i32) -> usize {
    0
}
