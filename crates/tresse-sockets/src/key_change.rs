//! Changes of the shared keys by which chunks are authenticated (RFC 6458 §8.3), and those that wait for an endpoint.

use tresse_proto::{AssociationHandle, Endpoint, KeyError};

/// A change of the shared keys of the endpoint, or of an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeyChange {
    Set(u16, Vec<u8>),
    Use(u16),
    Remove(u16),
    Deactivate(u16),
}

impl KeyChange {
    pub(crate) fn of_endpoint(&self, endpoint: &mut Endpoint) -> Result<(), KeyError> {
        match self {
            KeyChange::Set(number, secret) => {
                endpoint.set_shared_key(*number, secret);
                Ok(())
            }
            KeyChange::Use(number) => endpoint.use_shared_key(*number),
            KeyChange::Remove(number) => endpoint.remove_shared_key(*number),
            KeyChange::Deactivate(number) => endpoint.deactivate_shared_key(*number),
        }
    }

    /// Adds this change to those kept for later, and removes those that it makes void: at most two stay for each key. They are
    /// sorted so that all succeed: a key is set before it is used, and another key is used before one is deactivated or removed.
    pub(crate) fn join(&self, kept: &mut Vec<KeyChange>) {
        let is_on = |one: &KeyChange| match (one, self) {
            (KeyChange::Use(_), KeyChange::Use(_)) => true,
            (
                KeyChange::Set(known, _) | KeyChange::Remove(known) | KeyChange::Deactivate(known),
                KeyChange::Set(number, _) | KeyChange::Remove(number),
            )
            | (KeyChange::Deactivate(known), KeyChange::Deactivate(number)) => known == number,
            _ => false,
        };
        kept.retain(|one| !is_on(one));
        // Without changes, an endpoint has only the null key (RFC 4895 §6.1), so there is no other key to remove.
        if !matches!(self, KeyChange::Remove(1..)) {
            kept.push(self.clone());
        }
        kept.sort_by_key(|one| match one {
            KeyChange::Set(..) => 0,
            KeyChange::Use(_) => 1,
            KeyChange::Remove(_) | KeyChange::Deactivate(_) => 2,
        });
    }

    pub(crate) fn of_association(&self, association: &mut AssociationHandle<'_>) -> Result<(), KeyError> {
        match self {
            KeyChange::Set(number, secret) => association.set_shared_key(*number, secret),
            KeyChange::Use(number) => association.use_shared_key(*number),
            KeyChange::Remove(number) => association.remove_shared_key(*number),
            KeyChange::Deactivate(number) => association.deactivate_shared_key(*number),
        }
    }
}

#[cfg(test)]
mod tests {
    use tresse_proto::{AssociationConfig, EndpointConfig};

    use super::*;

    fn kept(changes: &[KeyChange]) -> Vec<KeyChange> {
        let mut kept = Vec::new();
        changes.iter().for_each(|change| change.join(&mut kept));
        let (settings, config) = (EndpointConfig::default(), AssociationConfig::default());
        let mut later = Endpoint::new(settings, config, [0; 32]).expect("sound");
        for change in &kept {
            assert_eq!(change.of_endpoint(&mut later), Ok(()), "{kept:?}");
        }
        kept
    }

    #[test]
    fn of_changes_before_there_is_an_endpoint_those_stay_that_count() {
        use KeyChange::{Deactivate, Remove, Set, Use};
        let key = |number, byte| Set(number, vec![byte; 16]);
        assert_eq!(kept(&[key(1, 1), Use(1), key(1, 2)]), [key(1, 2), Use(1)]);
        assert_eq!(kept(&[key(1, 1), Use(1), key(2, 2), Use(2), Remove(1)]), [key(2, 2), Use(2)]);
        let replaced = [key(1, 1), Use(1), Remove(0), key(0, 3)];
        assert_eq!(kept(&replaced), [key(1, 1), key(0, 3), Use(1)]);
        let null_goes = [key(1, 1), Use(1), Remove(0), key(2, 2), Use(2), Remove(1)];
        assert_eq!(kept(&null_goes), [key(2, 2), Use(2), Remove(0)]);
        let null_returns = [key(1, 1), Use(1), Remove(0), key(0, 3), Use(0), Remove(1)];
        assert_eq!(kept(&null_returns), [key(0, 3), Use(0)]);
        let both = [key(1, 1), Use(1), key(2, 2), Deactivate(2), Deactivate(2), Deactivate(0)];
        assert_eq!(kept(&both), [key(1, 1), key(2, 2), Use(1), Deactivate(2), Deactivate(0)]);
        assert_eq!(
            kept(&[&both[..], &[key(2, 3), Remove(0)]].concat()),
            [key(1, 1), key(2, 3), Use(1), Remove(0)]
        );
        let many: Vec<_> = (0..10_000).map(|number| key(7, number as u8)).collect();
        assert_eq!(kept(&many), [key(7, 9_999_u32 as u8)]);
    }
}
