//! Errors of choosing and configuring a policy, and the kinds of policies.

use std::fmt;

use tresse_wire::StreamId;

/// What applications can bring policies of their own for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PolicyKind {
    /// Which stream's data leaves next.
    StreamScheduler,
    /// Which path gets the next data.
    PathScheduler,
    /// How much a path may carry.
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

/// Why a scheduler, or another policy, could not be chosen or configured.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// None has this name.
    #[error("unknown {kind} \"{name}\"; registered are {known}")]
    Unknown {
        /// What was looked for.
        kind: PolicyKind,
        /// The name that was given.
        name: String,
        /// The registered names.
        known: String,
    },
    /// It refused its configuration.
    #[error("{kind} \"{name}\" refused its configuration: {reason}")]
    BadConfig {
        /// What it is.
        kind: PolicyKind,
        /// Its name.
        name: String,
        /// In its own words.
        reason: String,
    },
    /// The scheduler refused a stream's value, or its streams have none.
    #[error("scheduler \"{name}\" refused {value} for stream {}: {reason}", stream.0)]
    BadValue {
        /// The scheduler.
        name: String,
        /// The stream.
        stream: StreamId,
        /// The value that it refused.
        value: u16,
        /// In its own words.
        reason: String,
    },
    /// The name is taken.
    #[error("the name \"{0}\" is already registered")]
    NameTaken(String),
    /// An association still uses it.
    #[error("\"{0}\" is in use")]
    InUse(String),
    /// It belongs to the registry itself.
    #[error("\"{0}\" is built in and cannot be removed")]
    BuiltIn(String),
    /// The stream was not negotiated.
    #[error("stream {} does not exist", .0.0)]
    NoSuchStream(StreamId),
    /// The association could not be set up.
    #[error("the association could not be set up: there is nothing to schedule")]
    NotOpen,
}
