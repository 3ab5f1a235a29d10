//! Reader of one table, key by key: parses each value from its text form, and refuses keys that were not requested.
//!
//! Owns the names of keys in errors, and the forms of values that several tables have. Independent of the keys of a scenario,
//! which the callers supply.

use std::time::Duration;

use toml::{Table, Value};
use tresse_proto::config::{guess, nearest};
use tresse_proto::units;

use super::error::ScenarioError;

/// One table of a scenario.
pub(super) struct Section<'t> {
    file: &'t str,
    /// Path from the top level, such as `path[1]`; empty at the top level.
    path: String,
    table: &'t Table,
    asked: Vec<&'static str>,
}

impl<'t> Section<'t> {
    /// Returns the top-level table of the scenario in `file`.
    pub(super) fn top(file: &'t str, table: &'t Table) -> Self {
        Section { file, path: String::new(), table, asked: Vec::new() }
    }

    /// Returns the value of `key`, parsed from its text form; `None` if the key is missing.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        accepted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ScenarioError> {
        self.ask(key);
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let parsed = text(value).as_deref().and_then(parse);
        parsed.map(Some).ok_or_else(|| self.bad_value(key, value, accepted))
    }

    /// Returns the string at `key`; numbers, booleans and dates are refused. Returns `None` if the key is missing.
    pub(super) fn read_text(
        &mut self,
        key: &'static str,
        accepted: &str,
    ) -> Result<Option<String>, ScenarioError> {
        self.ask(key);
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(value) => Err(self.bad_value(key, value, accepted)),
        }
    }

    /// Reads a required key as [`Section::read`] does.
    pub(super) fn require<T>(
        &mut self,
        key: &'static str,
        accepted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ScenarioError> {
        self.read(key, accepted, parse)?.ok_or_else(|| ScenarioError::Missing {
            file: self.file.to_owned(),
            key: self.key(key),
            accepted: accepted.to_owned(),
        })
    }

    /// Returns whether `key` exists.
    pub(super) fn contains(&mut self, key: &'static str) -> bool {
        self.ask(key);
        self.table.contains_key(key)
    }

    /// Returns the table `key`, if it exists.
    pub(super) fn section(&mut self, key: &'static str) -> Result<Option<Section<'t>>, ScenarioError> {
        self.ask(key);
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(self.inner(self.key(key), table))),
            Some(value) => Err(self.bad_value(key, value, "a table")),
        }
    }

    /// Returns the tables of the array `key`, in order.
    pub(super) fn sections(&mut self, key: &'static str) -> Result<Vec<Section<'t>>, ScenarioError> {
        self.ask(key);
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        // The header of such a table has no indices: [[path.change]] belongs to the last [[path]] before it.
        let path = self.key(key);
        let steps = path.split('.').map(|step| step.split_once('[').map_or(step, |(name, _)| name));
        let header = steps.collect::<Vec<_>>().join(".");
        let wanted = format!("an array of tables: one [[{header}]] for each");
        let items = value.as_array().ok_or_else(|| self.bad_value(key, value, &wanted))?;
        let tables = items.iter().enumerate().map(|(at, item)| match item {
            Value::Table(table) => Ok(self.inner(format!("{}[{at}]", self.key(key)), table)),
            other => Err(self.bad_value(key, other, &wanted)),
        });
        tables.collect()
    }

    /// Returns all keys of this table with the text of their values, for a table whose keys the caller checks. Keys of
    /// an inner table have the form `table.key`. Values of keys for which `quoted` returns true must be in quotes.
    pub(super) fn entries(
        self,
        quoted: &impl Fn(&str) -> bool,
    ) -> Result<Vec<(String, String)>, ScenarioError> {
        let mut entries = Vec::with_capacity(self.table.len());
        for (key, value) in self.table {
            if let Value::Table(inner) = value {
                let own = self.inner(self.key(key), inner).entries(quoted)?;
                entries.extend(own.into_iter().map(|(name, text)| (format!("{key}.{name}"), text)));
            } else {
                let text = text(value).filter(|_| is_setting(value));
                let text = text.ok_or_else(|| self.bad_value(key, value, SETTING))?;
                if quoted(key) && !value.is_str() {
                    return Err(self.bad_value(key, value, "a text in quotes"));
                }
                entries.push((key.clone(), text));
            }
        }
        Ok(entries)
    }

    /// Refuses keys that were not requested.
    pub(super) fn finish(self) -> Result<(), ScenarioError> {
        match self.table.keys().find(|key| !self.asked.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(ScenarioError::UnknownKey {
                file: self.file.to_owned(),
                key: self.key(key),
                hint: guess(
                    nearest(key, self.asked.iter().copied()),
                    &format!("the keys are {}", self.asked.join(", ")),
                ),
            }),
        }
    }

    /// Returns an error about `key` whose reason is another value.
    pub(super) fn inconsistent(&self, key: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::Inconsistent { file: self.file.to_owned(), key: self.key(key), reason: reason.into() }
    }

    /// Returns the path of this table.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn ask(&mut self, key: &'static str) {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
    }

    fn inner(&self, path: String, table: &'t Table) -> Section<'t> {
        Section { file: self.file, path, table, asked: Vec::new() }
    }

    fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn bad_value(&self, key: &str, value: &Value, accepted: &str) -> ScenarioError {
        let value = match value {
            Value::Table(_) => "a table".to_owned(),
            Value::Array(_) => "an array".to_owned(),
            Value::String(text) => format!("\"{text}\""),
            single => text(single).unwrap_or_default(),
        };
        ScenarioError::BadValue {
            file: self.file.to_owned(),
            key: self.key(key),
            value,
            accepted: accepted.to_owned(),
        }
    }
}

/// Returns whether a setting may have this value: no setting is a date or a number that is not finite.
fn is_setting(value: &Value) -> bool {
    match value {
        Value::Datetime(_) => false,
        Value::Float(number) => number.is_finite(),
        _ => true,
    }
}

const SETTING: &str = "a number, true, false or a text in quotes";

/// Returns the text form of a single value; `None` for tables and arrays.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        // With the decimal point: 3.0 is not an integer.
        Value::Float(number) => Some(format!("{number:?}")),
        Value::Boolean(truth) => Some(truth.to_string()),
        Value::Datetime(datetime) => Some(datetime.to_string()),
        Value::Array(_) | Value::Table(_) => None,
    }
}

/// Accepted values of a duration, and of a truth value, in errors.
pub(super) const DURATION: &str = "a duration up to 1000h, such as \"25ms\"";
pub(super) const TRUTH: &str = "true or false";

/// Longest virtual time of a run.
pub(super) const LONGEST_RUN: Duration = Duration::from_secs(1000 * 3600);
const LARGEST_MESSAGE: u64 = 16 * 1024 * 1024;

pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    units::parse_duration(text).ok()
}

pub(super) fn parse_truth(text: &str) -> Option<bool> {
    text.parse().ok()
}

pub(super) fn parse_streams(text: &str) -> Option<u16> {
    text.parse().ok().filter(|streams| *streams > 0)
}

pub(super) fn parse_message_size(text: &str) -> Option<usize> {
    let size = units::parse_size(text).ok()?;
    (1..=LARGEST_MESSAGE).contains(&size).then_some(size as usize)
}
