//! Named settings, also called switches: every one has a name, a default, a line of documentation and a text form.
//!
//! Scenarios, the command line and the lab all set the configuration through these names. So a setting exists once, and the error
//! about an unknown name suggests the nearest valid one.

use std::time::Duration;

use tresse_policy::{RetransmitPath, SackPath, StreamClass};

use crate::units;

/// Reason for which a setting was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No setting has this name.
    #[error("unknown setting \"{name}\"; {}", guess(.nearest.as_deref(), "docs/switches.md lists them"))]
    UnknownSwitch {
        /// The name that was given.
        name: String,
        /// The valid name with the most similar spelling; `None` if no name is similar.
        nearest: Option<String>,
    },
    /// The setting does not accept this value.
    #[error("setting \"{name}\": \"{value}\" is not {accepted}")]
    BadValue {
        /// The name of the setting.
        name: String,
        /// The value that was given.
        value: String,
        /// The values that the setting accepts.
        accepted: String,
    },
    /// Two settings contradict each other.
    #[error("setting \"{name}\": {reason}")]
    Inconsistent {
        /// The setting to change.
        name: &'static str,
        /// The condition that the setting violates.
        reason: String,
    },
    /// The value is well-formed, but names something that does not exist or that refuses its configuration.
    #[error("setting \"{name}\" = \"{value}\": {reason}")]
    Unusable {
        /// The name of the setting.
        name: String,
        /// The value that was given.
        value: String,
        /// Reason for which the value cannot be used.
        reason: String,
    },
    /// No preset has this name.
    #[error("unknown preset \"{name}\"; the presets are {known}")]
    UnknownPreset {
        /// The name that was given.
        name: String,
        /// The valid names.
        known: String,
    },
}

/// Description of one setting for users.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SwitchInfo {
    /// The name, as typed in scenarios and on command lines.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// Its default as text.
    pub default: String,
    /// The values that it accepts.
    pub accepted: String,
    /// The named values, if there is a fixed set of them, each with its documentation.
    pub choices: Vec<(&'static str, &'static str)>,
    /// True if the value is a text of any content, such as the name of a policy. A file gives it in quotes.
    pub text: bool,
}

/// A type of settings: it has a text form.
pub trait SwitchValue: Sized {
    /// Reads the text form; `None` if the text is not valid.
    fn parse(text: &str) -> Option<Self>;
    /// Returns the text form.
    fn print(&self) -> String;
    /// Returns a description of the values that `parse` accepts, to complete the sentence "… is not".
    fn accepted() -> String;
    /// Returns the named values with their documentation, if there is a fixed set of them.
    fn choices() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// True if any text is valid.
    const TEXT: bool = false;
}

/// A number of bytes. Its text form has a unit ("64KiB").
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Size(pub usize);

impl SwitchValue for Size {
    fn parse(text: &str) -> Option<Self> {
        units::parse_size(text).ok().and_then(|bytes| usize::try_from(bytes).ok()).map(Size)
    }

    fn print(&self) -> String {
        units::format_size(self.0 as u64)
    }

    fn accepted() -> String {
        "a size such as \"64KiB\"".to_owned()
    }
}

impl SwitchValue for Duration {
    fn parse(text: &str) -> Option<Self> {
        units::parse_duration(text).ok()
    }

    fn print(&self) -> String {
        units::format_duration(*self)
    }

    fn accepted() -> String {
        "a duration such as \"25ms\"".to_owned()
    }
}

impl SwitchValue for bool {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        }
    }

    fn print(&self) -> String {
        self.to_string()
    }

    fn accepted() -> String {
        "true or false".to_owned()
    }
}

impl SwitchValue for u16 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> String {
        self.to_string()
    }

    fn accepted() -> String {
        "a whole number from 0 to 65535".to_owned()
    }
}

impl SwitchValue for u32 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> String {
        self.to_string()
    }

    fn accepted() -> String {
        "a whole number from 0 to 4294967295".to_owned()
    }
}

impl SwitchValue for Option<u32> {
    fn parse(text: &str) -> Option<Self> {
        if text == "off" { Some(None) } else { text.parse().ok().map(Some) }
    }

    fn print(&self) -> String {
        self.map_or_else(|| "off".to_owned(), |number| number.to_string())
    }

    fn accepted() -> String {
        "off, or a whole number from 0 to 4294967295".to_owned()
    }
}

impl SwitchValue for String {
    const TEXT: bool = true;

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn print(&self) -> String {
        self.clone()
    }

    fn accepted() -> String {
        "a name".to_owned()
    }
}

/// Returns the name in `known` whose spelling is most similar to `name`, with or without the group before it; `None` if more than
/// half of `name` would have to change.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |candidate: &&str| {
        let own = candidate.rsplit_once('.').map_or(*candidate, |(_, own)| own);
        strsim::damerau_levenshtein(name, candidate).min(strsim::damerau_levenshtein(name, own))
    };
    known.into_iter().min_by_key(distance).filter(|candidate| 2 * distance(candidate) <= name.len())
}

/// Returns advice about a name that does not exist: the name that was probably meant, or `otherwise`.
pub fn guess(nearest: Option<&str>, otherwise: &str) -> String {
    nearest.map_or_else(|| otherwise.to_owned(), |nearest| format!("did you mean \"{nearest}\"?"))
}

/// Gives enums with named variants ([`tresse_policy::choices`]) the text form of settings.
macro_rules! switch_values {
    ($($type:ty),+) => {$(
        impl $crate::config::SwitchValue for $type {
            fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|choice| choice.name() == text)
            }

            fn print(&self) -> String {
                self.name().to_owned()
            }

            fn accepted() -> String {
                let names: Vec<&str> = Self::ALL.iter().map(|choice| choice.name()).collect();
                format!("one of {}", names.join(", "))
            }

            fn choices() -> Vec<(&'static str, &'static str)> {
                Self::ALL.iter().map(|choice| (choice.name(), choice.doc())).collect()
            }
        }
    )+};
}

/// Declares an enum with named variants, and gives it the text form of a setting.
macro_rules! choices {
    ($(#[$meta:meta])* pub enum $type:ident { $($variants:tt)+ }) => {
        tresse_policy::choices! { $(#[$meta])* pub enum $type { $($variants)+ } }
        $crate::config::switch::switch_values!($type);
    };
}

switch_values!(RetransmitPath, SackPath, StreamClass);

/// Declares a struct of settings with the table of their names. In text, the prefix of the struct precedes each name. A struct
/// may end with a group of settings, which is another such struct.
macro_rules! switches {
    (
        $(#[$meta:meta])*
        pub struct $type:ident in $prefix:literal {
            $($(#[doc = $doc:literal])+ $field:ident: $kind:ty = $default:expr,)+
        }
        $($(#[doc = $group_doc:literal])+ and $group:ident: $group_type:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub struct $type {
            $($(#[doc = $doc])+ pub $field: $kind,)+
            $($(#[doc = $group_doc])+ pub $group: $group_type,)?
        }

        impl Default for $type {
            fn default() -> Self {
                Self { $($field: $default,)+ $($group: $group_type::default(),)? }
            }
        }

        impl $type {
            /// Returns these settings, changed by `change`.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }

            /// Returns the names of all settings, in the order of declaration.
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$(concat!($prefix, stringify!($field)),)+].into_iter()
                    $(.chain($group_type::names()))?
            }

            /// Sets the setting `name` from its text form.
            ///
            /// # Errors
            /// The name is unknown (the error suggests the nearest valid one), or the setting does not accept the value.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), $crate::config::ConfigError> {
                $(if $group_type::names().any(|known| known == name) {
                    return self.$group.set(name, value);
                })?
                $(if name == concat!($prefix, stringify!($field)) {
                    self.$field = <$kind as $crate::config::SwitchValue>::parse(value).ok_or_else(|| {
                        $crate::config::ConfigError::BadValue {
                            name: name.to_owned(),
                            value: value.to_owned(),
                            accepted: <$kind as $crate::config::SwitchValue>::accepted(),
                        }
                    })?;
                    return Ok(());
                })+
                Err($crate::config::ConfigError::UnknownSwitch {
                    name: name.to_owned(),
                    nearest: $crate::config::nearest(name, Self::names()).map(str::to_owned),
                })
            }

            /// Returns every setting with its present value as text.
            pub fn values(&self) -> Vec<(&'static str, String)> {
                let own = [$((
                    concat!($prefix, stringify!($field)),
                    $crate::config::SwitchValue::print(&self.$field),
                ),)+];
                own.into_iter()$(.chain(self.$group.values()))?.collect()
            }

            /// Returns descriptions of all settings.
            pub fn describe() -> Vec<$crate::config::SwitchInfo> {
                let defaults = Self::default();
                let own = [$($crate::config::SwitchInfo {
                    name: concat!($prefix, stringify!($field)),
                    doc: concat!($($doc,)+).trim_ascii(),
                    default: $crate::config::SwitchValue::print(&defaults.$field),
                    accepted: <$kind as $crate::config::SwitchValue>::accepted(),
                    choices: <$kind as $crate::config::SwitchValue>::choices(),
                    text: <$kind as $crate::config::SwitchValue>::TEXT,
                },)+];
                own.into_iter()$(.chain($group_type::describe()))?.collect()
            }
        }
    };
}

pub(crate) use {choices, switch_values, switches};
