//! Descriptors that the system lets this process have.

/// Raises their number to the most that whoever started the process allows, and answers it; `None` where there is no such limit.
///
/// The usual limit is for programs that use select(2); this one does not.
#[cfg(unix)]
pub(crate) fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// There is no such limit.
#[cfg(not(unix))]
pub(crate) fn raise() -> Option<u64> {
    None
}
