//! Keeps what goes wrong inside an application's scheduler away from everybody else.
//!
//! Owns the boundary where a panic stops. Refuses to know what becomes of streams and paths: the core asks what
//! went wrong and lets another scheduler take over. Built-in schedulers need no guard.

mod path;
mod stream;

pub(crate) use path::make as make_path;
pub(crate) use stream::make as make_stream;
