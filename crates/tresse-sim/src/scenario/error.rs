//! Errors of a scenario: where they are, and what would be accepted.

use std::io::ErrorKind;

use tresse_proto::ConfigError;
use tresse_proto::config::guess;

/// Reason for which a text is no scenario. One line: the file, the key, what would be accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{file}: {}", unreadable(source))]
    Unreadable {
        /// The file.
        file: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{file}: line {line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1 on.
        line: usize,
        /// Message of the parser.
        message: String,
    },
    /// A key that means nothing here.
    #[error("{file}: {key}: unknown key; {hint}")]
    UnknownKey {
        /// The file.
        file: String,
        /// The key with its path, such as `path[1].rat`.
        key: String,
        /// The valid key that is spelled nearly so, or all of them.
        hint: String,
    },
    /// A value of another kind.
    #[error("{file}: {key}: {value} is not {accepted}")]
    BadValue {
        /// The file.
        file: String,
        /// The key with its path.
        key: String,
        /// Value in the file.
        value: String,
        /// Description of accepted values.
        accepted: String,
    },
    /// A key that has no default.
    #[error("{file}: {key} is missing: it is {accepted}")]
    Missing {
        /// The file.
        file: String,
        /// The key with its path.
        key: String,
        /// Description of accepted values.
        accepted: String,
    },
    /// A value that does not go with another.
    #[error("{file}: {key}: {reason}")]
    Inconsistent {
        /// The file.
        file: String,
        /// The key with its path.
        key: String,
        /// Contradiction with the other value.
        reason: String,
    },
}

impl ScenarioError {
    /// A setting of the transport that was refused; `section` is the path of the table that it stands in.
    pub(super) fn setting(file: &str, section: &str, error: ConfigError) -> Self {
        let file = file.to_owned();
        let within = |name: &str| format!("{section}.{name}");
        match error {
            ConfigError::UnknownSwitch { name, nearest } => {
                let hint = guess(nearest.as_deref(), "docs/switches.md lists them");
                ScenarioError::UnknownKey { file, key: within(&name), hint }
            }
            ConfigError::BadValue { name, value, accepted } => {
                ScenarioError::BadValue { file, key: within(&name), value: format!("\"{value}\""), accepted }
            }
            ConfigError::Inconsistent { name, reason } => {
                ScenarioError::Inconsistent { file, key: within(name), reason }
            }
            other => ScenarioError::Inconsistent { file, key: section.to_owned(), reason: other.to_string() },
        }
    }
}

fn unreadable(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::InvalidData => "is no text in UTF-8: a scenario is a TOML file".to_owned(),
        ErrorKind::FileTooLarge => "is longer than 16 MiB: a scenario is a TOML file".to_owned(),
        ErrorKind::IsADirectory => "is a directory: a scenario is a TOML file".to_owned(),
        _ => error.to_string(),
    }
}
