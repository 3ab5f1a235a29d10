//! Invariants between the modules of an association, which hold whenever it has been polled until it had nothing to send.
//!
//! Only the swarm and the fuzzer check them.

use tresse_policy::PathId;
use tresse_wire::Mid;

use super::Association;
use crate::extensions::reconfig::Reconfig;
use crate::paths::Member;
use crate::transmission::{UserData, check_transmission, user_data};

/// An association whose internal state is inspected.
#[derive(Copy, Clone)]
pub(crate) struct Inspection<'a>(pub(crate) &'a Association);

/// Lets the message numbers of this side and of the peer begin at these values instead of 0, on all streams. Nothing may have
/// been sent yet.
pub(crate) fn numbered_from(mut association: Box<Association>, [own, peer]: [Mid; 2]) -> Box<Association> {
    if own != Mid(0) {
        association.sender.outbound.begin_at(own);
    }
    if peer != Mid(0) {
        association.reception.inbound.begin_at(peer);
    }
    association
}

impl Inspection<'_> {
    /// Names of the mechanisms that acted and leave no other trace, and how often they acted.
    pub(crate) fn coverage(self) -> Vec<(&'static str, u64)> {
        let sender = &self.0.sender;
        sender.coverage.named_with(sender.outbound.coverage())
    }

    /// Checks each module, and the consistency between them.
    ///
    /// # Errors
    /// The violated invariant.
    pub(crate) fn check(self) -> Result<(), String> {
        let Inspection(association) = self;
        check_transmission(&association.sender.transmission)
            .map_err(|what| format!("transmission: {what}"))?;
        association.reception.inbound.check_invariants().map_err(|what| format!("inbound: {what}"))?;
        let ids = || association.sender.path_ids();
        let held = association.sender.transmission.outstanding.user_data();
        let info = association.sender.outbound.buffer.info();
        if info.used != held + info.unsent {
            return Err(format!("{info:?} in the send buffer, and {held} bytes sent but not released"));
        }
        self.check_counters()?;
        if !association.state.sends_data() {
            return Ok(());
        }
        // A FORWARD TSN whose T3 has expired is due, and waits for a path that may carry it.
        let forward = |path| {
            association.sender.transmission.forward_is_due()
                && association.sender.transmission.outstanding.flight_on(path) == 0
        };
        let paths = &association.sender.paths;
        let lingers = |&path: &PathId| {
            paths.member(path) == Member::Gone
                && association.sender.transmission.outstanding.flight_on(path) > 0
        };
        if let Some(path) = ids().find(lingers) {
            return Err(format!("path {path} is gone and has data in flight"));
        }
        let awaits = |path| association.sender.transmission.awaits(path) && !forward(path);
        let without_timer = ids().find(|&path| awaits(path) && !association.sender.paths.get(path).t3_runs());
        if let Some(path) = without_timer {
            return Err(format!("what was sent on path {path} waits for an answer and its T3 does not run"));
        }
        if association.sender.outbound.is_holding()
            && !association.protection.is_pending()
            && !association.renegotiation.reconfig.as_deref().is_some_and(Reconfig::is_under_way)
        {
            return Err("messages wait for new numbers, and nobody has asked for any".to_owned());
        }
        // While no path is confirmed, all chunks wait for heartbeats.
        let open = ids().any(|path| association.sender.paths.accepts_data(path));
        // Messages that are held for a reset of their stream wait for the response, and do not count.
        let may_leave = |path| {
            association.sender.paths.may_carry_new_data(path)
                && association.sender.outbound.has_data_for(path)
        };
        let queued = association.sender.transmission.outstanding.has_lost()
            || association.sender.transmission.outstanding.assigned() > 0;
        let waits = (queued && open) || ids().any(may_leave);
        if !association.may_have_output()
            && waits
            && association.sender.transmission.outstanding.flight() == 0
            && association.sender.transmission.abandoned_probe().is_none()
        {
            return Err("nothing is in flight, data waits, and nothing is sent".to_owned());
        }
        let unreported = open
            && association.reception.receiver.is_pending()
            && association.reception.receiver.deadline().is_none();
        if !association.may_have_output() && unreported {
            return Err("data has arrived, a report on it is due, and nothing is sent".to_owned());
        }
        Ok(())
    }

    /// Checks that what was sent is acknowledged, waits for that, or was abandoned; and the order of round-trip times.
    fn check_counters(self) -> Result<(), String> {
        let Inspection(association) = self;
        let sender = &association.sender;
        sender.path_ids().try_for_each(|path| sender.paths.get(path).check_round_trips())?;
        // The counters of a path that was removed are gone, and its data counts for other paths.
        if association.has_dynamic_addresses() {
            return Ok(());
        }
        let UserData { sent, unanswered, reneged, copies } = user_data(&sender.transmission);
        let acked: u64 = sender.path_ids().map(|path| sender.paths.get(path).bytes_acked()).sum();
        let (before, after) = (sent + reneged, acked + unanswered);
        let abandoned = sender.abandoned().total().sent > 0;
        // A duplicate that arrives counts as acknowledged on its path, too.
        if before == after || (abandoned && before > after) || copies > 0 {
            return Ok(());
        }
        Err(format!(
            "of {sent} bytes sent {acked} were acknowledged, {reneged} reneged on, and {unanswered} wait"
        ))
    }
}
