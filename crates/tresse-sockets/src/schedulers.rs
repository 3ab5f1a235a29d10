//! The policies that sockets of this process can name: the built-in ones, and those that the program has registered.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tresse_proto::Registry;

/// The registry of the process; endpoints are given a copy of it.
pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}
