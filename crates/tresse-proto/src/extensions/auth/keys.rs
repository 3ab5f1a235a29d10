//! The shared keys of an endpoint or an association (endpoint pair shared keys, RFC 4895 §2): by number, one of them active. Key
//! 0 exists from the start and is empty. It may be set and removed like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::interface::error::KeyError;

/// Shared keys by number.
#[derive(Clone)]
pub(crate) struct SharedKeys {
    secrets: BTreeMap<u16, Box<[u8]>>,
    /// The number of the key that this side uses; this key always exists.
    active: u16,
    /// Keys that this side will not use again. The peer may still use them.
    deactivated: BTreeSet<u16>,
}

impl Default for SharedKeys {
    fn default() -> Self {
        SharedKeys { secrets: BTreeMap::from([(0, Box::default())]), active: 0, deactivated: BTreeSet::new() }
    }
}

impl SharedKeys {
    /// Sets or replaces a key. This side may use it, even if it deactivated an earlier key with the number.
    pub(crate) fn set(&mut self, number: u16, secret: &[u8]) {
        self.deactivated.remove(&number);
        self.secrets.insert(number, secret.into());
    }

    /// Uses another key from now on.
    ///
    /// # Errors
    /// No key has this number, or it was deactivated.
    pub(crate) fn activate(&mut self, number: u16) -> Result<(), KeyError> {
        if !self.secrets.contains_key(&number) {
            return Err(self.unknown(number));
        }
        if self.deactivated.contains(&number) {
            return Err(KeyError::Deactivated { number });
        }
        self.active = number;
        Ok(())
    }

    /// Removes a key. Chunks that the peer authenticates with it are discarded from now on.
    ///
    /// # Errors
    /// No key has this number, or it is the active one.
    pub(crate) fn remove(&mut self, number: u16) -> Result<(), KeyError> {
        self.check_unused(number)?;
        self.secrets.remove(&number);
        self.deactivated.remove(&number);
        Ok(())
    }

    /// Ends the use of a key by this side. Chunks that the peer authenticates with it are still accepted.
    ///
    /// # Errors
    /// No key has this number, or it is the active one.
    pub(crate) fn deactivate(&mut self, number: u16) -> Result<(), KeyError> {
        self.check_unused(number)?;
        self.deactivated.insert(number);
        Ok(())
    }

    fn check_unused(&self, number: u16) -> Result<(), KeyError> {
        match number {
            _ if number == self.active => Err(KeyError::Active { number }),
            _ if self.secrets.contains_key(&number) => Ok(()),
            _ => Err(self.unknown(number)),
        }
    }

    /// Returns the number of the active key; `keys` is `None` if the null key is the only one.
    pub(super) fn active_of(keys: &Option<Box<SharedKeys>>) -> u16 {
        keys.as_ref().map_or(0, |keys| keys.active)
    }

    /// Returns the secret of key `number`, if there is one; `keys` is `None` if the null key is the only one.
    pub(super) fn secret_of(keys: &Option<Box<SharedKeys>>, number: u16) -> Option<&[u8]> {
        match keys {
            Some(keys) => keys.secrets.get(&number).map(|secret| &secret[..]),
            None => (number == 0).then_some(&[]),
        }
    }

    fn unknown(&self, number: u16) -> KeyError {
        let known: Vec<String> = self.secrets.keys().map(u16::to_string).collect();
        KeyError::Unknown { number, known: known.join(", ") }
    }
}

impl fmt::Debug for SharedKeys {
    /// Does not print the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keys {:?}, {} active", self.secrets.keys(), self.active)
    }
}
