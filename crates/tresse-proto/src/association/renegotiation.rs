//! Changes that both sides request of a running association: of streams (RFC 6525) and of addresses (RFC 5061).
//!
//! Owns the two extensions, each of which is created with its first request. The association carries out their actions.

use tresse_policy::Instant;
use tresse_policy::engine::earlier;

use super::State;
use super::reception::Reception;
use super::sender::Sender;
use crate::extensions::asconf::{Asconf, PeerChange};
use crate::extensions::reconfig::{Progress, ReceiveState, Reconfig, SendState, View};

/// The extensions by which an association is changed: stream reconfiguration and dynamic addresses.
pub(crate) struct Renegotiation {
    /// First request numbers of both sides: their initial TSNs (RFC 6525 §4.1, RFC 5061 §5.1 A2).
    own: u32,
    peer: u32,
    /// Created with the first request of either side.
    pub(super) reconfig: Option<Box<Reconfig>>,
    /// Created with the first request of either side.
    pub(super) asconf: Option<Box<Asconf>>,
}

impl Renegotiation {
    /// Creates the state before any request.
    pub(super) fn new(own: u32, peer: u32) -> Self {
        Renegotiation { own, peer, reconfig: None, asconf: None }
    }

    /// Sets the first request number of the peer, which has sent no request yet.
    pub(super) fn begin_again(&mut self, peer: u32) {
        self.peer = peer;
    }

    /// Time at which a request is to be retransmitted.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let reconfig = self.reconfig.as_deref().and_then(Reconfig::deadline);
        earlier(reconfig, self.asconf.as_deref().and_then(Asconf::deadline))
    }

    /// Returns whether the TSNs were ever reset (RFC 6525 §4.3).
    pub(super) fn has_renumbered(&self) -> bool {
        self.reconfig.as_deref().is_some_and(Reconfig::has_renumbered)
    }

    /// Takes the next change of the peer's addresses.
    pub(crate) fn pop_peer_change(&mut self) -> Option<PeerChange> {
        self.asconf.as_mut()?.pop_peer_change()
    }

    /// Calls `step` with the state of stream reconfiguration, which the first call creates, and with a view of both directions of
    /// the association.
    pub(super) fn with_reconfig<T>(
        &mut self,
        now: Instant,
        state: State,
        sender: &Sender,
        reception: &Reception,
        step: impl FnOnce(&mut Reconfig, &View<'_>) -> T,
    ) -> T {
        let path = sender.paths.best_for_control();
        let (cumulative, highest) = sender.transmission.outstanding.indices();
        let view = View {
            now,
            config: &sender.config,
            sending: SendState {
                is_open: state.sends_data(),
                streams: sender.outbound.stream_count(),
                progress: Progress { drained: sender.outbound.is_drained(), highest, cumulative },
                last_tsn: sender.transmission.outstanding.last_tsn(),
            },
            receiving: ReceiveState {
                streams: reception.inbound.stream_count(),
                cumulative: reception.receiver.cumulative(),
                cumulative_tsn: reception.receiver.cumulative_tsn(),
            },
            path,
            rto: sender.paths.get(path).rto(),
            has_sent_all_of: &|streams| sender.outbound.has_sent_all_of(streams),
            is_at_start: &|stream| sender.outbound.is_at_start(stream),
            index_near: &|tsn| reception.receiver.index_near(tsn),
        };
        step(self.reconfig.get_or_insert_with(|| Box::new(Reconfig::new(self.own, self.peer))), &view)
    }

    /// State of dynamic addresses; created by the first call.
    pub(super) fn asconf(&mut self) -> &mut Asconf {
        self.asconf.get_or_insert_with(|| Box::new(Asconf::new(self.own, self.peer)))
    }
}
