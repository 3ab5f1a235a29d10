//! Stand-in for key management in builds without encryption: no value of it exists.

use tresse_proto::{AssociationConfig, AssociationId, Endpoint, Event, Instant};

pub(crate) enum Keyring {}

#[derive(Copy, Clone, PartialEq, Eq)]
#[allow(dead_code, reason = "nobody is there to say it")]
pub(crate) enum KeyEvent {
    Foreign,
    Own,
    Sealed,
}

impl Keyring {
    pub(crate) fn let_others_call(&mut self) {
        match *self {}
    }

    pub(crate) fn require(&self, _: AssociationConfig) -> AssociationConfig {
        match *self {}
    }

    pub(crate) fn on_event(
        &mut self,
        _: &mut Endpoint,
        _: Instant,
        _: (AssociationId, bool),
        _: &Event,
    ) -> KeyEvent {
        match *self {}
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match *self {}
    }

    pub(crate) fn handle_timeout(&mut self, _: &mut Endpoint, _: Instant) -> bool {
        match *self {}
    }

    pub(crate) fn forget(&mut self, _: AssociationId) {
        match *self {}
    }
}
