//! The calls of libc that carry data, with the prefix `tresse_`.

use std::ffi::{c_int, c_uint, c_void};
use std::io::IoSliceMut;
use std::time::{Duration, Instant};

use bytes::Bytes;
use libc::{cmsghdr, iovec, mmsghdr, msghdr, off_t, sockaddr, socklen_t, ssize_t, timespec};
use rustix::io::Errno;

use super::{answer, count, give, given, lent, one_name};
use crate::ancillary;
use crate::message_info::{Received, SendInfo};
use crate::receive::{KEEP_ERROR, receive};
use crate::send::{Data, check_length, send};

/// Returns the data of a message for the socket `fd`. Its length is checked first: a wrong length covers memory that the program
/// does not have.
///
/// # Safety
/// `data` is null or points to `len` bytes that do not change for `'a`, if the send buffer has room for so many.
pub(super) unsafe fn whole<'a>(fd: c_int, data: *const c_void, len: usize) -> Result<Data<'a>, Errno> {
    check_length(fd, len)?;
    // SAFETY: the caller guarantees it.
    unsafe { given(data, len) }.map(Data::of)
}

/// Returns the data of several buffers in one piece; their lengths are checked first.
///
/// # Safety
/// `buffers` points to `count` buffers. Each points to as many bytes as it says, if the send buffer has room for all.
pub(super) unsafe fn gathered(fd: c_int, buffers: *const iovec, count: usize) -> Result<Bytes, Errno> {
    // SAFETY: the caller guarantees it.
    let buffers = unsafe { vector(buffers, count) }?;
    let length = buffers.iter().fold(0, |sum: usize, one| sum.saturating_add(one.iov_len));
    check_length(fd, length)?;
    let mut data = Vec::with_capacity(length);
    for buffer in buffers {
        // SAFETY: the caller guarantees it.
        data.extend_from_slice(unsafe { given(buffer.iov_base, buffer.iov_len) }?);
    }
    Ok(data.into())
}

/// Returns several buffers to be filled.
///
/// # Safety
/// As for `gathered`; no other code uses the bytes for `'a`.
pub(super) unsafe fn scattered<'a>(
    buffers: *const iovec,
    count: usize,
) -> Result<Vec<IoSliceMut<'a>>, Errno> {
    // SAFETY: the caller guarantees it.
    let buffers = unsafe { vector(buffers, count) }?;
    // SAFETY: the caller guarantees it.
    let slice = |buffer: &iovec| unsafe { lent(buffer.iov_base, buffer.iov_len) }.map(IoSliceMut::new);
    buffers.iter().map(slice).collect()
}

/// # Safety
/// `items` is null or points to `count` items.
unsafe fn array<'a, T>(items: *const T, count: usize) -> Result<&'a [T], Errno> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() || !items.is_aligned() {
        return Err(Errno::FAULT);
    }
    if count > MOST_BUFFERS {
        return Err(Errno::MSGSIZE);
    }
    // SAFETY: the caller guarantees it.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}

/// Returns the buffers if they are valid, as in Linux: no length is negative as a signed number.
///
/// # Safety
/// As for `array`.
unsafe fn vector<'a>(buffers: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    // SAFETY: the caller guarantees it.
    let buffers = unsafe { array(buffers, count) }?;
    let fits = buffers.iter().all(|buffer| isize::try_from(buffer.iov_len).is_ok());
    if fits { Ok(buffers) } else { Err(Errno::INVAL) }
}

/// Checks the number of buffers of `readv` and `writev`; too many are EINVAL, and not EMSGSIZE as with `sendmsg`.
fn vector_count(count: c_int) -> Result<usize, Errno> {
    usize::try_from(count).ok().filter(|&count| count <= MOST_BUFFERS).ok_or(Errno::INVAL)
}

/// Returns the result of `readv` and `writev` without buffers: they do nothing.
fn owned(fd: c_int) -> Result<usize, Errno> {
    crate::table::find(fd).map(|_| 0)
}

/// IOV_MAX of Linux, and UIO_MAXIOV.
const MOST_BUFFERS: usize = 1024;

/// `send(2)`.
///
/// # Safety
/// `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_send(fd: c_int, data: *const c_void, len: usize, flags: c_int) -> ssize_t {
    // SAFETY: the caller guarantees it.
    unsafe { tresse_sendto(fd, data, len, flags, std::ptr::null(), 0) }
}

/// `sendto(2)`.
///
/// # Safety
/// `data` points to `len` bytes, and `name` is null or points to `name_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_sendto(
    fd: c_int,
    data: *const c_void,
    len: usize,
    flags: c_int,
    name: *const sockaddr,
    name_len: socklen_t,
) -> ssize_t {
    // SAFETY: the caller guarantees it.
    let (data, name) = unsafe { (whole(fd, data, len), one_name(name, name_len)) };
    count(data.and_then(|data| {
        let info = SendInfo { name: name?.to_vec(), ..SendInfo::default() };
        send(fd, data, &info, flags)
    }))
}

/// `write(2)`.
///
/// # Safety
/// `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_write(fd: c_int, data: *const c_void, len: usize) -> ssize_t {
    // SAFETY: the caller guarantees it.
    unsafe { tresse_send(fd, data, len, 0) }
}

/// `writev(2)`.
///
/// # Safety
/// `buffers` points to `count` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_writev(fd: c_int, buffers: *const iovec, buffer_count: c_int) -> ssize_t {
    let number = match vector_count(buffer_count) {
        Ok(0) => return count(owned(fd)),
        number => number,
    };
    // SAFETY: the caller guarantees it.
    let data = number.and_then(|number| unsafe { gathered(fd, buffers, number) });
    count(data.and_then(|data| send(fd, Data::Owned(data), &SendInfo::default(), 0)))
}

/// `sendmsg(2)` with the ancillary data of RFC 6458 §5.3.
///
/// # Safety
/// `message` is null or valid: its name, buffers and ancillary data point to as much memory as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return count(Err(Errno::FAULT));
    }
    // SAFETY: the caller guarantees it.
    let sent = unsafe {
        let message = &*message;
        let control = given(message.msg_control, message.msg_controllen);
        gathered(fd, message.msg_iov, message.msg_iovlen)
            .and_then(|data| Ok((data, one_name(message.msg_name.cast(), message.msg_namelen)?, control?)))
    };
    count(sent.and_then(|(data, name, control)| {
        let mut info = ancillary::read(control)?;
        info.name = ancillary::with_others(name, &info.name)?;
        send(fd, Data::Owned(data), &info, flags)
    }))
}

/// `recv(2)`.
///
/// # Safety
/// `data` has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_recv(fd: c_int, data: *mut c_void, len: usize, flags: c_int) -> ssize_t {
    // SAFETY: the caller guarantees it.
    unsafe { tresse_recvfrom(fd, data, len, flags, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// `recvfrom(2)`.
///
/// # Safety
/// `data` has room for `len` bytes; `name` is null, or `name_len` holds the number of bytes that it has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_recvfrom(
    fd: c_int,
    data: *mut c_void,
    len: usize,
    flags: c_int,
    name: *mut sockaddr,
    name_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller guarantees it.
    let received = unsafe { lent(data, len) }
        .and_then(|data| receive(fd, &mut [IoSliceMut::new(data)], flags, !name.is_null()));
    count(received.and_then(|received| {
        // SAFETY: the caller guarantees it.
        unsafe { give(&received.name, name.cast(), name_len) }.map(|()| received.bytes)
    }))
}

/// `read(2)`.
///
/// # Safety
/// `data` has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_read(fd: c_int, data: *mut c_void, len: usize) -> ssize_t {
    // SAFETY: the caller guarantees it.
    unsafe { tresse_recv(fd, data, len, 0) }
}

/// `readv(2)`.
///
/// # Safety
/// `buffers` points to `count` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_readv(fd: c_int, buffers: *const iovec, buffer_count: c_int) -> ssize_t {
    let number = match vector_count(buffer_count) {
        Ok(0) => return count(owned(fd)),
        number => number,
    };
    // SAFETY: the caller guarantees it.
    let into = number.and_then(|number| unsafe { scattered(buffers, number) });
    count(into.and_then(|mut into| receive(fd, &mut into, 0, false)).map(|received| received.bytes))
}

/// `recvmsg(2)` with the ancillary data of RFC 6458 §5.3.
///
/// # Safety
/// `message` is null or valid: its name, buffers and ancillary data have room for as much as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return count(Err(Errno::FAULT));
    }
    // SAFETY: the caller guarantees it.
    let message = unsafe { &mut *message };
    // SAFETY: the caller guarantees it.
    let into = unsafe { scattered(message.msg_iov, message.msg_iovlen) };
    let received = into.and_then(|mut into| receive(fd, &mut into, flags, !message.msg_name.is_null()));
    count(received.and_then(|received| {
        // SAFETY: the caller guarantees it.
        unsafe { finish(message, &received) }.map(|()| received.bytes)
    }))
}

/// `sendmmsg(2)`.
///
/// # Safety
/// `messages` is null or points to `number` messages, each as [`tresse_sendmsg`] requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    number: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe {
        several(fd, messages, number, |_, message| tresse_sendmsg(fd, &raw const message.msg_hdr, flags))
    }
}

/// `recvmmsg(2)`. It waits for all messages, with MSG_WAITFORONE for the first one. `limit` is looked at after each message, and gets
/// the time that is left, as in Linux.
///
/// # Safety
/// `messages` is null or points to `number` messages, each as [`tresse_recvmsg`] requires. `limit` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    number: c_uint,
    flags: c_int,
    limit: *mut timespec,
) -> c_int {
    let wait = if flags & libc::MSG_WAITFORONE == 0 { 0 } else { libc::MSG_DONTWAIT };
    let flags = flags & !libc::MSG_WAITFORONE;
    // SAFETY: the caller guarantees it.
    let limit = unsafe { limit.as_mut() };
    let longest = match limit.as_deref().map(duration_of).transpose() {
        Ok(longest) => longest,
        Err(error) => return answer(Err(error)),
    };
    let begin = Instant::now();
    let left = || longest.map(|longest| longest.saturating_sub(begin.elapsed()));
    // SAFETY: the caller guarantees it.
    let received = unsafe {
        several(fd, messages, number, |is_first, message| match (is_first, left()) {
            (true, _) => tresse_recvmsg(fd, &raw mut message.msg_hdr, flags),
            (false, Some(Duration::ZERO)) => -1,
            // The program learns of an error by its next call.
            (false, _) => tresse_recvmsg(fd, &raw mut message.msg_hdr, flags | wait | KEEP_ERROR),
        })
    };
    if let (Some(limit), Some(left)) = (limit, left()) {
        limit.tv_sec = left.as_secs() as _;
        limit.tv_nsec = left.subsec_nanos().into();
    }
    received
}

fn duration_of(time: &timespec) -> Result<Duration, Errno> {
    let seconds = u64::try_from(time.tv_sec).map_err(|_| Errno::INVAL)?;
    let nanos =
        u32::try_from(time.tv_nsec).ok().filter(|&nanos| nanos < 1_000_000_000).ok_or(Errno::INVAL)?;
    Ok(Duration::new(seconds, nanos))
}

/// Calls `once` for one message after the other, until it fails. Returns -1 if it failed for the first message, otherwise the
/// number of messages before the failure.
///
/// # Safety
/// `messages` is null or points to `number` messages, which no other code uses.
unsafe fn several(
    fd: c_int,
    messages: *mut mmsghdr,
    number: c_uint,
    mut once: impl FnMut(bool, &mut mmsghdr) -> ssize_t,
) -> c_int {
    if let Err(error) = crate::table::find(fd) {
        return answer(Err(error));
    }
    if messages.is_null() && number > 0 {
        return answer(Err(Errno::FAULT));
    }
    // As in Linux, which handles no more in one call.
    let number = (number as usize).min(MOST_BUFFERS);
    for place in 0..number {
        // SAFETY: the caller guarantees `number` messages.
        let message = unsafe { &mut *messages.add(place) };
        match c_uint::try_from(once(place == 0, message)) {
            Ok(bytes) => message.msg_len = bytes,
            Err(_) if place == 0 => return -1,
            Err(_) => return place as c_int,
        }
    }
    number as c_int
}

/// `sendfile(2)`, which fails for sockets with EINVAL, as in the kernel for many files; programs then read and write instead.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_sendfile(to: c_int, from: c_int, _offset: *mut off_t, _len: usize) -> ssize_t {
    count(moved_past(to, from))
}

/// `splice(2)`, which fails for sockets as [`tresse_sendfile`] does.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_splice(
    from: c_int,
    _from_offset: *mut i64,
    to: c_int,
    _to_offset: *mut i64,
    _len: usize,
    _flags: c_uint,
) -> ssize_t {
    count(moved_past(to, from))
}

/// Returns the error of calls that move bytes between descriptors without the program's memory.
fn moved_past(to: c_int, from: c_int) -> Result<usize, Errno> {
    let ours = crate::table::owns(to) || crate::table::owns(from);
    Err(if ours { Errno::INVAL } else { Errno::BADF })
}

/// Writes the name, the ancillary data and the flags that come with the data.
///
/// # Safety
/// As for `tresse_recvmsg`.
unsafe fn finish(message: &mut msghdr, received: &Received) -> Result<(), Errno> {
    // SAFETY: the caller guarantees it.
    unsafe { give(&received.name, message.msg_name, &raw mut message.msg_namelen) }?;
    // The message has been read: a mistake of the program in the other fields must not lose it.
    let len = if message.msg_control.is_null() { 0 } else { message.msg_controllen };
    // SAFETY: the caller guarantees it.
    let room = unsafe { lent(message.msg_control, len) }.unwrap_or_default();
    let (used, cut) = ancillary::write(received, room);
    message.msg_controllen = used as _;
    message.msg_flags = received.flags | if cut { libc::MSG_CTRUNC } else { 0 };
    Ok(())
}

/// Size of a header of ancillary data, which `ancillary` writes by offset.
const _: () = assert!(size_of::<cmsghdr>() == ancillary::HEADER);
