//! Settings of a scenario that have no effect beside its others.

use std::fmt::{self, Display, Formatter};

use toml::Table;

use super::Resolved;

/// A setting that the document names, and what takes its effect.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct IdleSetting {
    /// The dotted key: `transport.key_drain`.
    pub key: String,
    /// The settings beside which it has no effect: `encryption = off`.
    pub beside: &'static str,
}

impl Display for IdleSetting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no effect beside {}", self.key, self.beside)
    }
}

/// Those of `document`, in its order. What both hosts are told is idle where it is idle at both.
pub(super) fn idle_settings(document: &Table, resolved: &Resolved) -> Vec<IdleSetting> {
    let hosts = [
        ("transport", vec![&resolved.sender, &resolved.receiver]),
        ("sender", vec![&resolved.sender]),
        ("receiver", vec![&resolved.receiver]),
    ];
    let mut idle = Vec::new();
    for (section, configs) in hosts {
        for name in names(document.get(section).and_then(|section| section.as_table())) {
            let beside: Option<Vec<_>> = configs.iter().map(|config| config.idle_beside(&name)).collect();
            if let Some(beside) = beside.and_then(|beside| beside.first().copied()) {
                idle.push(IdleSetting { key: format!("{section}.{name}"), beside });
            }
        }
    }
    idle
}

/// The names of the settings in a section, with the group before those that have one.
fn names(section: Option<&Table>) -> Vec<String> {
    let mut names = Vec::new();
    for (name, value) in section.into_iter().flatten() {
        match value.as_table() {
            Some(group) => names.extend(group.keys().map(|own| format!("{name}.{own}"))),
            None => names.push(name.clone()),
        }
    }
    names
}
