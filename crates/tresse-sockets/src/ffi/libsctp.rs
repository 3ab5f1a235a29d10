//! The calls of libsctp (RFC 6458 §9), with their own names.

use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, sockaddr, socklen_t, ssize_t};
use rustix::io::Errno;

use super::messages::{gathered, scattered, whole};
use super::{answer, count, give, given, lent, one_name};
use crate::layout::{Fields, SocketName, names_length};
use crate::message_info::{Received, SendFields, SendInfo};
use crate::receive::receive;
use crate::send::{Data, send};
use crate::{names, open, options};

type AssocId = i32;

/// Returns the bytes of `number` names that follow each other without gaps.
///
/// # Safety
/// `names` is null or points to `number` names.
unsafe fn packed<'a>(names: *const sockaddr, number: c_int) -> Result<&'a [u8], Errno> {
    let number = usize::try_from(number).ok().filter(|&number| number > 0).ok_or(Errno::INVAL)?;
    if names.is_null() {
        return Err(Errno::FAULT);
    }
    let mut length = 0;
    for _ in 0..number {
        // SAFETY: there is one more name, and each has at least its family.
        let family = unsafe { given(names.cast::<u8>().add(length).cast(), 2) }?;
        length += names_length(family)?;
    }
    // SAFETY: `length` is the length of all names together.
    unsafe { given(names.cast(), length) }
}

/// `sctp_bindx` (RFC 6458 §9.1).
///
/// # Safety
/// `addresses` points to `number` names without gaps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_bindx(
    fd: c_int,
    addresses: *mut sockaddr,
    number: c_int,
    flags: c_int,
) -> c_int {
    const ADD: c_int = 1;
    const REMOVE: c_int = 2;
    // SAFETY: the caller guarantees it.
    let names = unsafe { packed(addresses, number) };
    answer(names.and_then(|names| match flags {
        ADD => open::bind_add(fd, names).map(|()| 0),
        REMOVE => open::bind_remove(fd, names).map(|()| 0),
        _ => Err(Errno::INVAL),
    }))
}

/// `sctp_connectx` (RFC 6458 §9.9).
///
/// # Safety
/// `addresses` points to `number` names without gaps; `id` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_connectx(
    fd: c_int,
    addresses: *mut sockaddr,
    number: c_int,
    id: *mut AssocId,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let names = unsafe { packed(addresses, number) };
    answer(names.and_then(|names| {
        let connected = open::connect(fd, names);
        let known = connected.or_else(|error| match error {
            Errno::INPROGRESS => open::number_towards(fd, names),
            _ => Err(error),
        })?;
        if !id.is_null() {
            // SAFETY: the caller guarantees it.
            unsafe { id.write(known) };
        }
        connected.map(|_| 0)
    }))
}

/// `sctp_peeloff` (RFC 6458 §9.2).
#[unsafe(no_mangle)]
pub extern "C" fn sctp_peeloff(fd: c_int, id: AssocId) -> c_int {
    answer(open::peel_off(fd, id, 0))
}

/// `sctp_peeloff_flags` of Linux: SOCK_NONBLOCK and SOCK_CLOEXEC.
#[unsafe(no_mangle)]
pub extern "C" fn sctp_peeloff_flags(fd: c_int, id: AssocId, flags: c_uint) -> c_int {
    answer(open::peel_off(fd, id, flags as c_int))
}

/// `sctp_opt_info` (RFC 6458 §9.5).
///
/// # Safety
/// `size` holds the number of bytes that `value` has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_opt_info(
    fd: c_int,
    id: AssocId,
    option: c_int,
    value: *mut c_void,
    size: *mut socklen_t,
) -> c_int {
    if size.is_null() {
        return answer(Err(Errno::FAULT));
    }
    // SAFETY: the caller guarantees it.
    let room = unsafe { lent(value, *size as usize) };
    let got = room.and_then(|room| {
        if let Some(at) = options::association_offset(option) {
            room.get_mut(at..at + 4).ok_or(Errno::INVAL)?.copy_from_slice(&id.to_ne_bytes());
        }
        options::get_into(fd, libc::IPPROTO_SCTP, option, room)
    });
    // SAFETY: the caller guarantees it.
    answer(got.map(|fits| unsafe {
        *size = socklen_t::try_from(fits).unwrap_or(socklen_t::MAX);
        0
    }))
}

/// Returns the number of names, and writes them to memory that the program frees by [`sctp_freepaddrs`].
///
/// # Safety
/// `to` can be written.
unsafe fn hand_out(got: Result<(Vec<u8>, u32), Errno>, to: *mut *mut sockaddr) -> c_int {
    answer(got.and_then(|(bytes, number)| {
        if to.is_null() {
            return Err(Errno::FAULT);
        }
        if number == 0 {
            return Ok(0);
        }
        // SAFETY: as many bytes are allocated as are written.
        unsafe {
            let memory = libc::malloc(bytes.len());
            if memory.is_null() {
                return Err(Errno::NOMEM);
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len());
            to.write(memory.cast());
        }
        Ok(i32::try_from(number).unwrap_or(i32::MAX))
    }))
}

/// `sctp_getpaddrs` (RFC 6458 §9.3).
///
/// # Safety
/// `addresses` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_getpaddrs(fd: c_int, id: AssocId, addresses: *mut *mut sockaddr) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { hand_out(names::peer_names(fd, id), addresses) }
}

/// `sctp_getladdrs` (RFC 6458 §9.4).
///
/// # Safety
/// `addresses` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_getladdrs(fd: c_int, id: AssocId, addresses: *mut *mut sockaddr) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { hand_out(names::local_names(fd, id), addresses) }
}

/// `sctp_freepaddrs`.
///
/// # Safety
/// `addresses` is null or came from [`sctp_getpaddrs`] and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_freepaddrs(addresses: *mut sockaddr) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { libc::free(addresses.cast()) };
    0
}

/// `sctp_freeladdrs`.
///
/// # Safety
/// `addresses` is null or came from [`sctp_getladdrs`] and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_freeladdrs(addresses: *mut sockaddr) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { sctp_freepaddrs(addresses) }
}

/// `sctp_getaddrlen` of lksctp.
#[unsafe(no_mangle)]
pub extern "C" fn sctp_getaddrlen(family: libc::sa_family_t) -> c_int {
    answer(names_length(&family.to_ne_bytes()).map(|length| length as c_int))
}

/// `sctp_sendmsg` (RFC 6458 §9.6).
///
/// # Safety
/// `data` points to `len` bytes, and `name` is null or points to `name_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_sendmsg(
    fd: c_int,
    data: *const c_void,
    len: usize,
    name: *mut sockaddr,
    name_len: socklen_t,
    ppid: u32,
    flags: u32,
    stream: u16,
    lifetime: u32,
    context: u32,
) -> c_int {
    let fields = SendFields { stream, flags: flags as u16, ppid, context };
    // SAFETY: the caller guarantees it.
    let parts = unsafe { (whole(fd, data, len), one_name(name, name_len)) };
    answer_short(parts.0.and_then(|data| {
        let info = SendInfo { name: parts.1?.to_vec(), ..SendInfo::of_fields(fields, lifetime) };
        send(fd, data, &info, 0)
    }))
}

/// `sctp_send` (RFC 6458 §9.7).
///
/// # Safety
/// `data` points to `len` bytes, and `info` is null or a `struct sctp_sndrcvinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_send(
    fd: c_int,
    data: *const c_void,
    len: usize,
    info: *const c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { sctp_sendx(fd, data, len, std::ptr::null_mut(), 0, info, flags) }
}

/// `sctp_sendx` (RFC 6458 §9.8).
///
/// # Safety
/// As for [`sctp_send`]; `names` is null or points to `number` names without gaps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_sendx(
    fd: c_int,
    data: *const c_void,
    len: usize,
    names: *mut sockaddr,
    number: c_int,
    info: *const c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let (data, names, info) = unsafe {
        let names = if names.is_null() { Ok(&[][..]) } else { packed(names, number) };
        (whole(fd, data, len), names, given(info, if info.is_null() { 0 } else { 32 }))
    };
    answer_short(data.and_then(|data| {
        let info = info?;
        let how = if info.is_empty() { SendInfo::default() } else { SendInfo::of_sndrcv(info)? };
        send(fd, data, &SendInfo { name: names?.to_vec(), ..how }, flags)
    }))
}

/// `sctp_sendv` (RFC 6458 §9.12).
///
/// # Safety
/// `buffers`, `names` and `info` point to as much memory as the numbers after them say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_sendv(
    fd: c_int,
    buffers: *const iovec,
    buffer_count: c_int,
    names: *mut sockaddr,
    number: c_int,
    info: *mut c_void,
    info_len: socklen_t,
    info_type: c_uint,
    flags: c_int,
) -> c_int {
    let buffer_count = usize::try_from(buffer_count).map_err(|_| Errno::INVAL);
    // SAFETY: the caller guarantees it.
    let (data, names, info) = unsafe {
        let names = if names.is_null() || number == 0 { Ok(&[][..]) } else { packed(names, number) };
        (buffer_count.and_then(|count| gathered(fd, buffers, count)), names, given(info, info_len as usize))
    };
    answer_short(data.and_then(|data| {
        let how = sendv_info(info?, info_type)?;
        send(fd, Data::Owned(data), &SendInfo { name: at_one_port(names?)?, ..how }, flags)
    }))
}

/// Returns these names with the port of the first one. As in Linux, which has no place for other ports, those are ignored.
fn at_one_port(names: &[u8]) -> Result<Vec<u8>, Errno> {
    let all = SocketName::read_all(names)?;
    let port = all.first().map_or(0, |first| first.port);
    Ok(all.iter().flat_map(|name| SocketName { port, ..*name }.write(false)).collect())
}

/// Reads the `info` argument of `sctp_sendv`, of the type `kind`.
fn sendv_info(info: &[u8], kind: c_uint) -> Result<SendInfo, Errno> {
    const NO_INFO: c_uint = 0;
    const SNDINFO: c_uint = 1;
    const PRINFO: c_uint = 2;
    const AUTHINFO: c_uint = 3;
    const SPA: c_uint = 4;
    match kind {
        NO_INFO if info.is_empty() => Ok(SendInfo::default()),
        SNDINFO => SendInfo::of_sndinfo(info),
        PRINFO => Ok(SendInfo { policy: Some((info.u16_at(0)?, info.u32_at(4)?)), ..SendInfo::default() }),
        AUTHINFO => info.u16_at(0).map(|_| SendInfo::default()),
        SPA => {
            let valid = info.u32_at(0)?;
            let mut how = if valid & 1 != 0 {
                SendInfo::of_sndinfo(info.get(4..20).ok_or(Errno::INVAL)?)?
            } else {
                SendInfo::default()
            };
            if valid & 2 != 0 {
                how.policy = Some((info.u16_at(20)?, info.u32_at(24)?));
            }
            Ok(how)
        }
        _ => Err(Errno::INVAL),
    }
}

/// `sctp_recvmsg` (RFC 6458 §9.10).
///
/// # Safety
/// `data` has room for `len` bytes; `name`, `info` and `flags` are null or have room for what the call writes there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_recvmsg(
    fd: c_int,
    data: *mut c_void,
    len: usize,
    name: *mut sockaddr,
    name_len: *mut socklen_t,
    info: *mut c_void,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let given_flags = if flags.is_null() { 0 } else { unsafe { *flags } };
    // SAFETY: the caller guarantees it.
    let received = unsafe { lent(data, len) }
        .and_then(|data| receive(fd, &mut [std::io::IoSliceMut::new(data)], given_flags, !name.is_null()));
    answer_short(received.and_then(|received| {
        // SAFETY: the caller guarantees it.
        unsafe {
            if !name_len.is_null() {
                give(&received.name, name.cast(), name_len)?;
            }
            if let Some(fields) = received.info.filter(|_| !info.is_null() && received.wants_old_info) {
                let bytes = fields.older_bytes();
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), info.cast(), bytes.len());
            }
            if !flags.is_null() {
                *flags = received.flags;
            }
        }
        Ok(received.bytes)
    }))
}

/// `sctp_recvv` (RFC 6458 §9.13).
///
/// # Safety
/// `buffers` points to `buffer_count` buffers; the other pointers are null or have room for what the call writes there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_recvv(
    fd: c_int,
    buffers: *const iovec,
    buffer_count: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
    info: *mut c_void,
    info_len: *mut socklen_t,
    info_type: *mut c_uint,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let given_flags = if flags.is_null() { 0 } else { unsafe { *flags } };
    let number = usize::try_from(buffer_count).map_err(|_| Errno::INVAL);
    // SAFETY: the caller guarantees it.
    let into = number.and_then(|number| unsafe { scattered(buffers, number) });
    answer_short(into.and_then(|mut into| receive(fd, &mut into, given_flags, !from.is_null())).and_then(
        |received| {
            let (kind, bytes) = recvv_info(&received);
            // SAFETY: the caller guarantees it.
            unsafe {
                if !from_len.is_null() {
                    give(&received.name, from.cast(), from_len)?;
                }
                let room = if info_len.is_null() { 0 } else { *info_len as usize };
                let fits = !info.is_null() && room >= bytes.len();
                if fits && !bytes.is_empty() {
                    give(&bytes, info, info_len)?;
                } else if !info_len.is_null() {
                    *info_len = 0;
                }
                if !info_type.is_null() {
                    *info_type = if fits { kind } else { 0 };
                }
                if !flags.is_null() {
                    *flags = received.flags;
                }
            }
            Ok(received.bytes)
        },
    ))
}

/// Returns the information for `sctp_recvv`, and its type.
fn recvv_info(received: &Received) -> (c_uint, Vec<u8>) {
    const NO_INFO: c_uint = 0;
    const RCVINFO: c_uint = 1;
    const NXTINFO: c_uint = 2;
    const RN: c_uint = 3;
    let info = received.info.filter(|_| received.wants_info).map(|info| info.bytes());
    let next = received.next.map(|next| next.bytes());
    match (info, next) {
        (Some(info), Some(next)) => (RN, [info, next].concat()),
        (Some(info), None) => (RCVINFO, info),
        (None, Some(next)) => (NXTINFO, next),
        (None, None) => (NO_INFO, Vec::new()),
    }
}

/// Converts the result of a call that returns a number of bytes as an `int`; for an error it sets `errno` and returns -1.
fn answer_short(result: Result<usize, Errno>) -> c_int {
    c_int::try_from(count(result) as ssize_t).unwrap_or(c_int::MAX)
}
