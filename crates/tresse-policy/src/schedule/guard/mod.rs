//! Guards of schedulers of applications: their faults affect no other association.
//!
//! Owns the boundary where a panic stops. Independent of streams and paths: the core reads the fault and replaces the
//! scheduler. Built-in schedulers need no guard.

mod path_guard;
mod stream_guard;

pub(crate) use path_guard::make as make_path;
pub(crate) use stream_guard::make as make_stream;
