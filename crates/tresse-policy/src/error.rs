//! Errors of choosing and configuring a policy, and the kinds of policies.

use std::fmt;

use tresse_wire::StreamId;

/// Kind of policy that applications can register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PolicyKind {
    /// Selects the stream whose data leaves next.
    StreamScheduler,
    /// Selects the path that carries the next data.
    PathScheduler,
    /// Sets the window of each path.
    CongestionController,
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PolicyKind::StreamScheduler => "stream scheduler",
            PolicyKind::PathScheduler => "path scheduler",
            PolicyKind::CongestionController => "congestion controller",
        })
    }
}

/// Reason for which a scheduler, or another policy, could not be chosen or configured.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// No policy has this name.
    #[error("unknown {kind} \"{name}\"; registered are {known}")]
    Unknown {
        /// Kind of the policy that was looked up.
        kind: PolicyKind,
        /// The name that was given.
        name: String,
        /// The registered names.
        known: String,
    },
    /// The policy refused its configuration.
    #[error("{kind} \"{name}\" refused its configuration: {reason}")]
    BadConfig {
        /// Kind of the policy.
        kind: PolicyKind,
        /// Its name.
        name: String,
        /// Reason of the policy.
        reason: String,
    },
    /// The scheduler refused the value of a stream, or its streams have no values.
    #[error("scheduler \"{name}\" refused {value} for stream {}: {reason}", stream.0)]
    BadValue {
        /// The scheduler.
        name: String,
        /// The stream.
        stream: StreamId,
        /// The value that it refused.
        value: u16,
        /// Reason of the scheduler.
        reason: String,
    },
    /// Another policy has this name.
    #[error("the name \"{0}\" is already registered")]
    NameTaken(String),
    /// An association still uses the policy.
    #[error("\"{0}\" is in use")]
    InUse(String),
    /// The policy is built in.
    #[error("\"{0}\" is built in and cannot be removed")]
    BuiltIn(String),
    /// The stream was not negotiated.
    #[error("stream {} does not exist", .0.0)]
    NoSuchStream(StreamId),
    /// The association could not be set up.
    #[error("the association could not be set up: there is nothing to schedule")]
    NotOpen,
}
