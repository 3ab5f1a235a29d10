//! `LD_PRELOAD` library that replaces the SCTP sockets of an existing program by tresse's. All other calls go to the C
//! library.
//!
//! Owns the choice, call by call, between the C library and `tresse-sockets`. Knows nothing of SCTP, but only which
//! descriptors are tresse's. docs/preload.md says how to run a program under it, and what does not work.
//!
//! Functions here have the names and signatures of libc's, so that the dynamic linker finds them first. `fcntl` and `ioctl`
//! take a variable number of arguments in C, and one here: on Linux's 64-bit machines it is passed in the same way.

#![cfg(target_os = "linux")]

mod data;
mod end;
mod fork;
mod lifecycle;
mod names;
mod real;
mod refused;
mod route;
