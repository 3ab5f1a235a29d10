//! Limit of the number of file descriptors of this process.

/// Raises the soft limit to the hard limit, and returns the limit that holds then; `None` where there is none.
///
/// The default soft limit protects programs that use select(2), which this one does not.
#[cfg(unix)]
pub(crate) fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// Returns `None`: this system has no such limit.
#[cfg(not(unix))]
pub(crate) fn raise() -> Option<u64> {
    None
}
