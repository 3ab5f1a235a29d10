//! Requests of this side: at most one operation at a time, which is one request or two in the same chunk.

use std::collections::BTreeMap;
use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Param, StreamId, Tsn};

use super::{Progress, Silence, encode, result};
use crate::inbound::Skipped;
use crate::interface::reconfiguration::{Reconfiguration, ReconfigurationOutcome};

/// Minimum time between two resets of the association, so that old TSNs cannot be taken for new ones (RFC 6525 §5.1.4).
const RENUMBERING_PAUSE: Duration = Duration::from_secs(30);

/// Requests of this side.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The sequence number of the next request.
    next: u32,
    /// Boxed, so that no part of a missing request is read, which valgrind would report.
    current: Option<Box<OwnRequest>>,
    /// Streams that the peer has agreed to add to those it sends on, and has not added yet.
    granted: u16,
    /// Time of the last reset of the association.
    renumbered: Option<Instant>,
    /// Messages that the peer abandoned since it was asked to reset the association: for each stream and kind of message, the
    /// last one, with the index up to which no more data will arrive.
    skipped: BTreeMap<(StreamId, bool), (u64, Skipped)>,
}

/// Origin of a request of this side.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Application,
    /// A request of the peer with this sequence number.
    Peer(u32),
}

#[derive(Debug)]
struct OwnRequest {
    items: Vec<Item>,
    origin: Origin,
    stage: Stage,
}

#[derive(Debug)]
struct Item {
    wanted: Reconfiguration,
    sequence: u32,
    answered: bool,
}

#[derive(Debug)]
enum Stage {
    /// Not sent yet.
    Waiting(Silence),
    InFlight(Flight),
}

#[derive(Debug)]
struct Flight {
    /// The parameters of the chunk, the same in each retransmission.
    body: Vec<u8>,
    /// The last index that was assigned before the reset.
    highest: u64,
    path: PathId,
    deadline: Instant,
    /// Time to wait for a response; doubles with every consecutive timeout.
    period: Duration,
    timeouts: u32,
    /// The peer responded "in progress", so the next timeout is no failure.
    patient: bool,
    /// Repeated already because the peer has received all data that it waited for.
    reminded: bool,
}

/// A request of this side with its final result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConcludedRequest {
    pub(crate) request: Reconfiguration,
    pub(crate) outcome: ReconfigurationOutcome,
    pub(crate) origin: Origin,
}

/// An expiration of the timer of the request in flight.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timeout {
    /// Path on which the request was sent.
    pub(crate) path: PathId,
    /// Number of consecutive timeouts; a timeout after "in progress" is not counted.
    pub(crate) timeouts: u32,
}

impl Requests {
    pub(super) fn new(next: u32) -> Self {
        Requests { next, current: None, granted: 0, renumbered: None, skipped: BTreeMap::new() }
    }

    /// Returns whether this side has a request, waiting or in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Returns the time to wait before the next reset of the association.
    pub(crate) fn renumbering_pause(&self, now: Instant) -> Duration {
        self.renumbered.map_or(Duration::ZERO, |last| RENUMBERING_PAUSE.saturating_sub(now.since(last)))
    }

    /// Records that the peer abandoned a message, so that no data up to the index `up_to` will arrive. While a reset of the
    /// association is outstanding, only its response tells whether the message belongs to the old or to the new numbering.
    pub(crate) fn note_skipped(&mut self, up_to: u64, skipped: Skipped) {
        if self.awaits_renumbering() {
            self.skipped.insert((skipped.stream, skipped.unordered), (up_to, skipped));
        }
    }

    /// Returns the abandoned messages of the new numbering, whose first index is `epoch`; the others are discarded.
    pub(crate) fn take_skipped(&mut self, epoch: u64) -> impl Iterator<Item = Skipped> {
        let all = std::mem::take(&mut self.skipped).into_values();
        all.filter(move |(up_to, _)| *up_to >= epoch).map(|(_, skipped)| skipped)
    }

    /// Returns whether the association was ever reset.
    pub(crate) fn has_renumbered(&self) -> bool {
        self.renumbered.is_some()
    }

    /// Records a reset of the association.
    pub(crate) fn on_renumbered(&mut self, now: Instant) {
        self.renumbered = Some(now);
    }

    /// Begins a request of one or two items; there must be no other request of this side.
    pub(crate) fn begin(&mut self, wanted: impl IntoIterator<Item = Reconfiguration>, origin: Origin) {
        let item = |wanted| Item { wanted, sequence: 0, answered: false };
        let items = wanted.into_iter().map(item).collect();
        self.skipped.clear();
        let stage = Stage::Waiting(Silence::default());
        self.current = Some(Box::new(OwnRequest { items, origin, stage }));
    }

    /// Cancels the outstanding request, because the association ends.
    pub(crate) fn abandon(&mut self) {
        self.current = None;
    }

    /// Returns whether a request waits that may be sent now.
    pub(crate) fn may_be_sent(&mut self, progress: Progress) -> bool {
        let Some(OwnRequest { items, stage: Stage::Waiting(silence), .. }) = self.current.as_deref_mut()
        else {
            return false;
        };
        let renumbers = |item: &Item| {
            matches!(item.wanted, Reconfiguration::ResetOutbound(_) | Reconfiguration::ResetAssociation)
        };
        !items.iter().any(renumbers) || silence.is_reached(progress)
    }

    /// Assigns sequence numbers to the waiting request, which [`Self::body`] then returns. `last_tsn`, with the index `highest`,
    /// was assigned last; `peer` is the sequence number of the peer's last request.
    pub(crate) fn number(&mut self, last_tsn: Tsn, highest: u64, peer: u32) {
        let Some(request) = &mut self.current else { return };
        for item in &mut request.items {
            item.sequence = self.next;
            self.next = self.next.wrapping_add(1);
        }
        let response = match request.origin {
            Origin::Application => peer,
            Origin::Peer(sequence) => sequence,
        };
        let lists: Vec<Vec<u16>> = request.items.iter().map(Item::numbers).collect();
        let items = request.items.iter().zip(&lists);
        let params: Vec<Param<'_>> =
            items.map(|(item, list)| item.param(response, last_tsn, List::Values(list))).collect();
        request.stage = Stage::InFlight(Flight {
            body: encode(&params),
            highest,
            path: PathId::default(),
            deadline: Instant::FAR_FUTURE,
            period: Duration::ZERO,
            timeouts: 0,
            patient: false,
            reminded: false,
        });
    }

    /// Returns the parameters of the request in flight.
    pub(crate) fn body(&self) -> Option<&[u8]> {
        self.flight().map(|flight| &flight.body[..])
    }

    /// Records that the request in flight is sent on `path` with RTO `rto`, and starts its timer; `longest` is the maximum
    /// timeout.
    pub(crate) fn on_sent(&mut self, now: Instant, path: PathId, rto: Duration, longest: Duration) {
        if let Some(flight) = self.flight_mut() {
            let doubled = if flight.timeouts > 0 { flight.period * 2 } else { rto };
            flight.path = path;
            flight.period = doubled.max(rto).min(longest);
            flight.deadline = now + flight.period;
            flight.patient = false;
        }
    }

    /// Returns the time at which the request in flight is to be retransmitted.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.flight().map(|flight| flight.deadline)
    }

    /// Returns the timeout of the request in flight, if its timer has expired, and stops the timer.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timeout> {
        let flight = self.flight_mut().filter(|flight| flight.deadline <= now)?;
        flight.deadline = Instant::FAR_FUTURE;
        flight.timeouts = if flight.patient { 0 } else { flight.timeouts + 1 };
        Some(Timeout { path: flight.path, timeouts: flight.timeouts })
    }

    /// Returns whether to repeat a request that was "in progress", because the peer has now received all data before it; true
    /// once.
    pub(crate) fn should_remind(&mut self, cumulative: u64) -> bool {
        self.flight_mut().is_some_and(|flight| {
            let due = flight.patient && !flight.reminded && cumulative >= flight.highest;
            flight.reminded |= due;
            due
        })
    }

    /// Returns whether the open request `sequence` is one to reset the association.
    pub(crate) fn is_renumbering(&self, sequence: u32) -> bool {
        self.open_item(sequence).is_some_and(|item| item.wanted == Reconfiguration::ResetAssociation)
    }

    /// Returns whether a request to reset the association was sent and is not answered.
    pub(crate) fn awaits_renumbering(&self) -> bool {
        self.flight().is_some() && self.is_open(|wanted| *wanted == Reconfiguration::ResetAssociation)
    }

    /// Returns whether the outstanding request needs a request of the peer to be completed, or excludes one.
    pub(crate) fn conflicts(&self) -> bool {
        self.is_open(|wanted| {
            matches!(
                wanted,
                Reconfiguration::ResetInbound(_)
                    | Reconfiguration::AddInbound(_)
                    | Reconfiguration::ResetAssociation
            )
        })
    }

    /// Returns whether a request for which `is_meant` holds is outstanding.
    pub(crate) fn is_open(&self, is_meant: impl Fn(&Reconfiguration) -> bool) -> bool {
        let items = self.current.iter().flat_map(|current| &current.items);
        items.filter(|item| !item.answered).any(|item| is_meant(&item.wanted))
    }

    /// Returns whether the present request carries out the peer's request `sequence`.
    pub(crate) fn carries_out(&self, sequence: u32) -> bool {
        self.current.as_ref().is_some_and(|current| current.origin == Origin::Peer(sequence))
    }

    /// Processes a response. Returns the request that it completes; `None` for "in progress".
    ///
    /// # Errors
    /// It answers no open request.
    pub(crate) fn on_response(
        &mut self,
        now: Instant,
        rto: Duration,
        sequence: u32,
        code: u32,
    ) -> Result<Option<ConcludedRequest>, StrayResponse> {
        self.open_item(sequence).ok_or(StrayResponse)?;
        let outcome = match code {
            result::IN_PROGRESS => {
                if let Some(flight) = self.flight_mut() {
                    flight.patient = true;
                    flight.deadline = now + rto;
                }
                return Ok(None);
            }
            result::NOTHING_TO_DO | result::PERFORMED => ReconfigurationOutcome::Performed,
            result::DENIED => ReconfigurationOutcome::Denied,
            result::WRONG_STREAM => ReconfigurationOutcome::Failed("the peer knows no such stream"),
            result::BUSY => ReconfigurationOutcome::Failed("the peer has a request of its own under way"),
            result::BAD_SEQUENCE => ReconfigurationOutcome::Failed("the peer expected another request"),
            _ => ReconfigurationOutcome::Failed("the peer gave a result that is not known here"),
        };
        if outcome == ReconfigurationOutcome::Performed
            && let Some(Item { wanted: Reconfiguration::AddInbound(count), .. }) = self.open_item(sequence)
        {
            self.granted = *count;
        }
        Ok(self.close(|item| item.sequence == sequence, outcome))
    }

    /// Processes a reset by the peer of streams that it sends on, which answers the request `sequence`. Returns the completed
    /// request.
    pub(crate) fn on_peer_reset(&mut self, sequence: u32) -> Option<ConcludedRequest> {
        self.flight()?;
        let asked = |item: &Item| {
            item.sequence == sequence && matches!(item.wanted, Reconfiguration::ResetInbound(_))
        };
        self.close(asked, ReconfigurationOutcome::Performed)
    }

    /// Processes the peer's addition of `count` streams to those it sends on. Returns whether this side had requested it, and the
    /// request that it completes, if no response has completed it.
    pub(crate) fn on_peer_added(&mut self, count: u16) -> (bool, Option<ConcludedRequest>) {
        if let Some(rest) = self.granted.checked_sub(count) {
            self.granted = rest;
            return (true, None);
        }
        if self.flight().is_none() {
            return (false, None);
        }
        let answered = self.close(
            |item| item.wanted == Reconfiguration::AddInbound(count),
            ReconfigurationOutcome::Performed,
        );
        (answered.is_some(), answered)
    }

    /// Completes the open item for which `is_meant` holds. The request is over with its last item.
    fn close(
        &mut self,
        is_meant: impl Fn(&Item) -> bool,
        outcome: ReconfigurationOutcome,
    ) -> Option<ConcludedRequest> {
        let current = self.current.as_mut()?;
        let item = current.items.iter_mut().find(|item| !item.answered && is_meant(item))?;
        item.answered = true;
        let answered = ConcludedRequest { request: item.wanted.clone(), outcome, origin: current.origin };
        if current.items.iter().all(|item| item.answered) {
            self.current = None;
        }
        Some(answered)
    }

    fn open_item(&self, sequence: u32) -> Option<&Item> {
        self.flight()?;
        let items = self.current.iter().flat_map(|current| &current.items);
        items.filter(|item| !item.answered).find(|item| item.sequence == sequence)
    }

    fn flight(&self) -> Option<&Flight> {
        match &self.current.as_deref()?.stage {
            Stage::InFlight(flight) => Some(flight),
            Stage::Waiting(_) => None,
        }
    }

    fn flight_mut(&mut self) -> Option<&mut Flight> {
        match &mut self.current.as_deref_mut()?.stage {
            Stage::InFlight(flight) => Some(flight),
            Stage::Waiting(_) => None,
        }
    }
}

/// A response to no outstanding request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct StrayResponse;

impl Item {
    fn numbers(&self) -> Vec<u16> {
        match &self.wanted {
            Reconfiguration::ResetOutbound(streams) | Reconfiguration::ResetInbound(streams) => {
                streams.numbers()
            }
            _ => Vec::new(),
        }
    }

    fn param<'a>(&self, response: u32, last_tsn: Tsn, streams: List<'a, u16>) -> Param<'a> {
        let request = self.sequence;
        match self.wanted {
            Reconfiguration::ResetOutbound(_) => {
                Param::OutgoingReset { request, response, last_tsn, streams }
            }
            Reconfiguration::ResetInbound(_) => Param::IncomingReset { request, streams },
            Reconfiguration::ResetAssociation => Param::SsnTsnReset { request },
            Reconfiguration::AddOutbound(count) => Param::AddOutgoingStreams { request, count },
            Reconfiguration::AddInbound(count) => Param::AddIncomingStreams { request, count },
        }
    }
}
