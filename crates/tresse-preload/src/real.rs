//! The functions of the C library that this library replaces. They are looked up when this library is loaded: the first call of one
//! may be in a signal handler, and the search locks the dynamic linker. Constructors of other libraries may call them even before.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

use crate::route::set_errno;

/// A function of the C library.
struct Symbol {
    name: &'static CStr,
    place: AtomicPtr<c_void>,
}

impl Symbol {
    /// Creates a symbol that is not looked up yet; `name` ends with a zero byte.
    const fn new(name: &'static str) -> Self {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        };
        Symbol { name, place: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns the address of the next function of this name after this library; null if there is none.
    fn find(&self) -> *mut c_void {
        let known = self.place.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr().cast::<c_char>()) };
        self.place.store(found, Ordering::Release);
        found
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = look_up;

/// Declares functions of the C library by their signatures. A function that does not exist fails with ENOSYS.
macro_rules! real {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        #[allow(non_upper_case_globals, reason = "named after the functions")]
        mod symbols {
            use super::Symbol;
            $( pub(super) static $name: Symbol = Symbol::new(concat!(stringify!($name), "\0")); )*
        }

        extern "C" fn look_up() {
            $( symbols::$name.find(); )*
        }
        $(
        /// Calls the function of the C library.
        ///
        /// # Safety
        /// As for the call.
        pub(crate) unsafe fn $name($($arg: $type),*) -> $out {
            let found = symbols::$name.find();
            if found.is_null() {
                set_errno(libc::ENOSYS);
                return -1;
            }
            // SAFETY: the C library's function of this name has this signature.
            let function: unsafe extern "C" fn($($type),*) -> $out = unsafe { std::mem::transmute(found) };
            // SAFETY: the caller guarantees it.
            unsafe { function($($arg),*) }
        }
    )* };
}

real! {
    fn daemon(keep_directory: c_int, keep_standard: c_int) -> c_int;
    fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn bind(fd: c_int, name: *const sockaddr, len: socklen_t) -> c_int;
    fn listen(fd: c_int, backlog: c_int) -> c_int;
    fn accept(fd: c_int, name: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn accept4(fd: c_int, name: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
    fn connect(fd: c_int, name: *const sockaddr, len: socklen_t) -> c_int;
    fn shutdown(fd: c_int, how: c_int) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    fn dup(fd: c_int) -> c_int;
    fn dup2(fd: c_int, to: c_int) -> c_int;
    fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int;
    fn fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    fn getsockname(fd: c_int, name: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn getpeername(fd: c_int, name: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int;
    fn send(fd: c_int, data: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    fn sendto(
        fd: c_int, data: *const c_void, len: size_t, flags: c_int, name: *const sockaddr, name_len: socklen_t
    ) -> ssize_t;
    fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    fn write(fd: c_int, data: *const c_void, len: size_t) -> ssize_t;
    fn writev(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t;
    fn recv(fd: c_int, data: *mut c_void, len: size_t, flags: c_int) -> ssize_t;
    fn recvfrom(
        fd: c_int, data: *mut c_void, len: size_t, flags: c_int, name: *mut sockaddr, name_len: *mut socklen_t
    ) -> ssize_t;
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    fn recvmmsg(
        fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, limit: *mut timespec
    ) -> c_int;
    fn read(fd: c_int, data: *mut c_void, len: size_t) -> ssize_t;
    fn readv(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t;
    fn preadv2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn preadv64v2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn pwritev2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn pwritev64v2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    fn sendfile64(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    fn splice(
        from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, len: size_t, flags: c_uint
    ) -> ssize_t;
}
