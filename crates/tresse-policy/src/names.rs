//! Tables of policies by name, one for each kind: built-in policies and those of applications, and the names in use.
//!
//! Independent of the factories that make the policies.

use std::sync::Arc;

use crate::error::{PolicyKind, ScheduleError};

/// Factories of one kind by name.
pub(crate) struct Names<F> {
    kind: PolicyKind,
    /// Sorted by name. There are about ten names, nearly all of different lengths, so comparing with each of them takes
    /// a third of the instructions of a search in a tree.
    entries: Vec<Entry<F>>,
}

/// A factory and its name.
pub(crate) struct Entry<F> {
    pub(crate) factory: F,
    pub(crate) built_in: bool,
    /// Every policy that the factory made holds a clone. The name is not in use if this is the only one.
    name: Arc<str>,
}

/// A name that is in use as long as this value exists.
#[derive(Clone, Debug)]
pub struct NameInUse(Arc<str>);

impl<F> Names<F> {
    /// Returns a table of the built-in policies, which cannot be removed.
    pub(crate) fn built_in(kind: PolicyKind, factories: impl IntoIterator<Item = (&'static str, F)>) -> Self {
        let entry = |(name, factory): (&str, F)| Entry { factory, built_in: true, name: name.into() };
        let mut entries: Vec<_> = factories.into_iter().map(entry).collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Names { kind, entries }
    }

    /// Adds a factory.
    ///
    /// # Errors
    /// A name that is taken.
    pub(crate) fn insert(&mut self, name: &str, factory: F) -> Result<(), ScheduleError> {
        match self.entries.binary_search_by(|entry| (*entry.name).cmp(name)) {
            Ok(_) => Err(ScheduleError::NameTaken(name.to_owned())),
            Err(place) => {
                self.entries.insert(place, Entry { factory, built_in: false, name: name.into() });
                Ok(())
            }
        }
    }

    /// Checks that a policy could be removed now.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that is in use.
    pub(crate) fn removable(&self, name: &str) -> Result<(), ScheduleError> {
        let entry = self.find(name)?;
        if entry.built_in {
            return Err(ScheduleError::BuiltIn(name.to_owned()));
        }
        if Arc::strong_count(&entry.name) > 1 {
            return Err(ScheduleError::InUse(name.to_owned()));
        }
        Ok(())
    }

    /// Removes a policy.
    ///
    /// # Errors
    /// As [`Names::removable`].
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), ScheduleError> {
        self.removable(name)?;
        self.entries.retain(|entry| *entry.name != *name);
        Ok(())
    }

    /// Returns the factory of this name.
    ///
    /// # Errors
    /// An unknown name; the error lists the known ones.
    pub(crate) fn find(&self, name: &str) -> Result<&Entry<F>, ScheduleError> {
        self.entries.iter().find(|entry| *entry.name == *name).ok_or_else(|| ScheduleError::Unknown {
            kind: self.kind,
            name: name.to_owned(),
            known: self.list().join(", "),
        })
    }

    /// Returns a function that makes an error of the reason for which the policy of this name refuses its configuration.
    pub(crate) fn refusal(&self, name: &str) -> impl FnOnce(String) -> ScheduleError {
        let kind = self.kind;
        move |reason| ScheduleError::BadConfig { kind, name: name.to_owned(), reason }
    }

    /// Returns the same table, in which no name is in use.
    pub(crate) fn anew(&self) -> Self
    where
        F: Clone,
    {
        let anew = |Entry { factory, built_in, name }: &Entry<F>| Entry {
            factory: factory.clone(),
            built_in: *built_in,
            name: Arc::from(&**name),
        };
        Names { kind: self.kind, entries: self.entries.iter().map(anew).collect() }
    }

    /// Returns the names, in alphabetical order.
    pub(crate) fn list(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| &*entry.name).collect()
    }
}

impl<F> Entry<F> {
    pub(crate) fn name_in_use(&self) -> NameInUse {
        NameInUse(Arc::clone(&self.name))
    }
}

impl NameInUse {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes the name of a policy that is in no registry.
    pub(crate) fn of(name: &str) -> Self {
        NameInUse(name.into())
    }
}

/// Checks the configuration of a policy that takes none.
///
/// # Errors
/// A configuration that is not empty.
pub(crate) fn no_settings(config: &str) -> Result<(), String> {
    if config.is_empty() { Ok(()) } else { Err(format!("it takes no configuration, but got \"{config}\"")) }
}
