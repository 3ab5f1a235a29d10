//! What the peer asks for (RFC 5061 §5.2, §5.3): to add, to remove and to prefer its addresses.

use std::net::IpAddr;

use tresse_policy::{Instant, PathId};
use tresse_wire::{Asconf, Cause, Chunk, Packet, Param, Params};

use super::PeerNews;
use crate::association::Association;
use crate::association::authentication::Passage;
use crate::association::control::Control;
use crate::association::peer::is_usable;
use crate::context::Context as Cx;
use crate::extensions::asconf::{Response, Responses, Standing};
use crate::extensions::auth::Gate;
use crate::interface::addresses::AddressChange;
use crate::interface::event::Event;
use crate::paths::can_meet;

/// Where a request came from, and where to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) encapsulation_port: Option<u16>,
}

/// What became of a request.
enum Verdict {
    Done,
    /// No place for another path; or that was so before (RFC 5061 §5.3 F9, F11).
    NoResources,
    LastAddress,
    SourceAddress,
    /// The address is none that can be meant.
    Unresolvable,
}

impl Verdict {
    /// What is said of it; `request` is the parameter that asked.
    fn response<'a>(&self, request: &'a [u8]) -> Response<'a> {
        match self {
            Verdict::Done => Response::Done,
            Verdict::NoResources => Response::Failed(Cause::ResourceShortage(request)),
            Verdict::LastAddress => Response::Failed(Cause::DeleteLastAddress(request)),
            Verdict::SourceAddress => Response::Failed(Cause::DeleteSourceAddress(request)),
            // The address parameter stands behind the header and the correlation id.
            Verdict::Unresolvable => {
                Response::Failed(Cause::UnresolvableAddress(request.get(8..).unwrap_or_default()))
            }
        }
    }
}

impl Association {
    /// ASCONF arrived; `first` says that it is the first of its packet.
    pub(crate) fn on_asconf(&mut self, now: Instant, source: Source, asconf: &Asconf<'_>, first: bool) {
        if !self.may_change_addresses() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let body = match self.dynamic().asconf.peer.standing(asconf.serial, first) {
            Standing::New => {
                let body = self.grant(now, source, &asconf.params);
                self.dynamic().asconf.peer.give(body.clone());
                self.spread_path_changes(now);
                body
            }
            Standing::Repeated(Some(body)) => body,
            Standing::Repeated(None) | Standing::Stray => {
                self.counters.discards.stray_asconf += 1;
                return;
            }
        };
        let path = self.path_of(source.local, source.remote);
        let path = path.unwrap_or_else(|| self.paths.best_for_control());
        self.control.push(path, Control::AsconfAck { serial: asconf.serial, body });
    }

    /// A packet with this association's tag from an address that is not the peer's: the peer may have a new one,
    /// and say so in an ASCONF that names an address by which it is known (RFC 5061 §5.2 D2). Nothing else of the
    /// packet is looked at. Answers whether there was such a request.
    pub(crate) fn on_stranger(&mut self, cx: &mut Cx<'_>, source: Source, packet: &Packet<'_>) -> bool {
        let (mut gate, mut chunks, mut count) = (Gate::default(), packet.chunks(), 0);
        loop {
            let covered = chunks.remaining();
            let Some(chunk) = chunks.next() else { break };
            if self.screen(&mut gate, &chunk, covered, self.paths.best_for_control()) == Passage::Stop {
                break;
            }
            if let Ok(Chunk::Asconf(asconf)) = chunk
                && gate == Gate::Open
                && self.paths.find_remote(asconf.address).is_some()
            {
                self.on_asconf(cx.now, source, &asconf, count == 0);
                count += 1;
            }
        }
        self.stir();
        count > 0
    }

    /// Does what is asked for, in order; answers the responses.
    fn grant(&mut self, now: Instant, source: Source, params: &Params<'_>) -> Vec<u8> {
        let mut responses = Responses::new(self.room_for_responses());
        let mut request = Vec::new();
        for param in params.iter() {
            let Ok(param) = param else {
                self.counters.discards.malformed_chunk += 1;
                break;
            };
            if !responses.has_room() {
                break;
            }
            let shut = responses.is_exhausted();
            let (correlation, verdict) = match param {
                Param::AddAddress { correlation, .. } | Param::DeleteAddress { correlation, .. } if shut => {
                    (correlation, Verdict::NoResources)
                }
                Param::AddAddress { correlation, address } => {
                    (correlation, self.grant_added(now, source, address))
                }
                Param::DeleteAddress { correlation, address } => {
                    (correlation, self.grant_removed(now, source, address))
                }
                Param::SetPrimary { correlation, address } => {
                    (correlation, self.grant_primary(source, address))
                }
                Param::Unrecognised(unknown) => {
                    let action = unknown.kind.unrecognised_action();
                    if action.report {
                        // Behind its header stands the correlation id, as in all requests.
                        let id = unknown.whole.get(4..8).and_then(|id| id.try_into().ok());
                        let cause = Cause::UnrecognisedParameters(shortened(unknown.whole));
                        responses.push(id.map_or(0, u32::from_be_bytes), Response::Failed(cause));
                    }
                    if action.stop {
                        break;
                    }
                    continue;
                }
                // RFC 5061 §4.2: what has no place here is ignored.
                _ => continue,
            };
            request.clear();
            // It came in a chunk: not too long for its length field.
            param.write(&mut request).ok();
            responses.push(correlation, verdict.response(&request));
        }
        responses.into_body()
    }

    fn grant_added(&mut self, now: Instant, source: Source, address: IpAddr) -> Verdict {
        let address = named(address, source.remote);
        if !is_usable(address) {
            return Verdict::Unresolvable;
        }
        if self.paths.find_remote(address).is_some() {
            return Verdict::Done;
        }
        if !can_meet(self.paths.local_addresses(), std::iter::once(address)) {
            return Verdict::Unresolvable;
        }
        let came_to = (address == source.remote).then_some((source.local, source.encapsulation_port));
        if !self.join_remote(now, address, came_to) {
            return Verdict::NoResources;
        }
        self.tell_of_peer(PeerNews::Added(address), address, AddressChange::Add);
        Verdict::Done
    }

    fn grant_removed(&mut self, now: Instant, source: Source, address: IpAddr) -> Verdict {
        let goes = |&other: &IpAddr| {
            if address.is_unspecified() { other != source.remote } else { other == address }
        };
        let removed: Vec<IpAddr> = self.paths.remote_addresses().filter(goes).collect();
        let rest = || self.paths.remote_addresses().filter(|other| !goes(other));
        // An address that none of this side's reaches would be as good as none; so would one that is only reached from
        // an address that the peer has been asked to add or to delete and has not answered for.
        let stays = |&own: &IpAddr| !self.is_asked_for(AddressChange::Remove, own);
        let agreed = || self.paths.joined().map(|path| path.local()).filter(stays);
        if !removed.is_empty() && !can_meet(agreed(), rest()) {
            return Verdict::LastAddress;
        }
        if address == source.remote {
            return Verdict::SourceAddress;
        }
        for address in removed {
            self.drop_remote(now, address);
            self.tell_of_peer(PeerNews::Removed(address), address, AddressChange::Remove);
        }
        Verdict::Done
    }

    /// Advice only: the peer's wish goes no further than the application's own choice would (RFC 5061 §5.4).
    fn grant_primary(&mut self, source: Source, address: IpAddr) -> Verdict {
        let address = named(address, source.remote);
        let Some(path) = self.paths.find_remote(address) else { return Verdict::Unresolvable };
        self.paths.set_primary(path);
        self.refresh_usable();
        self.tell(Event::PeerAddress { address, change: AddressChange::Prefer });
        Verdict::Done
    }

    fn tell_of_peer(&mut self, news: PeerNews, address: IpAddr, change: AddressChange) {
        self.dynamic().news.push_back(news);
        self.tell(Event::PeerAddress { address, change });
    }

    /// Bytes that responses may take in a packet of their own on any path (RFC 5061 §5.1.1 C5).
    fn room_for_responses(&self) -> usize {
        self.paths.smallest_payload().saturating_sub(OVERHEAD)
    }

    /// The path to answer on: the way that a request came.
    pub(in crate::association) fn source_of(&self, via: PathId) -> Source {
        let path = self.paths.get(via);
        let encapsulation_port = path.encapsulation_port();
        Source { local: path.local(), remote: path.remote(), encapsulation_port }
    }
}

/// What AUTH with SHA-256 takes of a packet: the headers of DATA and of ASCONF-ACK are about as long.
const OVERHEAD: usize = 40;

/// The most of an unrecognised request that is reported back.
const MOST_REPORTED: usize = 28;

fn shortened(whole: &[u8]) -> &[u8] {
    whole.get(..MOST_REPORTED).unwrap_or(whole)
}

/// An address of zeros means the source of the packet (RFC 5061 §4.2).
fn named(address: IpAddr, source: IpAddr) -> IpAddr {
    if address.is_unspecified() { source } else { address }
}
