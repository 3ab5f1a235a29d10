//! Reading a table key by key: every value from its text form, every key that nobody asked for refused.
//!
//! Owns how errors name keys. Independent of the keys of a scenario: the callers name them.

use toml::{Table, Value};
use tresse_proto::config::{guess, nearest};

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
    /// The top table of the scenario in `file`.
    pub(super) fn top(file: &'t str, table: &'t Table) -> Self {
        Section { file, path: String::new(), table, asked: Vec::new() }
    }

    /// The value of `key`, read by `parse` from its text form; `None` when the key is not there.
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

    /// The text of `key`, which no number, truth or date stands for; `None` when the key is not there.
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

    /// Reads a required key, as [`Section::read`].
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

    /// Returns whether `key` is there.
    pub(super) fn contains(&mut self, key: &'static str) -> bool {
        self.ask(key);
        self.table.contains_key(key)
    }

    /// The table `key`, when there is one.
    pub(super) fn section(&mut self, key: &'static str) -> Result<Option<Section<'t>>, ScenarioError> {
        self.ask(key);
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(self.inner(self.key(key), table))),
            Some(value) => Err(self.bad_value(key, value, "a table")),
        }
    }

    /// The tables of the array `key`, in order.
    pub(super) fn sections(&mut self, key: &'static str) -> Result<Vec<Section<'t>>, ScenarioError> {
        self.ask(key);
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        // The header of such a table has no numbers: [[path.change]] belongs to the last [[path]] before it.
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

    /// All keys of this table with the text of their values, for a table whose keys are known elsewhere. Those of a
    /// table in it have its name before theirs: `table.key`.
    pub(super) fn entries(self) -> Result<Vec<(String, String)>, ScenarioError> {
        let mut entries = Vec::with_capacity(self.table.len());
        for (key, value) in self.table {
            if let Value::Table(inner) = value {
                let own = self.inner(self.key(key), inner).entries()?;
                entries.extend(own.into_iter().map(|(name, text)| (format!("{key}.{name}"), text)));
            } else {
                let text = text(value).filter(|_| is_setting(value));
                let text = text.ok_or_else(|| self.bad_value(key, value, SETTING))?;
                entries.push((key.clone(), text));
            }
        }
        Ok(entries)
    }

    /// Refuses keys that were not asked for.
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

    /// An error about `key` that is none of its own value.
    pub(super) fn inconsistent(&self, key: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::Inconsistent { file: self.file.to_owned(), key: self.key(key), reason: reason.into() }
    }

    /// The path of this table.
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

/// Returns whether a setting may have this value: none is a date, and none a number without bounds.
fn is_setting(value: &Value) -> bool {
    match value {
        Value::Datetime(_) => false,
        Value::Float(number) => number.is_finite(),
        _ => true,
    }
}

const SETTING: &str = "a number, true, false or a text in quotes";

/// The text form of a single value; tables and arrays have none.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        // With its decimal point: 3.0 is no whole number.
        Value::Float(number) => Some(format!("{number:?}")),
        Value::Boolean(truth) => Some(truth.to_string()),
        Value::Datetime(datetime) => Some(datetime.to_string()),
        Value::Array(_) | Value::Table(_) => None,
    }
}
