//! Dynamic addresses in the corridor (RFC 5061): ASCONF goes out, its answer comes in, and what was agreed is done
//! to the paths. `command` has what the application asks, `grant` what the peer asks, `members` the paths.

mod command;
mod grant;
mod members;

use std::collections::VecDeque;

use tresse_policy::{Instant, PathId};
use tresse_wire::AsconfAck;

use super::control::{Control, Reason};
use super::{Association, Extension, State};
use crate::extensions::asconf::{Asconf, StrayAck, Wish};
use crate::interface::addresses::{AddressChange, AddressOutcome};
use crate::interface::event::{CloseReason, Event};
use crate::paths::Member;

pub(crate) use grant::Source;
pub(crate) use members::PeerNews;

/// What an association keeps of changing addresses, from the first request of either side on.
#[derive(Debug)]
pub(super) struct Dynamic {
    asconf: Asconf,
    /// Addresses of the peer that came or went, for the endpoint that finds the association by them.
    news: VecDeque<PeerNews>,
}

impl Association {
    /// The next address of the peer that came or went.
    pub(crate) fn pop_peer_news(&mut self) -> Option<PeerNews> {
        self.dynamic.as_mut()?.news.pop_front()
    }

    /// When T4 expires.
    pub(super) fn asconf_deadline(&self) -> Option<Instant> {
        self.dynamic.as_ref()?.asconf.own.deadline()
    }

    /// Sends what waits, if nothing is in flight (RFC 5061 §5.1 A3).
    fn advance_asconf(&mut self, now: Instant) {
        if !self.may_change_addresses() {
            return;
        }
        let lookup =
            self.paths.living().find(|path| path.member() != Member::Pending).map(|path| path.local());
        let own = &mut self.dynamic().asconf.own;
        if lookup.is_some_and(|lookup| own.begin(lookup)) {
            self.send_asconf(now, None);
        }
    }

    /// T4 may have expired: the chunk goes again, on another path if there is one (RFC 5061 §5.1 B1 to B5).
    pub(super) fn on_asconf_timer(&mut self, now: Instant) {
        let Some(path) = self.dynamic.as_mut().and_then(|dynamic| dynamic.asconf.own.pop_due(now)) else {
            return;
        };
        if !self.may_change_addresses() {
            return;
        }
        let failure = self.paths.on_request_expired(path);
        self.on_failure(now, failure);
        if self.state != State::Closed {
            self.send_asconf(now, Some(path));
        }
        self.spread_path_changes(now);
    }

    /// ASCONF-ACK arrived over `via` (RFC 5061 §5.1 A5 to A8).
    pub(super) fn on_asconf_ack(&mut self, now: Instant, via: PathId, ack: &AsconfAck<'_>) {
        if !self.may_change_addresses() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let own = &mut self.dynamic().asconf.own;
        let sent_on = own.path();
        match own.on_ack(ack.serial, &ack.params) {
            Ok(outcomes) => {
                for (wish, outcome) in outcomes {
                    self.on_answered_wish(now, wish, outcome);
                }
                if let Some(path) = sent_on.filter(|&path| self.paths.member(path) == Member::Joined) {
                    self.paths.on_answered(path);
                }
                self.advance_asconf(now);
            }
            Err(StrayAck::Old) => self.counters.discards.stray_asconf += 1,
            Err(StrayAck::Illegal) => {
                self.control.clear();
                self.control.push(via, Control::Abort(Some(Reason::IllegalAsconfAck)));
                self.close(CloseReason::PeerFault("an answer to an ASCONF that was never sent"));
            }
        }
    }

    /// The peer understands no ASCONF (RFC 5061 §5.1 A9).
    pub(super) fn on_asconf_unknown(&mut self, now: Instant) {
        if let Some(dynamic) = &mut self.dynamic {
            for wish in dynamic.asconf.own.on_unheard() {
                self.on_answered_wish(now, wish, AddressOutcome::NotSupported);
            }
        }
    }

    /// Does what was agreed on.
    fn on_answered_wish(&mut self, now: Instant, wish: Wish, outcome: AddressOutcome) {
        let Wish { change, address } = wish;
        let done = outcome == AddressOutcome::Done;
        match change {
            AddressChange::Add if done => self.admit_local(address),
            AddressChange::Add => self.drop_local(now, address),
            AddressChange::Remove if done => self.drop_local(now, address),
            AddressChange::Remove => self.keep_local(address),
            AddressChange::Prefer => {}
        }
        self.tell(Event::OwnAddress { address, change, outcome });
    }

    /// Sends the chunk in flight, or sends it again after it went over `before`. Not from an address that it is to
    /// remove (RFC 5061 §5.3 F6).
    fn send_asconf(&mut self, now: Instant, before: Option<PathId>) {
        let path = self.path_for_asconf(before);
        let rto = self.paths.get(path).rto();
        let own = &mut self.dynamic().asconf.own;
        own.on_sent(now, path, rto);
        if let Some((serial, address, body)) = own.chunk() {
            let control = Control::Asconf { serial, address, body: body.to_vec() };
            self.control.push(path, control);
        }
        self.stir();
    }

    /// A path from an address that stays: a good one, else one from an address that is being added.
    fn path_for_asconf(&mut self, before: Option<PathId>) -> PathId {
        let best = self.paths.best_for_control();
        let wishes = self.dynamic().asconf.own.in_flight().to_vec();
        let removes = |address| wishes.contains(&Wish { change: AddressChange::Remove, address });
        let rank = |path: &&crate::paths::Path| {
            let usable = self.paths.usable(path.id());
            (
                Some(path.id()) == before,
                !usable && path.member() == Member::Joined,
                !usable,
                path.id() != best,
            )
        };
        let candidates = self.paths.joined().chain(self.paths.pending());
        let stays = candidates.filter(|path| !removes(path.local()));
        stays.min_by_key(rank).map_or(best, |path| path.id())
    }

    /// RFC 5061 §5.1.1 C4.
    fn may_change_addresses(&self) -> bool {
        let state = matches!(
            self.state,
            State::Established | State::ShutdownPending | State::ShutdownReceived | State::ShutdownSent
        );
        state && self.capabilities.has(Extension::DynamicAddresses)
    }

    fn dynamic(&mut self) -> &mut Dynamic {
        let serials = self.serials;
        self.dynamic.get_or_insert_with(|| {
            Box::new(Dynamic { asconf: Asconf::new(serials.own, serials.peer), news: VecDeque::new() })
        })
    }
}
