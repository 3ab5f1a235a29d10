//! What an association does that was made before its set-up had ended, for the messages that wait for it: user data behind
//! COOKIE ECHO (RFC 9260 §5.1). The set-up says when; see `setup/early`.

use std::net::IpAddr;

use tresse_policy::{Instant, PathId};
use tresse_wire::PacketWriter;

use super::Association;
use super::setup::EarlyMessage;
use crate::interface::event::{Event, Payload};

impl Association {
    /// Takes the messages that were accepted before the peer's word on streams was known; what is for a stream that it
    /// did not agree to is given up. One that was `refused` for lack of room makes the application wait for some.
    pub(super) fn take_early(&mut self, messages: &[EarlyMessage], refused: bool) {
        for EarlyMessage { at, options, data } in messages {
            if self.send(*at, *options, data.clone()).is_err() {
                self.sender.outbound.note_homeless();
                self.tell(Event::Abandoned {
                    stream: options.stream,
                    ppid: options.ppid,
                    context: options.context,
                    bytes: data.len(),
                    sent: false,
                    payload: Payload::Whole(data.clone()),
                });
            }
        }
        if refused {
            self.sender.outbound.note_refused();
        }
    }

    /// The path between these addresses, the own one first, if it may carry user data.
    pub(super) fn early_path(&self, (local, remote): (IpAddr, IpAddr)) -> Option<PathId> {
        self.sender.paths.find(local, remote).filter(|&path| self.sender.paths.accepts_data(path))
    }

    /// Appends what fits behind COOKIE ECHO in a packet over `path`; answers whether there was anything. No fragments of
    /// IP for that: the cookie alone may need some.
    pub(super) fn write_behind_cookie(
        &mut self,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        self.give_up(now);
        writer.limit_to(self.sender.paths.get(path).packet_size());
        self.write_early(now, path, writer)
    }

    /// COOKIE ECHO was lost, and with it the data behind it on `from`: it goes again over `to`. To the window that is a
    /// timeout; errors and RTO are the business of T1.
    pub(super) fn on_cookie_lost(&mut self, now: Instant, from: PathId, to: PathId) {
        if self.sender.transmission.flight_on(from) == 0 {
            return;
        }
        self.sender.transmission.on_timeout(from, to);
        self.sender.paths.on_lost_in_setup(from, now);
        self.give_up(now);
    }

    /// The set-up has ended: the peer has what was behind its cookie, and a report on it is under way.
    pub(super) fn on_set_up(&mut self, now: Instant) {
        for path in self.sender.path_ids().filter(|&path| self.sender.transmission.flight_on(path) > 0) {
            self.sender.paths.restart_t3(path, now);
        }
        self.stir();
    }
}
