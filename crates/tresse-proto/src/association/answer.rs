//! INIT ACK of the responder, read once and kept until COOKIE ACK.

use std::net::IpAddr;

use tresse_wire::Init;

use super::InitFault;
use super::peer::Peer;
use super::scope::Scope;
use super::settings::Settings;

/// A usable INIT ACK.
pub(super) struct Answer {
    pub(super) peer: Peer,
    pub(super) cookie: Vec<u8>,
    /// Unrecognised parameters that are to be reported in an ERROR behind the COOKIE ECHO (RFC 9260 §3.2.1), padded in between:
    /// no length counts the padding of the last one.
    pub(super) unrecognised: Vec<u8>,
    /// Local address at which the INIT ACK arrived.
    pub(super) local: IpAddr,
    /// Source address of the INIT ACK.
    pub(super) source: IpAddr,
}

/// Most bytes of unrecognised parameters that are reported: the ERROR must not need a packet of its own.
const MOST_REPORTED: usize = 256;

impl Answer {
    /// Reads the INIT ACK that came `between` these addresses, the local one first.
    ///
    /// # Errors
    /// The fault that makes the INIT ACK unusable.
    pub(super) fn read(
        init: &Init<'_>,
        settings: &Settings,
        scope: Scope,
        between: (IpAddr, IpAddr),
    ) -> Result<Self, InitFault> {
        let (peer, handshake) = Peer::read(init, scope, usize::from(settings.max_paths))?;
        settings.check_peer(&peer)?;
        let cookie = handshake.cookie.ok_or(InitFault::NoCookie)?.to_vec();
        if peer.outbound_streams > settings.inbound_streams {
            return Err(InitFault::Streams);
        }
        let mut unrecognised = Vec::new();
        for whole in handshake.reported() {
            let start = unrecognised.len().next_multiple_of(4);
            if start + whole.len() > MOST_REPORTED {
                break;
            }
            unrecognised.resize(start, 0);
            unrecognised.extend_from_slice(whole);
        }
        let (local, source) = between;
        Ok(Answer { peer, cookie, unrecognised, local, source })
    }

    /// Returns whether the peer has this address: the INIT ACK listed it or came from it (RFC 9260 §5.1.2).
    pub(super) fn has(&self, remote: IpAddr) -> bool {
        self.source == remote || self.peer.addresses.contains(&remote)
    }
}
