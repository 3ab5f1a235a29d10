//! What the rooms of an association must agree on whenever it has been polled until it had nothing to send.
//!
//! Checked by simulations; nothing in the core asks.

use tresse_wire::Mid;

use super::Association;
use crate::extensions::reconfig::Reconfig;

impl Association {
    /// What was at work without any other trace, by name, and how often.
    pub(crate) fn coverage(&self) -> Vec<(&'static str, u64)> {
        self.sender.coverage.named_with(self.sender.outbound.coverage())
    }

    /// With the first messages of this side and of the peer numbered so instead of 0, on every stream that there is.
    /// Nothing was sent yet.
    pub(crate) fn numbered_from(mut self: Box<Self>, [own, peer]: [Mid; 2]) -> Box<Self> {
        if own != Mid(0) {
            self.sender.outbound.begin_at(own);
        }
        if peer != Mid(0) {
            self.reception.inbound.begin_at(peer);
        }
        self
    }

    /// Checks each room, and that they fit together.
    ///
    /// # Errors
    /// What does not.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        self.sender.transmission.check_invariants().map_err(|what| format!("transmission: {what}"))?;
        self.reception.inbound.check_invariants().map_err(|what| format!("inbound: {what}"))?;
        let ids = || self.sender.path_ids();
        let held = self.sender.transmission.user_data();
        let info = self.sender.outbound.info();
        if info.used != held + info.unsent {
            return Err(format!("{info:?} in the send buffer, and {held} bytes sent but not released"));
        }
        if !self.state.sends_data() {
            return Ok(());
        }
        // A FORWARD TSN whose T3 has expired is due, and waits for a path that may carry it.
        let forward =
            |path| self.sender.transmission.forward_is_due() && self.sender.transmission.flight_on(path) == 0;
        let awaits = |path| self.sender.transmission.awaits(path) && !forward(path);
        let without_timer = ids().find(|&path| awaits(path) && !self.sender.paths.get(path).t3_runs());
        if let Some(path) = without_timer {
            return Err(format!("what was sent on path {path} waits for an answer and its T3 does not run"));
        }
        if self.sender.outbound.is_holding()
            && !self.protection.is_pending()
            && !self.reconfig.as_deref().is_some_and(Reconfig::is_under_way)
        {
            return Err("messages wait for new numbers, and nobody has asked for any".to_owned());
        }
        // While no path is confirmed everything waits for heartbeats.
        let open = ids().any(|path| self.sender.paths.accepts_data(path));
        // What is kept back until its stream has begun anew waits for the answer.
        let may_leave =
            |path| self.sender.paths.may_carry_new_data(path) && self.sender.outbound.has_data_for(path);
        let queued = self.sender.transmission.has_lost() || self.sender.transmission.assigned() > 0;
        let waits = (queued && open) || ids().any(may_leave);
        if !self.is_stirred() && waits && self.sender.transmission.flight() == 0 {
            return Err("nothing is in flight, data waits, and nothing is sent".to_owned());
        }
        let unreported =
            open && self.reception.receiver.is_pending() && self.reception.receiver.deadline().is_none();
        if !self.is_stirred() && unreported {
            return Err("data has arrived, a report on it is due, and nothing is sent".to_owned());
        }
        Ok(())
    }
}
