//! Sockets of RFC 6458 in user space: one-to-one and one-to-many, for C and for programs that were written for the kernel's SCTP.
//!
//! Owns descriptors, the numbers and layouts of Linux, and the process-wide thread that drives the core. The interface for C is
//! `include/tresse_sctp.h`; docs/sockets.md lists the effect of each option. New Rust programs should use the crate `tresse`.
//!
//! Layers, from the bottom up; a module uses only modules on lines above its own, or before it on its own line:
//!
//! - `layout`, `settings`, `message_info`, `notify`, `key_change`: the numbers and structures of Linux, and what they say;
//! - `ffi::system`, `ffi::number`, `owned`, `numbers`: system calls without a safe interface, and numbers of descriptors;
//! - `fragments`, `intake`, `lower`, `ports`: packets and ports below SCTP;
//! - `shared`: the clock, the lower sockets, the ports and the policies of this process, and how its thread waits;
//! - `descriptor`, `queue`, `association`, `socket`: state of one socket and one association;
//! - `engine`, `events`, `closing`: an endpoint of the core with its sockets, and the effects of events and ends on them;
//! - `table`: descriptors and their sockets;
//! - `turn`, `parent`, `stack`: readiness and turns of engines, the process that has the sockets after a fork, and the thread;
//! - `aliases`, `inside`, `wait`, `call`: closing of descriptors, calls in progress, and how they wait;
//! - `delegated`, `names`, `open`, `send`, `receive`, `ancillary`, `options`: the calls, over a connection or in this process;
//! - `schedulers`, `forked`, `finish`: policies of the program, processes that are forked, and the exit of one;
//! - `ffi::calls`, `ffi::messages`, `ffi::libsctp`: the same calls for C.
//!
//! The functions here are the calls of the header with slices in place of pointers: a name is the bytes of a `struct sockaddr_in`
//! or `sockaddr_in6`, an option the bytes of its structure. A failed call returns its `errno`.

// Descriptors that any event loop can wait for need features of Linux.
#![cfg(target_os = "linux")]

mod aliases;
mod ancillary;
mod association;
mod call;
mod closing;
mod delegated;
mod descriptor;
mod engine;
mod events;
pub mod ffi;
mod finish;
mod forked;
mod fragments;
mod inside;
mod intake;
mod key_change;
mod layout;
mod lower;
mod message_info;
mod names;
mod notify;
mod numbers;
mod open;
mod options;
mod owned;
mod parent;
mod ports;
mod queue;
mod receive;
mod schedulers;
mod send;
mod settings;
mod shared;
mod socket;
mod stack;
mod table;
mod turn;
mod wait;

pub use aliases::{close, duplicate};
pub use finish::{daemonize, finish, has_sockets, is_needed, leave};
pub use forked::socket;
pub use inside::{Inside, hold_back};
pub use message_info::{NextInfo, ReceiveInfo, Received, SendFields, SendInfo};
pub use names::{local_name, local_names, peer_name, peer_names};
pub use numbers::{is_private, next_private};
pub use open::{accept, bind, bind_add, bind_remove, connect, listen, peel_off, shutdown};
pub use options::{ALL_OPTIONS, SocketOption, get as option, set as set_option};
pub use receive::{readable_bytes, receive};
pub use rustix::io::Errno;
pub use send::{Data, send};
pub use stack::set_synchronous;
pub use table::owns;
