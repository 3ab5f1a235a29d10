//! The structures and tables of `include/tresse_scheduler.h` in Rust, with the same fields in the same order.
//!
//! A test compiles the header and compares sizes and offsets.

use std::ffi::{c_char, c_int, c_void};

/// `TRESSE_SCHEDULER_ABI`.
pub(crate) const ABI: u32 = 3;
/// `TRESSE_SCHEDULER_NAME_SIZE`.
pub(crate) const NAME_SIZE: usize = 32;
/// `TRESSE_NO_STREAM` and `TRESSE_NO_PATH`.
pub(crate) const NONE: i32 = -1;
/// `TRESSE_FAILED`.
pub(crate) const FAILED: i32 = -2;
/// `TRESSE_ASSIGNS`.
pub(crate) const ASSIGNS: u32 = 1;
/// `TRESSE_COPIES`.
pub(crate) const COPIES: u32 = 2;
/// `TRESSE_PATH_UNCONFIRMED` and what follows it.
pub(crate) const UNCONFIRMED: u8 = 0;
pub(crate) const ACTIVE: u8 = 1;
pub(crate) const POTENTIALLY_FAILED: u8 = 2;
pub(crate) const INACTIVE: u8 = 3;

#[repr(C)]
pub(crate) struct Queued {
    pub(crate) bytes: u64,
    pub(crate) at_ns: u64,
    pub(crate) stream: u16,
    pub(crate) was_idle: u8,
}

#[repr(C)]
pub(crate) struct Taken {
    pub(crate) bytes: u64,
    pub(crate) stream: u16,
    pub(crate) message_done: u8,
    pub(crate) turn_over: u8,
    pub(crate) stream_empty: u8,
}

#[repr(C)]
pub(crate) struct Removed {
    pub(crate) bytes: u64,
    pub(crate) ahead: u64,
    pub(crate) stream: u16,
    pub(crate) stream_empty: u8,
}

#[repr(C)]
pub(crate) struct Path {
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    pub(crate) flight: u64,
    pub(crate) room: u64,
    pub(crate) rate: u64,
    pub(crate) srtt_ns: u64,
    pub(crate) rttvar_ns: u64,
    pub(crate) rtt_min_ns: u64,
    pub(crate) rtt_max_ns: u64,
    pub(crate) rto_ns: u64,
    pub(crate) last_sent_ns: u64,
    pub(crate) loss: f64,
    pub(crate) mtu: u32,
    pub(crate) id: u8,
    pub(crate) state: u8,
    pub(crate) primary: u8,
    pub(crate) recovering: u8,
}

/// A function that returns a number about the backlog of one stream.
pub(crate) type Ask = unsafe extern "C" fn(*const Backlog, u16) -> u64;

#[repr(C)]
pub(crate) struct Backlog {
    pub(crate) queues: *const c_void,
    pub(crate) unsent_bytes: Ask,
    pub(crate) messages: Ask,
    pub(crate) head_bytes: Ask,
}

#[repr(C)]
pub(crate) struct Candidate {
    pub(crate) path: Path,
    pub(crate) assigned: u64,
    pub(crate) early: u64,
    pub(crate) open: u8,
    pub(crate) assignable: u8,
}

#[repr(C)]
pub(crate) struct Offer {
    pub(crate) paths: *const Candidate,
    pub(crate) count: usize,
    pub(crate) unsent: u64,
    pub(crate) peer_window: u64,
    pub(crate) now_ns: u64,
    pub(crate) buffer_limited: u8,
    pub(crate) streams_bound: u8,
}

#[repr(C)]
pub(crate) struct Window {
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    pub(crate) packet: u64,
    pub(crate) srtt_ns: u64,
    pub(crate) min_rtt_ns: u64,
    pub(crate) id: u8,
    pub(crate) usable: u8,
    pub(crate) recovering: u8,
}

#[repr(C)]
pub(crate) struct Situation {
    pub(crate) windows: *const Window,
    pub(crate) count: usize,
    pub(crate) now_ns: u64,
    pub(crate) path: u8,
}

#[repr(C)]
pub(crate) struct Ack {
    pub(crate) bytes: u64,
    pub(crate) flight_before: u64,
    pub(crate) flight_after: u64,
    pub(crate) lost: u64,
    pub(crate) rtt_ns: u64,
    pub(crate) rate: u64,
    pub(crate) may_grow: u8,
    pub(crate) fully_used: u8,
}

#[repr(C)]
pub(crate) struct Sizes {
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
}

type Create = unsafe extern "C" fn(*const c_char, *mut c_char, usize) -> *mut c_void;
type Act = unsafe extern "C" fn(*mut c_void);
type Next = unsafe extern "C" fn(*mut c_void, *const Path, *const Backlog) -> i32;
type SetValue = unsafe extern "C" fn(*mut c_void, u16, u16) -> c_int;
type Value = unsafe extern "C" fn(*const c_void, u16) -> i32;
type Pick = unsafe extern "C" fn(*mut c_void, *const Offer) -> i32;
type OnSent = unsafe extern "C" fn(*mut c_void, u8, u64);
type Heed = unsafe extern "C" fn(*mut c_void, *const Situation, *const Ack, *mut Sizes) -> i32;
pub(crate) type Judge = unsafe extern "C" fn(*mut c_void, *const Situation, *mut Sizes) -> i32;
pub(crate) type PacingRate = unsafe extern "C" fn(*mut c_void, u8) -> u64;
type OnPathAdded = unsafe extern "C" fn(*mut c_void, *const Window);
type Failure = unsafe extern "C" fn(*const c_void) -> *const c_char;

/// `struct tresse_scheduler` as a shared object exports it: any hook may be missing.
#[repr(C)]
#[derive(Copy, Clone)]
pub(crate) struct StreamTable {
    pub(crate) abi: u32,
    pub(crate) size: u32,
    pub(crate) name: [c_char; NAME_SIZE],
    pub(crate) create: Option<Create>,
    pub(crate) destroy: Option<Act>,
    pub(crate) on_queued: Option<unsafe extern "C" fn(*mut c_void, *const Queued)>,
    pub(crate) next: Option<Next>,
    pub(crate) on_taken: Option<unsafe extern "C" fn(*mut c_void, *const Taken)>,
    pub(crate) is_empty: Option<unsafe extern "C" fn(*const c_void) -> c_int>,
    pub(crate) on_removed: Option<unsafe extern "C" fn(*mut c_void, *const Removed)>,
    pub(crate) on_packet_end: Option<Act>,
    pub(crate) set_value: Option<SetValue>,
    pub(crate) value: Option<Value>,
    pub(crate) failure: Option<Failure>,
}

/// `struct tresse_path_scheduler`, likewise.
#[repr(C)]
#[derive(Copy, Clone)]
pub(crate) struct PathTable {
    pub(crate) abi: u32,
    pub(crate) size: u32,
    pub(crate) name: [c_char; NAME_SIZE],
    pub(crate) flags: u32,
    pub(crate) create: Option<Create>,
    pub(crate) destroy: Option<Act>,
    pub(crate) pick: Option<Pick>,
    pub(crate) on_sent: Option<OnSent>,
    pub(crate) failure: Option<Failure>,
}

/// `struct tresse_congestion_controller`, likewise.
#[repr(C)]
#[derive(Copy, Clone)]
pub(crate) struct ControllerTable {
    pub(crate) abi: u32,
    pub(crate) size: u32,
    pub(crate) name: [c_char; NAME_SIZE],
    pub(crate) create: Option<Create>,
    pub(crate) destroy: Option<Act>,
    pub(crate) on_ack: Option<Heed>,
    pub(crate) on_loss: Option<Heed>,
    pub(crate) on_timeout: Option<Judge>,
    pub(crate) on_idle: Option<Judge>,
    pub(crate) on_path_added: Option<OnPathAdded>,
    pub(crate) pacing_rate: Option<PacingRate>,
    pub(crate) failure: Option<Failure>,
}

/// The hooks of a table whose required hooks are all present.
#[derive(Copy, Clone)]
pub(crate) enum Hooks {
    Stream(StreamHooks),
    Path(PathHooks),
    Controller(ControllerHooks),
}

/// Functions that tables of all kinds have.
#[derive(Copy, Clone)]
pub(crate) struct Life {
    pub(crate) create: Create,
    pub(crate) destroy: Act,
    pub(crate) failure: Option<Failure>,
}

#[derive(Copy, Clone)]
pub(crate) struct StreamHooks {
    pub(crate) life: Life,
    pub(crate) on_queued: unsafe extern "C" fn(*mut c_void, *const Queued),
    pub(crate) next: Next,
    pub(crate) on_taken: unsafe extern "C" fn(*mut c_void, *const Taken),
    pub(crate) is_empty: unsafe extern "C" fn(*const c_void) -> c_int,
    pub(crate) on_removed: Option<unsafe extern "C" fn(*mut c_void, *const Removed)>,
    pub(crate) on_packet_end: Option<Act>,
    pub(crate) set_value: Option<SetValue>,
    pub(crate) value: Option<Value>,
}

#[derive(Copy, Clone)]
pub(crate) struct PathHooks {
    pub(crate) flags: u32,
    pub(crate) life: Life,
    pub(crate) pick: Pick,
    pub(crate) on_sent: Option<OnSent>,
}

#[derive(Copy, Clone)]
pub(crate) struct ControllerHooks {
    pub(crate) life: Life,
    pub(crate) on_ack: Heed,
    pub(crate) on_loss: Heed,
    pub(crate) on_timeout: Option<Judge>,
    pub(crate) on_idle: Option<Judge>,
    pub(crate) on_path_added: Option<OnPathAdded>,
    pub(crate) pacing_rate: Option<PacingRate>,
}

#[cfg(test)]
mod tests;
