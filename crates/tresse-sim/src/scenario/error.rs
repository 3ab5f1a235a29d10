//! Errors of a scenario: their position, and the accepted values.

use std::io::ErrorKind;

use tresse_proto::ConfigError;
use tresse_proto::config::guess;

/// Reason for which a text is not a valid scenario, in one line: the file, the key, the accepted values.
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
        /// Number of the line, from 1 on.
        line: usize,
        /// Message of the TOML parser.
        message: String,
    },
    /// A key that is not known in this table.
    #[error("{file}: {key}: unknown key; {hint}")]
    UnknownKey {
        /// The file.
        file: String,
        /// The dotted path of the key, such as `path[1].rat`.
        key: String,
        /// The valid key with the most similar spelling, or all valid keys.
        hint: String,
    },
    /// A value that is not accepted.
    #[error("{file}: {key}: {value} is not {accepted}")]
    BadValue {
        /// The file.
        file: String,
        /// The dotted path of the key.
        key: String,
        /// The value in the file.
        value: String,
        /// Description of the accepted values.
        accepted: String,
    },
    /// A missing key that has no default.
    #[error("{file}: {key} is missing: it is {accepted}")]
    Missing {
        /// The file.
        file: String,
        /// The dotted path of the key.
        key: String,
        /// Description of the accepted values.
        accepted: String,
    },
    /// A value that contradicts another.
    #[error("{file}: {key}: {reason}")]
    Inconsistent {
        /// The file.
        file: String,
        /// The dotted path of the key.
        key: String,
        /// Contradiction with the other value.
        reason: String,
    },
}

impl ScenarioError {
    /// Returns the error for a refused setting of the transport; `section` is the path of its table.
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
