//! Error counters and their effects: paths turn potentially failed (RFC 7829) and inactive,
//! associations end (RFC 9260 §8.1 to §8.3, §5.4 for confirmation). Knows no timers and no addresses.

use std::time::Duration;

use tresse_policy::PathState;

use crate::config::AssociationConfig;
use crate::interface::adjustment::{NEVER, PathAdjustment};

/// Number of timeouts in a row that a path may have.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Tolerance {
    /// Path.Max.Retrans: with more it is inactive.
    inactive: u32,
    /// PFMR: with more it is potentially failed (RFC 7829 §3.1); `None` when there is no such state.
    potentially_failed: Option<u32>,
    /// PSMR: with more it is the primary path no longer (RFC 7829 §5).
    pub(super) primary: Option<u32>,
}

/// Largest error counter of an inactive path, in multiples of the limit for inactivity: the counters distinguish
/// paths that are all inactive (RFC 7829 §4.1).
const DORMANT_FACTOR: u32 = 10;

/// Supervision of a path: by the settings of all, unless it was given its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Watch {
    /// HB.interval; zero sends no heartbeats but those that confirm a path.
    pub(super) heartbeat_interval: Duration,
    max_retrans: u32,
    /// PFMR, whether heartbeats are sent or not.
    potentially_failed: Option<u32>,
    primary: Option<u32>,
}

impl Watch {
    pub(super) fn new(config: &AssociationConfig) -> Self {
        let primary = config.primary_switchover_max_retrans;
        Watch {
            heartbeat_interval: config.heartbeat_interval,
            max_retrans: config.path_max_retrans,
            potentially_failed: config.potentially_failed.then_some(config.potentially_failed_max_retrans),
            primary: (primary < NEVER).then_some(primary),
        }
    }

    pub(super) fn adjust(&mut self, change: &PathAdjustment) {
        let threshold = |most: u32| (most < NEVER).then_some(most);
        self.heartbeat_interval = change.heartbeat_interval.unwrap_or(self.heartbeat_interval);
        self.max_retrans = change.max_retrans.unwrap_or(self.max_retrans);
        self.potentially_failed =
            change.potentially_failed_max_retrans.map_or(self.potentially_failed, threshold);
        self.primary = change.primary_switchover_max_retrans.map_or(self.primary, threshold);
    }

    pub(super) fn tolerance(&self) -> Tolerance {
        // Only a heartbeat brings a path back that carries no data: without them, data keeps trying.
        let on = !self.heartbeat_interval.is_zero();
        Tolerance {
            inactive: self.max_retrans,
            potentially_failed: self.potentially_failed.filter(|_| on),
            primary: self.primary,
        }
    }
}

impl Tolerance {
    /// Returns whether RFC 7829 is followed.
    pub(super) fn has_potentially_failed(&self) -> bool {
        self.potentially_failed.is_some()
    }

    /// Up to where an error counter grows.
    fn most(&self) -> u32 {
        let first_too_many = self.inactive.saturating_add(1);
        if self.has_potentially_failed() {
            first_too_many.saturating_mul(DORMANT_FACTOR)
        } else {
            first_too_many
        }
    }
}

/// Trust in one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PathHealth {
    confirmed: bool,
    reachability: Reachability,
    /// Result of both: asked many times for each packet.
    state: PathState,
    /// Timeouts in a row.
    errors: u32,
    /// The state that the application was last told.
    reported: PathState,
}

/// State of a path by its timeouts, be it confirmed or not.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Reachability {
    Good,
    Doubtful,
    Bad,
}

impl PathHealth {
    pub(super) fn new(confirmed: bool) -> Self {
        let reported = if confirmed { PathState::Active } else { PathState::Unconfirmed };
        PathHealth { confirmed, reachability: Reachability::Good, state: reported, errors: 0, reported }
    }

    /// Of a path that joins later: its first state is news too.
    pub(super) fn unknown() -> Self {
        PathHealth { reported: PathState::Removed, ..PathHealth::new(false) }
    }

    /// An expiration of T3, or a heartbeat unanswered.
    pub(super) fn on_error(&mut self, tolerance: &Tolerance) {
        self.errors = self.errors.saturating_add(1).min(tolerance.most());
        if self.errors > tolerance.inactive {
            self.reachability = Reachability::Bad;
        } else if self.confirmed && tolerance.potentially_failed.is_some_and(|most| self.errors > most) {
            self.reachability = Reachability::Doubtful;
        }
        self.judge();
    }

    /// It is silent while others speak.
    pub(super) fn on_suspected(&mut self) {
        if self.reachability == Reachability::Good {
            self.reachability = Reachability::Doubtful;
        }
        self.judge();
    }

    /// Something sent here has been answered.
    pub(super) fn on_alive(&mut self) {
        self.errors = 0;
        self.reachability = Reachability::Good;
        self.judge();
    }

    /// The path was shown to lead to the peer.
    pub(super) fn on_confirmed(&mut self) {
        self.confirmed = true;
        self.on_alive();
    }

    pub(super) fn state(&self) -> PathState {
        self.state
    }

    fn judge(&mut self) {
        self.state = match (self.reachability, self.confirmed) {
            (Reachability::Bad, _) => PathState::Inactive,
            (_, false) => PathState::Unconfirmed,
            (Reachability::Doubtful, true) => PathState::PotentiallyFailed,
            (Reachability::Good, true) => PathState::Active,
        };
    }

    pub(super) fn confirmed(&self) -> bool {
        self.confirmed
    }

    pub(super) fn errors(&self) -> u32 {
        self.errors
    }

    /// `state`, which is that of the path, if it is not the one that was last reported.
    pub(super) fn unreported(&mut self, state: PathState) -> Option<PathState> {
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

    /// Lets an association have another number of timeouts in a row.
    pub(super) fn set_max_retrans(&mut self, most: u32) {
        self.max_retrans = most;
    }

    pub(super) fn on_error(&mut self) {
        self.errors = self.errors.saturating_add(1);
    }

    pub(super) fn on_alive(&mut self) {
        self.errors = 0;
    }

    pub(super) fn errors(&self) -> u32 {
        self.errors
    }

    pub(super) fn verdict(&self) -> Failure {
        Failure {
            association_errors: self.errors,
            association_lost: self.errors > self.max_retrans,
            primary_changed: false,
        }
    }
}

/// State of an association after a timeout. `Paths::pop_state_change` reports the states of paths.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// Timeouts in a row.
    pub(crate) association_errors: u32,
    /// More of them than Association.Max.Retrans: the peer is unreachable.
    pub(crate) association_lost: bool,
    /// Another path has become the primary one.
    pub(crate) primary_changed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(health: &mut PathHealth) -> Option<PathState> {
        let state = health.state();
        health.unreported(state)
    }

    /// Without the potentially failed state.
    fn tolerating(inactive: u32) -> Tolerance {
        Tolerance { inactive, potentially_failed: None, primary: None }
    }

    #[test]
    fn a_path_turns_inactive_when_errors_exceed_the_limit_and_returns_with_an_answer() {
        let mut health = PathHealth::new(true);
        for _ in 0..5 {
            health.on_error(&tolerating(5));
            assert_eq!(health.state(), PathState::Active);
        }
        health.on_error(&tolerating(5));
        health.on_error(&tolerating(5));
        assert_eq!((health.state(), health.errors()), (PathState::Inactive, 6));
        health.on_alive();
        assert_eq!((health.state(), health.errors()), (PathState::Active, 0));
    }

    #[test]
    fn a_path_is_potentially_failed_before_it_is_inactive() {
        let tolerance = Tolerance { potentially_failed: Some(1), ..tolerating(3) };
        let mut health = PathHealth::new(true);
        let mut seen = Vec::new();
        for _ in 0..5 {
            health.on_error(&tolerance);
            seen.push(health.state());
        }
        let (active, doubtful, inactive) =
            (PathState::Active, PathState::PotentiallyFailed, PathState::Inactive);
        assert_eq!(seen, [active, doubtful, doubtful, inactive, inactive]);
        assert_eq!(health.errors(), 5, "those of an inactive path count on");
        for _ in 0..100 {
            health.on_error(&tolerance);
        }
        assert_eq!(health.errors(), 40, "up to ten times the limit");
        health.on_alive();
        assert_eq!((health.state(), health.errors()), (active, 0));
    }

    #[test]
    fn a_path_not_yet_confirmed_is_never_potentially_failed() {
        let tolerance = Tolerance { potentially_failed: Some(0), ..tolerating(1) };
        let mut health = PathHealth::new(false);
        health.on_error(&tolerance);
        assert_eq!(health.state(), PathState::Unconfirmed);
        health.on_error(&tolerance);
        assert_eq!(health.state(), PathState::Inactive);
    }

    #[test]
    fn without_heartbeats_nothing_is_potentially_failed() {
        let config = AssociationConfig::default();
        assert!(Watch::new(&config).tolerance().has_potentially_failed());
        let silent = AssociationConfig { heartbeat_interval: std::time::Duration::ZERO, ..config };
        assert!(!Watch::new(&silent).tolerance().has_potentially_failed());
    }

    #[test]
    fn only_confirmation_makes_a_new_path_active() {
        let mut health = PathHealth::new(false);
        health.on_error(&tolerating(0));
        assert_eq!(health.state(), PathState::Inactive);
        health.on_alive();
        assert_eq!(health.state(), PathState::Unconfirmed);
        health.on_confirmed();
        assert_eq!(health.state(), PathState::Active);
    }

    #[test]
    fn a_change_is_reported_once_and_a_change_back_cancels_it() {
        let mut health = PathHealth::new(true);
        assert_eq!(told(&mut health), None);
        health.on_error(&tolerating(0));
        assert_eq!(told(&mut health), Some(PathState::Inactive));
        assert_eq!(told(&mut health), None);
        health.on_alive();
        health.on_error(&tolerating(0));
        assert_eq!(told(&mut health), None);
    }

    #[test]
    fn an_association_is_lost_when_errors_exceed_the_limit() {
        let mut health = AssociationHealth::new(2);
        health.on_error();
        health.on_error();
        assert_eq!((health.verdict().association_errors, health.verdict().association_lost), (2, false));
        health.on_error();
        assert!(health.verdict().association_lost);
        health.on_alive();
        assert_eq!(health.verdict().association_errors, 0);
    }
}
