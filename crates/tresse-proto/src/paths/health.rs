//! Error counters and what follows from them: paths turn inactive, associations end
//! (RFC 9260 §8.1 to §8.3, §5.4 for confirmation). Knows no timers and no addresses.

use crate::stats::PathState;

/// Whether one path can be trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PathHealth {
    confirmed: bool,
    active: bool,
    /// Timeouts in a row.
    errors: u32,
    /// The state that the application was last told.
    reported: PathState,
}

impl PathHealth {
    pub(super) fn new(confirmed: bool) -> Self {
        let reported = if confirmed { PathState::Active } else { PathState::Unconfirmed };
        PathHealth { confirmed, active: true, errors: 0, reported }
    }

    /// An expiration of T3, or a heartbeat unanswered. The counter of an inactive path stands still.
    pub(super) fn on_error(&mut self, max_retrans: u32) {
        if self.active {
            self.errors += 1;
            self.active = self.errors <= max_retrans;
        }
    }

    /// Something sent here has been answered.
    pub(super) fn on_alive(&mut self) {
        self.errors = 0;
        self.active = true;
    }

    /// The path was shown to lead to the peer.
    pub(super) fn on_confirmed(&mut self) {
        self.confirmed = true;
        self.on_alive();
    }

    pub(super) fn state(&self) -> PathState {
        match (self.active, self.confirmed) {
            (false, _) => PathState::Inactive,
            (true, false) => PathState::Unconfirmed,
            (true, true) => PathState::Active,
        }
    }

    pub(super) fn confirmed(&self) -> bool {
        self.confirmed
    }

    pub(super) fn errors(&self) -> u32 {
        self.errors
    }

    /// The state, if it is not the one that was last reported.
    pub(super) fn unreported(&mut self) -> Option<PathState> {
        let state = self.state();
        (std::mem::replace(&mut self.reported, state) != state).then_some(state)
    }
}

/// Timeouts in a row on all paths of an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AssociationHealth {
    errors: u32,
    max_retrans: u32,
}

impl AssociationHealth {
    pub(super) fn new(max_retrans: u32) -> Self {
        AssociationHealth { errors: 0, max_retrans }
    }

    pub(super) fn on_error(&mut self) {
        self.errors = self.errors.saturating_add(1);
    }

    pub(super) fn on_alive(&mut self) {
        self.errors = 0;
    }

    pub(super) fn verdict(&self) -> Failure {
        Failure { association_errors: self.errors, association_lost: self.errors > self.max_retrans }
    }
}

/// Where an association stands after a timeout. Path states are told by `Paths::pop_state_change`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// Timeouts in a row.
    pub(crate) association_errors: u32,
    /// More of them than Association.Max.Retrans: the peer is unreachable.
    pub(crate) association_lost: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_turns_inactive_when_errors_exceed_the_limit_and_returns_with_an_answer() {
        let mut health = PathHealth::new(true);
        for _ in 0..5 {
            health.on_error(5);
            assert_eq!(health.state(), PathState::Active);
        }
        health.on_error(5);
        health.on_error(5);
        assert_eq!((health.state(), health.errors()), (PathState::Inactive, 6));
        health.on_alive();
        assert_eq!((health.state(), health.errors()), (PathState::Active, 0));
    }

    #[test]
    fn only_confirmation_makes_a_new_path_active() {
        let mut health = PathHealth::new(false);
        health.on_error(0);
        assert_eq!(health.state(), PathState::Inactive);
        health.on_alive();
        assert_eq!(health.state(), PathState::Unconfirmed);
        health.on_confirmed();
        assert_eq!(health.state(), PathState::Active);
    }

    #[test]
    fn a_change_is_reported_once_and_a_change_back_cancels_it() {
        let mut health = PathHealth::new(true);
        assert_eq!(health.unreported(), None);
        health.on_error(0);
        assert_eq!(health.unreported(), Some(PathState::Inactive));
        assert_eq!(health.unreported(), None);
        health.on_alive();
        health.on_error(0);
        assert_eq!(health.unreported(), None);
    }

    #[test]
    fn an_association_is_lost_when_errors_exceed_the_limit() {
        let mut health = AssociationHealth::new(2);
        health.on_error();
        health.on_error();
        assert_eq!(health.verdict(), Failure { association_errors: 2, association_lost: false });
        health.on_error();
        assert!(health.verdict().association_lost);
        health.on_alive();
        assert_eq!(health.verdict().association_errors, 0);
    }
}
