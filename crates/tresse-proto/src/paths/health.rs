//! Error counters and their effects: paths become potentially failed (RFC 7829) and inactive, associations end (RFC 9260 §8.1
//! to §8.3; §5.4 for confirmation). Independent of timers and addresses.

use std::time::Duration;

use tresse_policy::PathState;

use crate::config::AssociationConfig;
use crate::interface::adjustment::{NEVER, PathAdjustment};

/// Limits of a path's error counter, which counts consecutive timeouts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Tolerance {
    /// Path.Max.Retrans: a path with more errors is inactive.
    inactive: u32,
    /// PFMR: a path with more errors is potentially failed (RFC 7829 §3.1); `None` if that state is not used.
    potentially_failed: Option<u32>,
    /// PSMR: a path with more errors is no longer the primary path (RFC 7829 §5).
    pub(super) primary: Option<u32>,
}

/// Largest error counter of an inactive path, as a multiple of the value at which the path became inactive. So the counters
/// distinguish paths that are all inactive (RFC 7829 §4.1).
const DORMANT_FACTOR: u32 = 10;

/// Settings for the supervision of a path: those of all paths, or its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Watch {
    /// HB.interval; with zero, only heartbeats that confirm a path are sent.
    pub(super) heartbeat_interval: Duration,
    max_retrans: u32,
    /// PFMR as configured, whether heartbeats are sent or not.
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
        // Only heartbeats restore a potentially failed path that carries no data: without them, the path keeps carrying data.
        let on = !self.heartbeat_interval.is_zero();
        Tolerance {
            inactive: self.max_retrans,
            potentially_failed: self.potentially_failed.filter(|_| on),
            primary: self.primary,
        }
    }
}

impl Tolerance {
    /// Returns whether paths become potentially failed (RFC 7829).
    pub(super) fn has_potentially_failed(&self) -> bool {
        self.potentially_failed.is_some()
    }

    /// Returns the largest value of an error counter.
    fn most(&self) -> u32 {
        let first_too_many = self.inactive.saturating_add(1);
        if self.has_potentially_failed() {
            first_too_many.saturating_mul(DORMANT_FACTOR)
        } else {
            first_too_many
        }
    }
}

/// Confirmation, reachability and errors of one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PathHealth {
    confirmed: bool,
    reachability: Reachability,
    /// The state that follows from both, cached because it is read many times for each packet.
    state: PathState,
    /// Consecutive timeouts.
    errors: u32,
    /// The state that was last reported to the application.
    reported: PathState,
}

/// Reachability of a path by its timeouts, whether it is confirmed or not.
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

    /// Returns the state of a path that joins later: its first state is reported, too.
    pub(super) fn unknown() -> Self {
        PathHealth { reported: PathState::Removed, ..PathHealth::new(false) }
    }

    /// Returns the state of a path that is tried in place of this one, with the same errors.
    pub(super) fn passed_on(&self) -> Self {
        PathHealth { reported: PathState::Removed, ..self.clone() }
    }

    /// Counts an expiration of T3, or a heartbeat without an answer.
    pub(super) fn on_error(&mut self, tolerance: &Tolerance) {
        self.errors = self.errors.saturating_add(1).min(tolerance.most());
        if self.errors > tolerance.inactive {
            self.reachability = Reachability::Bad;
        } else if self.confirmed && tolerance.potentially_failed.is_some_and(|most| self.errors > most) {
            self.reachability = Reachability::Doubtful;
        }
        self.judge();
    }

    /// Suspects the path, because it does not answer while other paths do.
    pub(super) fn on_suspected(&mut self) {
        if self.reachability == Reachability::Good {
            self.reachability = Reachability::Doubtful;
        }
        self.judge();
    }

    /// Clears the errors, because something sent on the path was answered.
    pub(super) fn on_alive(&mut self) {
        self.errors = 0;
        self.reachability = Reachability::Good;
        self.judge();
    }

    /// Confirms the path: it leads to the peer.
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

    /// Returns `state`, the present state of the path, if it is not the one that was last reported.
    pub(super) fn unreported(&mut self, state: PathState) -> Option<PathState> {
        (std::mem::replace(&mut self.reported, state) != state).then_some(state)
    }
}

/// Consecutive timeouts on all paths of an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AssociationHealth {
    errors: u32,
    max_retrans: u32,
}

impl AssociationHealth {
    pub(super) fn new(max_retrans: u32) -> Self {
        AssociationHealth { errors: 0, max_retrans }
    }

    /// Sets Association.Max.Retrans.
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
    /// Consecutive timeouts.
    pub(crate) association_errors: u32,
    /// True if they are more than Association.Max.Retrans: the peer is unreachable.
    pub(crate) association_lost: bool,
    /// True if another path has become the primary one.
    pub(crate) primary_changed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(health: &mut PathHealth) -> Option<PathState> {
        let state = health.state();
        health.unreported(state)
    }

    /// Limits without the potentially failed state.
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
        assert_eq!(reported(&mut health), None);
        health.on_error(&tolerating(0));
        assert_eq!(reported(&mut health), Some(PathState::Inactive));
        assert_eq!(reported(&mut health), None);
        health.on_alive();
        health.on_error(&tolerating(0));
        assert_eq!(reported(&mut health), None);
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
