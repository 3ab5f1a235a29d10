//! Fast recovery of one path (RFC 9260 §7.2.4, per path as in CMT): shared by all algorithms.
//!
//! For one SACK, windows first grow, then leave or enter recovery; a window is reduced at most once in each recovery.
//! Each algorithm defines the amounts. A congestion mark begins a recovery as a loss does (RFC 3168 §6.1.2), but there
//! is nothing to retransmit.

use super::window::{PathAck, Window};

impl Window {
    /// Returns whether this SACK may make the window grow: data of the path was acknowledged, CUC allows growth, and
    /// the path was not in recovery when the SACK arrived.
    pub(super) fn growth_allowed(&self, ack: &PathAck) -> bool {
        ack.acked > 0 && ack.may_grow && self.recovery.is_none()
    }

    /// Leaves recovery when its exit point has been passed, and enters it on a loss. Returns whether recovery begins
    /// now, so that the window is to be reduced.
    pub(super) fn recovery_begins(&mut self, ack: &PathAck) -> bool {
        if self.recovery.is_some_and(|exit_point| ack.recovered_to >= exit_point) {
            self.recovery = None;
        }
        if !ack.lost {
            return false;
        }
        let begins = self.recovery.is_none();
        if begins || self.marked {
            // A congestion mark has begun this recovery and reduced the window. From now on the recovery also repairs a loss.
            self.recovery = Some(ack.exit_point);
            self.marked = false;
        }
        begins
    }

    /// Returns the exit point of a recovery that repairs losses.
    pub fn repairs(&self) -> Option<u64> {
        self.recovery.filter(|_| !self.marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathId;

    fn ack(recovered_to: u64, lost: bool) -> PathAck {
        PathAck {
            path: PathId(0),
            acked: 1452,
            lost_bytes: 0,
            rtt: None,
            flight_before: 14_520,
            flight_after: 13_068,
            may_grow: true,
            lost,
            exit_point: 20,
            recovered_to,
        }
    }

    #[test]
    fn recovery_begins_once_and_ends_at_the_exit_point() {
        let mut window = Window::new(1452, false, 0);
        assert!(window.recovery_begins(&ack(5, true)));
        assert_eq!(window.recovery, Some(20));
        assert!(!window.growth_allowed(&ack(6, false)));

        assert!(!window.recovery_begins(&ack(10, true)), "a second loss within the window");
        assert!(!window.recovery_begins(&ack(19, false)));
        assert_eq!(window.recovery, Some(20));

        assert!(!window.recovery_begins(&ack(20, false)));
        assert_eq!(window.recovery, None);
        assert!(window.growth_allowed(&ack(21, false)));
    }

    #[test]
    fn the_sack_that_ends_a_recovery_can_begin_the_next() {
        let mut window = Window { recovery: Some(20), ..Window::new(1452, false, 0) };
        let next = PathAck { exit_point: 40, ..ack(20, true) };
        assert!(window.recovery_begins(&next));
        assert_eq!(window.recovery, Some(40));
    }

    #[test]
    fn a_loss_within_a_marked_window_is_repaired_without_another_cut() {
        let mut window = Window { recovery: Some(20), marked: true, ..Window::new(1452, false, 0) };
        assert_eq!(window.repairs(), None);
        let loss = PathAck { exit_point: 30, ..ack(10, true) };
        assert!(!window.recovery_begins(&loss));
        assert_eq!((window.recovery, window.repairs()), (Some(30), Some(30)));
        assert!(!window.recovery_begins(&PathAck { exit_point: 40, ..loss }));
        assert_eq!(window.repairs(), Some(30));
    }

    #[test]
    fn growth_needs_acknowledged_bytes_and_the_consent_of_cuc() {
        let window = Window::new(1452, false, 0);
        assert!(!window.growth_allowed(&PathAck { acked: 0, ..ack(1, false) }));
        assert!(!window.growth_allowed(&PathAck { may_grow: false, ..ack(1, false) }));
    }
}
