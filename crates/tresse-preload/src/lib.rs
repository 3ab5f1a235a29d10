//! `LD_PRELOAD` library: the SCTP sockets of a program that exists are tresse's, and everything else is as it was.
//!
//! Owns the choice, call by call, between the C library and `tresse-sockets`. Refuses to know what SCTP is: a descriptor is
//! ours or it is not. docs/preload.md says how to run a program under it, and what does not work.
//!
//! Functions here have the names and signatures of libc's, so that the dynamic linker finds them first. `fcntl` and `ioctl`
//! take a variable number of arguments in C, and one here: on Linux's 64-bit machines it is passed alike.

#![cfg(target_os = "linux")]

mod data;
mod end;
mod fork;
mod lifecycle;
mod names;
mod real;
mod refused;
mod route;
