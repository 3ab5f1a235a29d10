//! `LD_PRELOAD` library that replaces the SCTP sockets of an existing program by tresse's. All other calls go to the C
//! library.
//!
//! Owns the choice, for each call, between the C library and `tresse-sockets`. Independent of SCTP: it only distinguishes tresse's
//! descriptors from others. docs/preload.md describes how to run a program under it, and the limits.
//!
//! Functions here have the names and signatures of libc's functions, so the dynamic linker finds them first. `fcntl` and `ioctl`
//! are variadic in C and take one further argument here: 64-bit Linux passes it in the same way.
//!
//! Layers, from the bottom up; a module uses only modules on lines above its own, or before it on its own line:
//!
//! - `fork`: the process that owns this memory;
//! - `route`, `real`: the destination of a call, and the functions of the C library;
//! - `end`: exit of the process;
//! - `lifecycle`: calls that open and close descriptors;
//! - `data`, `names`, `refused`: calls on open descriptors.

#![cfg(target_os = "linux")]

mod data;
mod end;
mod fork;
mod lifecycle;
mod names;
mod real;
mod refused;
mod route;
