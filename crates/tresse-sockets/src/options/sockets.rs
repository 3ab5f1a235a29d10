//! Options at level SOL_SOCKET. Those about waiting are options of the descriptor's local socket.

use std::time::Duration;

use rustix::io::Errno;
use tresse_proto::Adjustment;
use tresse_proto::config::Size;

use super::{CURRENT, Target, int, on};
use crate::call::Call;
use crate::ffi;
use crate::layout::{Fields, Filled};
use crate::settings::{LARGEST_BUFFER, Style};

/// Returns whether an option is set on the descriptor's local socket: options about how long and for how much calls wait, and flags
/// without an effect on SCTP. The local socket would accept other options too, without effect (SO_BINDTODEVICE, SO_ATTACH_FILTER),
/// or with harm to how calls wait (SO_PEEK_OFF).
fn is_native(name: i32) -> bool {
    let waiting = [
        libc::SO_RCVTIMEO,
        libc::SO_SNDTIMEO,
        RCVTIMEO_NEW,
        SNDTIMEO_NEW,
        libc::SO_RCVLOWAT,
        libc::SO_SNDLOWAT,
    ];
    let flags =
        [libc::SO_REUSEADDR, libc::SO_KEEPALIVE, libc::SO_BROADCAST, libc::SO_DEBUG, libc::SO_OOBINLINE];
    waiting.contains(&name) || flags.contains(&name)
}

/// SO_RCVTIMEO for 64-bit times, of programs on 32-bit machines.
const RCVTIMEO_NEW: i32 = 66;
/// SO_SNDTIMEO of such programs.
const SNDTIMEO_NEW: i32 = 67;

pub(super) fn set(call: &Call, name: i32, value: &[u8]) -> Result<(), Errno> {
    let mut target = Target::new(call);
    match name {
        // As in Linux, any size is accepted and clamped to the possible range.
        libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => {
            let size = buffer_size(value)?;
            target.configure(|config| config.send_buffer = Size(size))?;
            for id in target.scope(CURRENT)?.ids {
                // An association that has ended refuses the change, which would have no effect.
                let change = Adjustment::default().with(|a| a.send_buffer = Some(size));
                let _ = target.association(id)?.adjust(change);
            }
            Ok(())
        }
        libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => {
            let size = Size(buffer_size(value)?);
            target.configure(|config| config.receive_buffer = size)
        }
        libc::SO_LINGER => {
            let (on, seconds) = (value.i32_at(0)? != 0, value.u32_at(4)?);
            target.socket()?.options.linger = on.then(|| Duration::from_secs(u64::from(seconds)));
            Ok(())
        }
        libc::SO_REUSEPORT => {
            target.socket()?.options.reuse_port = on(value)?;
            Ok(())
        }
        libc::SO_ERROR | libc::SO_TYPE | libc::SO_PROTOCOL | libc::SO_DOMAIN | libc::SO_ACCEPTCONN => {
            Err(Errno::NOPROTOOPT)
        }
        _ if is_native(name) => {
            drop(target);
            ffi::set_native_option(&*call.alias, name, value)
        }
        _ => Err(Errno::NOPROTOOPT),
    }
}

pub(super) fn get(call: &Call, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut target = Target::new(call);
    let number = match name {
        libc::SO_ERROR => {
            let key = target.key;
            target.state.take_error(key).map_or(0, Errno::raw_os_error)
        }
        libc::SO_TYPE if call.socket().style == Style::OneToOne => libc::SOCK_STREAM,
        libc::SO_TYPE => libc::SOCK_SEQPACKET,
        libc::SO_PROTOCOL => libc::IPPROTO_SCTP,
        libc::SO_DOMAIN if target.socket()?.six => libc::AF_INET6,
        libc::SO_DOMAIN => libc::AF_INET,
        libc::SO_ACCEPTCONN => i32::from(target.socket()?.limit.is_some()),
        libc::SO_SNDBUF => i32::try_from(target.socket()?.config.send_buffer.0).unwrap_or(i32::MAX),
        libc::SO_RCVBUF => i32::try_from(target.socket()?.config.receive_buffer.0).unwrap_or(i32::MAX),
        libc::SO_REUSEPORT => i32::from(target.socket()?.options.reuse_port),
        libc::SO_LINGER => {
            let linger = target.socket()?.options.linger;
            let seconds = linger.map_or(0, |linger| linger.as_secs() as u32);
            return Ok(Filled::new(8).u32(0, u32::from(linger.is_some())).u32(4, seconds).bytes());
        }
        _ if is_native(name) => {
            drop(target);
            return ffi::native_option(&*call.alias, name, value.len());
        }
        _ => return Err(Errno::NOPROTOOPT),
    };
    Ok(int(number.cast_unsigned()))
}

/// Sets IPV6_V6ONLY: before `bind`, and on IPv6 sockets only.
pub(super) fn set_six_only(call: &Call, value: &[u8]) -> Result<(), Errno> {
    let mut target = Target::new(call);
    if !target.socket()?.six {
        return Err(Errno::NOPROTOOPT);
    }
    if target.state.place.is_some() {
        return Err(Errno::INVAL);
    }
    target.socket()?.options.six_only = on(value)?;
    Ok(())
}

pub(super) fn six_only(call: &Call) -> Result<Vec<u8>, Errno> {
    let mut target = Target::new(call);
    let socket = target.socket()?;
    if socket.six { Ok(int(u32::from(socket.options.six_only))) } else { Err(Errno::NOPROTOOPT) }
}

fn buffer_size(value: &[u8]) -> Result<usize, Errno> {
    let asked = value.u32_at(0)? as usize;
    Ok(asked.clamp(SMALLEST_BUFFER, LARGEST_BUFFER))
}

/// The smallest buffer that the core accepts.
const SMALLEST_BUFFER: usize = 4096;
