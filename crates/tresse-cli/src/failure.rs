//! Failures of commands: one line for the user, and the exit code.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use tresse::{BindError, CloseReason, ConnectError, Ended};

/// Reason for which a command did not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Running,
    Usage,
    Unreachable,
    Unresolved,
    Missed,
    NotAuthenticated,
    Interrupted,
}

impl Failure {
    /// The command failed while running.
    pub(crate) fn running(message: impl Display) -> Self {
        Failure { kind: Kind::Running, message: message.to_string() }
    }

    /// The command line or the input is wrong.
    pub(crate) fn usage(message: impl Display) -> Self {
        Failure { kind: Kind::Usage, message: message.to_string() }
    }

    /// The peer does not answer, or all paths to it are lost.
    pub(crate) fn unreachable(message: impl Display) -> Self {
        Failure { kind: Kind::Unreachable, message: message.to_string() }
    }

    /// A name could not be looked up now.
    pub(crate) fn unresolved(message: impl Display) -> Self {
        Failure { kind: Kind::Unresolved, message: message.to_string() }
    }

    /// The command ran to its end, but the result is not what the user requires.
    pub(crate) fn missed(message: impl Display) -> Self {
        Failure { kind: Kind::Missed, message: message.to_string() }
    }

    /// The peer is not trusted, or does not trust this side.
    pub(crate) fn not_authenticated(message: impl Display) -> Self {
        Failure { kind: Kind::NotAuthenticated, message: message.to_string() }
    }

    /// The user interrupted the command; `message` names the work that is kept.
    pub(crate) fn interrupted(message: impl Display) -> Self {
        Failure { kind: Kind::Interrupted, message: message.to_string() }
    }

    /// Returns the line for the user.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the exit code, on which scripts rely.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Running => 1,
            Kind::Usage => 2,
            Kind::Unreachable | Kind::Unresolved => 3,
            Kind::Missed => 4,
            Kind::NotAuthenticated => 5,
            Kind::Interrupted => 130,
        }
    }

    /// Returns whether the request or the input was wrong.
    pub(crate) fn is_usage(&self) -> bool {
        self.kind == Kind::Usage
    }

    /// Returns whether the peer does not answer, or all paths to it are lost.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.kind == Kind::Unreachable
    }

    /// Returns whether a name could not be looked up.
    pub(crate) fn is_unresolved(&self) -> bool {
        self.kind == Kind::Unresolved
    }

    /// Returns the failure with `more` after its message.
    #[must_use]
    pub(crate) fn followed_by(self, more: &str) -> Self {
        Failure { message: format!("{}; {more}", self.message), ..self }
    }

    /// Returns the failure with `place` before its message.
    #[must_use]
    pub(crate) fn at(self, place: impl Display) -> Self {
        Failure { message: format!("{place}: {}", self.message), ..self }
    }
}

/// Returns a description of an error of a file.
pub(crate) fn words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::IsADirectory => "is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the failure of a file that the user named for `place`, and that the system refused to open or read. A shortage may pass, so it
/// is no mistake in the command line.
pub(crate) fn of_file(place: impl Display, error: &io::Error) -> Failure {
    match is_shortage(error) {
        true => Failure::running(error).at(place),
        false => Failure::usage(words(error)).at(place),
    }
}

/// Returns the failure of a socket that the system refused to open for the option `place`. A port in use may become free, a missing
/// address may be added later, and a shortage may pass, so none of them is a mistake in the command line.
pub(crate) fn of_socket(place: impl Display, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => Failure::running(error).at(place),
        _ if is_shortage(error) => Failure::running(error).at(place),
        _ => Failure::usage(error).at(place),
    }
}

/// Returns whether the system lacked descriptors or memory.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    lacks_descriptors(error) || error.kind() == ErrorKind::OutOfMemory
}

/// Returns whether this process or the system has no free descriptors.
#[cfg(unix)]
pub(crate) fn lacks_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    Errno::from_io_error(error).is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NFILE))
}

/// As on Unix, if errors have other numbers.
#[cfg(not(unix))]
pub(crate) fn lacks_descriptors(_: &io::Error) -> bool {
    false
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match &error {
            BindError::Io { source, .. } | BindError::Raw { source, .. } => match source.kind() {
                ErrorKind::Unsupported => Failure::usage(error),
                // A missing address may be added later, and a port in use may become free.
                _ => Failure::running(error),
            },
            BindError::RawNotPermitted | BindError::PortTaken { .. } | BindError::Seed(_) => {
                Failure::running(error)
            }
            _ => Failure::usage(error),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Ended(ended) => ended.into(),
            ConnectError::NotAuthenticated(fault) => Failure::not_authenticated(fault),
            refused => Failure::usage(refused),
        }
    }
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Self {
        match ended.0 {
            CloseReason::SetupTimeout | CloseReason::PathsLost => Failure::unreachable(ended),
            _ => Failure::running(ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn sockets_that_may_open_later_are_no_mistake_of_the_user() {
        for (kind, code) in
            [(ErrorKind::AddrInUse, 1), (ErrorKind::AddrNotAvailable, 1), (ErrorKind::Unsupported, 2)]
        {
            let failure = of_socket("--tcp 192.0.2.1:80", &kind.into());
            assert_eq!(failure.exit_code(), code, "{kind}");
            assert!(failure.message().starts_with("--tcp 192.0.2.1:80: "), "{}", failure.message());
            let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let bound = Failure::from(BindError::Io { address, port: 9899, source: kind.into() });
            assert_eq!(bound.exit_code(), code, "{kind}");
        }
    }

    #[test]
    fn a_shortage_is_no_mistake_of_the_user() {
        let mut shortages = vec![io::Error::from(ErrorKind::OutOfMemory)];
        #[cfg(unix)]
        shortages.extend([rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(io::Error::from));
        for error in shortages {
            for failure in [of_socket("--tcp 192.0.2.1:80", &error), of_file("--key key", &error)] {
                assert_eq!(failure.exit_code(), 1, "{failure:?}");
            }
        }
        assert_eq!(of_file("--key key", &ErrorKind::NotFound.into()).exit_code(), 2);
    }
}
