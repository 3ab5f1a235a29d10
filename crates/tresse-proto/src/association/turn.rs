//! Whose turn it is to send: the path of the next packet, and what user data may leave on it. Asking changes nothing
//! that is sent; `output` writes what was decided here.

use std::num::NonZeroU32;

use tresse_policy::engine::fallback_path_scheduler;
use tresse_policy::{Asked, Instant, Offer, OpenPath, PathId, PathView, PolicyKind};

use super::Association;
use crate::collections::InlineVec;
use crate::interface::event::{Event, SchedulerFault};
use crate::interface::stats::Limit;
use crate::transmission::Verdict;

/// Packets with user data that each path sent at one instant, which Max.Burst bounds (RFC 9260 §6.1 D).
///
/// The count starts anew with time alone, not with an event: otherwise an application that refills the send buffer at
/// the instant of a SACK would lift the limit, and several SACKs that arrive at once would release a burst each.
#[derive(Debug)]
pub(super) struct Bursts {
    instant: Instant,
    sent: InlineVec<u32>,
}

impl Bursts {
    pub(super) fn new(paths: usize) -> Self {
        Bursts { instant: Instant::ZERO, sent: std::iter::repeat_n(0, paths).collect() }
    }

    /// There are paths up to `count` now.
    pub(super) fn cover(&mut self, count: usize) {
        while self.sent.len() < count {
            self.sent.push(0);
        }
    }

    /// Packets leave at `now` from here on.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.instant != now {
            self.instant = now;
            self.sent.fill(0);
        }
    }

    /// Whether `path` has sent fewer than `limit` packets at this instant; 0 sets no limit.
    fn allows(&self, path: PathId, limit: u32) -> bool {
        limit == 0 || self.sent.get(path.index()).is_some_and(|&sent| sent < limit)
    }

    pub(super) fn count(&mut self, path: PathId) {
        if let Some(sent) = self.sent.get_mut(path.index()) {
            *sent = sent.saturating_add(1);
        }
    }
}

/// Whose turn it is to send. That nobody's is takes no tag of its own, so that the answer is handed on in registers: in
/// memory it would wait for the packet before it to leave for the cache.
#[derive(Copy, Clone)]
pub(super) struct Turn {
    pub(super) path: PathId,
    /// What the peer can take of new data there, where that was worked out to choose the path; else [`UNASKED`].
    allowance: NonZeroU32,
}

/// No packet holds so much.
const UNASKED: NonZeroU32 = NonZeroU32::MAX;

impl Turn {
    pub(super) fn of(path: PathId) -> Self {
        Turn { path, allowance: UNASKED }
    }

    /// New data may leave on this path.
    fn on(path: OpenPath) -> Self {
        let allowance = u32::try_from(path.allowance).unwrap_or(u32::MAX - 1);
        Turn { path: path.id, allowance: NonZeroU32::new(allowance).unwrap_or(UNASKED) }
    }

    /// `choice` sends, which is one of the `open` paths if it has new data.
    fn among(open: &[OpenPath], choice: PathId) -> Self {
        open.iter().find(|path| path.id == choice).map_or(Turn::of(choice), |&path| Turn::on(path))
    }

    fn allowance(self) -> Option<usize> {
        (self.allowance != UNASKED).then_some(self.allowance.get() as usize)
    }
}

/// Whose turn it is after what was written last. That was found out when a packet more was wanted for the same
/// destination, and the turn was another path's: the driver takes what there is before it asks again.
#[derive(Copy, Clone)]
pub(super) struct Foreseen {
    at: Instant,
    turn: Turn,
}

/// What user data the next packet on a path may have.
#[derive(Copy, Clone)]
pub(super) struct Load {
    /// Chunks that go again.
    pub(super) resends: bool,
    /// Chunks that waited for the path's window.
    pub(super) assigned: bool,
    /// Chunks that are under way on another path.
    pub(super) copies: bool,
    /// At most so many bytes of new data; none may leave otherwise.
    pub(super) allowance: Option<usize>,
}

impl Load {
    fn any(self) -> bool {
        self.resends || self.assigned || self.copies || self.allowance.is_some()
    }
}

impl Association {
    /// As [`choose_turn`](Self::choose_turn), which is not asked again for what it has just answered.
    pub(super) fn next_turn(&mut self, now: Instant) -> Option<Turn> {
        match self.foreseen.take() {
            Some(foreseen) if foreseen.at == now => Some(foreseen.turn),
            _ => self.choose_turn(now),
        }
    }

    /// Keeps whose turn is next, until anything happens.
    pub(super) fn foresee(&mut self, now: Instant, turn: Turn) {
        self.foreseen = Some(Foreseen { at: now, turn });
    }

    /// Which path the next packet leaves on: the one that a control chunk insists on, that of a SACK that
    /// is due, one with something to send again, or the path scheduler's choice for new data.
    pub(super) fn choose_turn(&mut self, now: Instant) -> Option<Turn> {
        if let Some(path) = self.control.next_path() {
            return Some(Turn::of(path));
        }
        if !self.state.takes_data() && !self.state.sends_data() {
            return None;
        }
        if self.reception.receiver.is_due(now)
            && let Some(path) = self.path_for_report(now)
        {
            return Some(Turn::of(path));
        }
        if !self.state.sends_data() {
            return None;
        }
        if self.has_nothing_to_send() {
            return self.forward_wants().map(Turn::of);
        }
        self.reinject(now);
        if self.transmission.has_lost() {
            let path = self.path_ids().find(|&path| self.may_resend(path)).or_else(|| self.move_losses_on());
            if let Some(path) = path {
                return Some(Turn::of(path));
            }
        }
        // A FORWARD TSN rides with data if it can (RFC 3758 §3.5 F2).
        self.choose_for_data(now).or_else(|| self.forward_wants().map(Turn::of))
    }

    /// Whether nothing waits to be sent and nothing is under way: how it is with who only receives, after each packet.
    pub(super) fn has_nothing_to_send(&self) -> bool {
        self.outbound.is_empty() && self.transmission.is_empty()
    }

    /// Where a report goes that is due; where no path is confirmed it waits too (RFC 9260 §5.4).
    // Never: as in `output`, what is done for few packets takes no registers from the others.
    #[inline(never)]
    fn path_for_report(&self, now: Instant) -> Option<PathId> {
        let sources = self.reception.receiver.sources();
        let candidate = |&path: &PathId| sources.paths.contains(path) || self.paths.may_report(path, now);
        let paths = self.path_ids().filter(candidate);
        let path = self.paths.ack_path(sources.first, sources.last, paths);
        self.paths.accepts_data(path).then_some(path)
    }

    fn choose_for_data(&mut self, now: Instant) -> Option<Turn> {
        let numbered = self.path_with_assigned().or_else(|| self.path_with_copy());
        if numbered.is_some() {
            return numbered.map(Turn::of);
        }
        self.choose_for_new_data(now).or_else(|| self.path_with_blocked_copy(now).map(Turn::of))
    }

    fn choose_for_new_data(&mut self, now: Instant) -> Option<Turn> {
        if self.outbound.is_empty() {
            return None;
        }
        let choice = self.pick_path(now);
        if choice.is_none() && self.outbound.replace_silent(|path| self.paths.may_carry_new_data(path)) {
            return self.pick_path(now);
        }
        choice
    }

    fn pick_path(&mut self, now: Instant) -> Option<Turn> {
        if self.paths.len() == 1 {
            return self.open_paths().next().map(Turn::on);
        }
        let mut open = std::mem::take(&mut self.workspace.get().open);
        open.clear();
        open.extend(self.open_paths());
        let turn = match (&open[..], self.path_scheduler.asked()) {
            _ if self.path_scheduler.assigns() => self.ask_path_scheduler(now, &mut open),
            ([], Asked::WhenAnyIsOpen | Asked::WhenSeveralAreOpen) => None,
            ([only], Asked::WhenSeveralAreOpen) => Some(Turn::on(*only)),
            _ => match self.path_scheduler.pick_unseen(&open) {
                Some(choice) => Some(Turn::among(&open, choice)),
                None => self.ask_path_scheduler(now, &mut open),
            },
        };
        self.workspace.get().open = open;
        turn
    }

    /// The paths open to new data, and how much of it the peer can take there.
    fn open_paths(&self) -> impl Iterator<Item = OpenPath> {
        // Mostly a window is full, which is told at once.
        let paths = self.path_ids().filter(|&id| !self.transmission.fills(id, self.paths.window(id).gate()));
        paths.filter_map(|id| Some(OpenPath { id, allowance: self.may_send_new(id).ok()? }))
    }

    /// The choice of a path scheduler that is shown all paths, of which these are `open`. It may leave data to others.
    // Never: most schedulers go by less.
    #[inline(never)]
    fn ask_path_scheduler(&mut self, now: Instant, open: &mut Vec<OpenPath>) -> Option<Turn> {
        let mut views = std::mem::take(&mut self.workspace.get().candidates);
        let choice = loop {
            self.show_paths(open, &mut views);
            let offer = Offer {
                paths: &views,
                unsent: self.outbound.unsent(),
                peer_window: self.transmission.peer_window(),
            };
            let choice = self.path_scheduler.pick(now, &offer);
            let Some(named) = choice.filter(|&choice| open.iter().all(|path| path.id != choice)) else {
                break choice;
            };
            // A full path is given data to wait there; then the question is where the next data goes.
            let full = views.iter().find(|path| path.id == named);
            if !full.is_some_and(|full| self.assign(now, full)) {
                break None;
            }
            open.clear();
            open.extend(self.open_paths());
        };
        self.workspace.get().candidates = views;
        // While nothing is in flight, nothing would ever end a wait.
        let alone = self.transmission.flight() == 0;
        let choice = choice.or_else(|| open.first().filter(|_| alone).map(|path| path.id))?;
        Some(Turn::among(open, choice))
    }

    /// Fills in how the paths are that carry new data.
    fn show_paths(&self, open: &[OpenPath], views: &mut Vec<PathView>) {
        views.clear();
        for path in self.path_ids().filter(|&path| self.paths.may_carry_new_data(path)) {
            let is_open = open.iter().any(|open| open.id == path);
            views.push(self.paths.view(path, self.transmission.flight_on(path), is_open));
        }
        if self.path_scheduler.assigns() {
            self.show_assigned(views);
        }
    }

    /// Whether data waits that nothing in flight will ever set free.
    pub(super) fn may_end_wait(&self) -> bool {
        self.transmission.flight() == 0 && self.state.sends_data() && !self.outbound.is_empty()
    }

    /// Whether data waits that nothing in flight will ever set free, and whoever kept it is overruled now: with this, what
    /// may leave does leave, whatever the stream map and the schedulers say.
    pub(super) fn ends_wait(&mut self) -> bool {
        self.may_end_wait()
            && (self.transmission.resume_paths()
                || self.outbound.insist(|path| self.paths.may_carry_new_data(path)))
    }

    /// Lets another path scheduler go on in the place of one that cannot.
    pub(super) fn replace_failed_path_scheduler(&mut self) {
        if let Some(reason) = self.path_scheduler.failure() {
            let failed = std::mem::replace(&mut self.path_scheduler, fallback_path_scheduler());
            self.on_policy_replaced(PolicyKind::PathScheduler, failed.name().to_owned(), reason);
        }
    }

    pub(super) fn on_policy_replaced(&mut self, kind: PolicyKind, name: String, reason: String) {
        self.policies_replaced += 1;
        let fault = SchedulerFault::Failed { reason };
        self.tell(Event::SchedulerFailed { kind, name, fault });
    }

    pub(super) fn path_ids(&self) -> impl ExactSizeIterator<Item = PathId> + use<> {
        (0..self.paths.len()).map(|position| PathId(position as u8))
    }

    /// Which of pacing and Max.Burst keeps one more packet of new data from leaving on `path` at this instant. What has left at
    /// it may be answered or given up at it, too; with nothing in flight nobody would ask again.
    pub(super) fn burst_limit(&self, path: PathId) -> Option<Limit> {
        if self.transmission.flight() == 0 {
            return None;
        }
        let spent = !self.bursts.allows(path, self.config.max_burst);
        let held = || self.paths.get(path).is_held(self.bursts.instant);
        spent.then_some(Limit::Burst).or_else(|| held().then_some(Limit::Pacing))
    }

    pub(super) fn may_resend(&self, path: PathId) -> bool {
        let window = self.paths.window(path);
        // After T3 not even the packet that may leave whatever the window says joins another in flight (RFC 9260 §7.2.3).
        let joins =
            window.one_packet && self.transmission.flight_on(path) > 0 && self.transmission.flight() > 0;
        // The packet that may leave whatever the window says does not wait, either.
        let held = self.paths.get(path).is_held(self.bursts.instant) && self.transmission.flight() > 0;
        let gate = if held { 0 } else { window.gate() };
        !joins && self.transmission.may_resend(path, gate) && self.paths.accepts_data(path)
    }

    /// What the peer can take of new data on `path` in one packet.
    ///
    /// # Errors
    /// What keeps the path from sending any.
    pub(super) fn may_send_new(&self, path: PathId) -> Result<usize, Limit> {
        self.new_data_within(path, self.paths.window(path).gate())
    }

    /// The same beside what the packet has already.
    pub(super) fn may_join_packet(&self, path: PathId) -> Result<usize, Limit> {
        self.new_data_within(path, self.paths.window(path).cwnd)
    }

    fn new_data_within(&self, path: PathId, gate: usize) -> Result<usize, Limit> {
        if !self.paths.may_carry_new_data(path) {
            return Err(Limit::Path);
        }
        let (chunk, paths) = (self.full_chunk(), self.paths.joined_count());
        let urgent = || self.outbound.has_urgent_for(path);
        let allowance = match self.transmission.verdict(path, gate, chunk, paths, urgent) {
            Verdict::Go(allowance) => allowance,
            Verdict::Wait(limit) => return Err(limit),
        };
        if let Some(limit) = self.burst_limit(path) {
            return Err(limit);
        }
        if !self.outbound.has_data_for(path) {
            return Err(self.why_no_data());
        }
        Ok(allowance)
    }

    /// Most user data that a DATA chunk carries in a packet of its own on every path.
    pub(super) fn full_payload(&self) -> usize {
        self.paths.smallest_payload().saturating_sub(self.auth.overhead() + self.protection.overhead())
    }

    /// The size of that chunk, its header included.
    pub(super) fn full_chunk(&self) -> usize {
        self.capabilities.carrier().header_len() + self.full_payload()
    }

    /// Why a path that could send has nothing to: the send buffer is full of what waits for
    /// acknowledgements, what waits to be sent is for other paths, or the application gives nothing.
    pub(super) fn why_no_data(&self) -> Limit {
        if self.outbound.is_full() {
            Limit::SendBuffer
        } else if !self.outbound.is_empty() || self.transmission.assigned() > 0 {
            Limit::Scheduler
        } else {
            Limit::Application
        }
    }

    pub(super) fn limit_of(&self, path: PathId) -> Limit {
        if !self.state.sends_data() {
            return Limit::Application;
        }
        if self.has_nothing_to_send() {
            let limit = self.limit_without_data(path);
            debug_assert_eq!(limit, self.limit_with_data(path), "the same answer, sooner");
            return limit;
        }
        self.limit_with_data(path)
    }

    /// The same where nothing waits to be sent and nothing is under way: how who only receives is asked after each packet.
    fn limit_without_data(&self, path: PathId) -> Limit {
        if !self.paths.may_carry_new_data(path) {
            return Limit::Path;
        }
        match self.transmission.suspended_for(path) {
            Some(limit) => limit,
            None => self.burst_limit(path).unwrap_or_else(|| self.why_no_data()),
        }
    }

    fn limit_with_data(&self, path: PathId) -> Limit {
        let copies_first = self.transmission.copies_everything() && self.may_copy(path);
        if self.may_resend(path) || self.may_send_assigned(path) || copies_first {
            return Limit::Nothing;
        }
        match self.may_send_new(path) {
            Ok(_) => Limit::Scheduler,
            Err(limit) => limit,
        }
    }

    /// What user data the next packet may have; `None` for none at all.
    pub(super) fn load_of(&mut self, now: Instant, turn: Turn) -> Option<Load> {
        if !self.state.sends_data() || self.has_nothing_to_send() {
            return None;
        }
        if let Some(allowance) = turn.allowance() {
            // New data was chosen because nothing may go before it.
            return Some(Load { resends: false, assigned: false, copies: false, allowance: Some(allowance) });
        }
        let (resends, assigned) = (self.may_resend(turn.path), self.may_send_assigned(turn.path));
        let allowance = self.may_send_new(turn.path).ok();
        let copies = self.may_copy(turn.path) && self.is_copied_now(now, turn.path);
        Some(Load { resends, assigned, copies, allowance }).filter(|load| load.any())
    }
}
