//! Parameters of a peer's INIT or INIT ACK.

use std::net::IpAddr;

use tresse_wire::{Cause, ChunkKind, Init, List, Param, ParamKind, Params, Tsn};

use super::capabilities::{Capabilities, Extension};
use super::scope::Scope;
use crate::config::AssociationConfig;
use crate::extensions::auth::{BadRandom, OfferParams, PeerOffer};
use crate::extensions::protection::{NegotiationFault, peer_parameter};
use crate::interface::event::CloseReason;
use crate::paths::is_usable;

/// The smallest a_rwnd that may be announced (RFC 9260 §3.3.2).
const MIN_A_RWND: u32 = 1500;

/// The parameters of the association that the peer announced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// Verification tag of packets to the peer.
    pub(crate) tag: u32,
    pub(crate) a_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) initial_tsn: Tsn,
    pub(crate) capabilities: Capabilities,
    /// The peer's offer of authentication, if this side can accept it.
    pub(crate) auth: Option<PeerOffer>,
    /// The peer's DTLS Key Management parameter, unparsed.
    pub(crate) key_parameter: Option<Box<[u8]>>,
    /// Code point of the peer's adaptation layer (RFC 5061 §4.2.6).
    pub(crate) adaptation: Option<u32>,
    /// The addresses that the peer listed, in its order, without the source of its packet.
    pub(crate) addresses: Vec<IpAddr>,
}

/// Parameters of an INIT or INIT ACK that are needed for the answer to it, and not for the association. If there are several of a
/// kind, the first one counts.
#[derive(Default)]
pub(crate) struct HandshakeParams<'a> {
    pub(crate) cookie: Option<&'a [u8]>,
    /// Milliseconds by which the life of the cookie is to be extended.
    pub(crate) cookie_extension: Option<u32>,
    address_types: Option<List<'a, u16>>,
    /// All parameters of the chunk, if any is unrecognised and must be reported.
    reported: Option<Params<'a>>,
}

impl<'a> HandshakeParams<'a> {
    fn note(&mut self, param: Param<'a>, all: Params<'a>) {
        match param {
            Param::StateCookie(cookie) => _ = self.cookie.get_or_insert(cookie),
            Param::CookiePreservative(millis) => _ = self.cookie_extension.get_or_insert(millis),
            Param::SupportedAddressTypes(types) => _ = self.address_types.get_or_insert(types),
            Param::Unrecognised(unknown) if unknown.kind.unrecognised_action().report => {
                self.reported = Some(all);
            }
            _ => {}
        }
    }

    /// Returns whether the sender supports addresses of the type of `address`: all types, unless it lists some
    /// (RFC 9260 §3.3.2.1.5).
    pub(crate) fn understands(&self, address: IpAddr) -> bool {
        let types = self.address_types.as_ref();
        types.is_none_or(|types| types.iter().any(|kind| kind == address_type(address)))
    }

    /// The unrecognised parameters that must be reported to the sender, headers included (RFC 9260 §3.2.1).
    pub(crate) fn reported(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.reported.into_iter().flat_map(understood_params).filter_map(|param| match param {
            Param::Unrecognised(unknown) if unknown.kind.unrecognised_action().report => Some(unknown.whole),
            _ => None,
        })
    }
}

/// Reason for which an INIT or INIT ACK cannot be used. The peer gets it in an ABORT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum InitFault {
    /// A mandatory field has a value that RFC 9260 §3.3.2 forbids.
    Field,
    /// A host name address instead of an IP address; the whole parameter (RFC 9260 §3.3.2.1.4).
    HostName(Vec<u8>),
    /// An INIT ACK without a state cookie.
    NoCookie,
    /// An INIT ACK with more outbound streams than the INIT allowed (RFC 9260 §5.1.1).
    Streams,
    /// The random number does not have 32 bytes (RFC 4895 §6.1).
    Random,
    /// The peer does not support authentication, and the settings require it.
    Unauthenticated,
    /// The settings require protection, and the peer offers none.
    Unprotected,
    /// The settings require protection, and its negotiation failed.
    Disagreed(NegotiationFault),
    /// Addresses could be changed without authentication: any host could take over the association (RFC 5061 §6).
    Careless,
}

impl InitFault {
    /// Error cause of the ABORT.
    pub(crate) fn cause(&self) -> Cause<'_> {
        match self {
            InitFault::Field => Cause::InvalidParameter,
            InitFault::HostName(whole) => Cause::UnresolvableAddress(whole),
            InitFault::NoCookie => Cause::MissingParameters(List::Values(&[ParamKind::STATE_COOKIE.0])),
            InitFault::Unprotected => Cause::MissingDtlsChunk,
            InitFault::Disagreed(NegotiationFault::NoCommonMethod) => Cause::NoCommonKeyManagement,
            InitFault::Disagreed(NegotiationFault::Roles) => Cause::IncompatibleKeyRoles,
            InitFault::Disagreed(NegotiationFault::TieBreaker) => Cause::TieBreakerCollision,
            InitFault::Streams | InitFault::Random | InitFault::Unauthenticated | InitFault::Careless => {
                Cause::ProtocolViolation(self.words().as_bytes())
            }
        }
    }

    /// Reason for the application.
    pub(crate) fn close_reason(&self) -> CloseReason {
        match self {
            InitFault::Unprotected => CloseReason::PeerUnprotected,
            fault => CloseReason::PeerFault(fault.words()),
        }
    }

    /// Reason in words for the application.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            InitFault::Field => "INIT ACK with an impossible mandatory field",
            InitFault::HostName(_) => "INIT ACK with a host name",
            InitFault::NoCookie => "INIT ACK without a state cookie",
            InitFault::Streams => "INIT ACK with more streams than the INIT allowed",
            InitFault::Random => "a random number for authentication that has not 32 bytes",
            InitFault::Unauthenticated => {
                "no authentication, although some chunks are accepted only when authenticated"
            }
            InitFault::Unprotected => "no protection by DTLS chunks, which is required here",
            InitFault::Disagreed(NegotiationFault::NoCommonMethod) => {
                "no key management that both sides have"
            }
            InitFault::Disagreed(NegotiationFault::Roles) => {
                "no roles in the key management that go together"
            }
            InitFault::Disagreed(NegotiationFault::TieBreaker) => {
                "the same random number for the roles in the key management; another set-up draws another one"
            }
            InitFault::Careless => "dynamic addresses without authentication",
        }
    }
}

impl Peer {
    /// Reads an INIT or INIT ACK. At most `most` of the addresses that `scope` covers are kept.
    ///
    /// # Errors
    /// The fault that makes the chunk unusable.
    pub(crate) fn read<'a>(
        init: &Init<'a>,
        scope: Scope,
        most: usize,
    ) -> Result<(Self, HandshakeParams<'a>), InitFault> {
        if init.initiate_tag == 0
            || init.a_rwnd < MIN_A_RWND
            || init.outbound_streams == 0
            || init.inbound_streams == 0
        {
            return Err(InitFault::Field);
        }
        let mut peer = Peer {
            tag: init.initiate_tag,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            initial_tsn: init.initial_tsn,
            capabilities: Capabilities::default(),
            auth: None,
            key_parameter: None,
            adaptation: None,
            addresses: Vec::new(),
        };
        let (mut handshake, mut auth) = (HandshakeParams::default(), OfferParams::default());
        for param in understood_params(init.params) {
            handshake.note(param, init.params);
            peer.capabilities = peer.capabilities.with(Capabilities::said_by(&param));
            auth.note(param).map_err(|BadRandom| InitFault::Random)?;
            match param {
                Param::Address(address)
                    if is_usable(address)
                        && scope.covers(address)
                        && !peer.addresses.contains(&address)
                        && peer.addresses.len() < most =>
                {
                    peer.addresses.push(address);
                }
                Param::DtlsKeyManagement { .. } if peer.key_parameter.is_none() => {
                    peer.key_parameter = peer_parameter(&param);
                }
                Param::AdaptationIndication(code) => peer.adaptation = Some(code),
                Param::HostName(_) => {
                    let mut whole = Vec::new();
                    // The parameter arrived in a chunk, so its length is encodable.
                    param.write(&mut whole).unwrap_or_default();
                    return Err(InitFault::HostName(whole));
                }
                _ => {}
            }
        }
        peer.auth = auth.offer();
        // A peer that makes an offer supports authentication, whether or not it lists the extension.
        peer.capabilities = peer.capabilities.having(Extension::Authentication, peer.auth.is_some());
        if let Some(offer) = &peer.auth {
            // A peer that does not require authentication of ASCONF and ASCONF-ACK gets no requests (RFC 5061 §4.1).
            let insists = [ChunkKind::ASCONF, ChunkKind::ASCONF_ACK]
                .into_iter()
                .all(|kind| offer.required().contains(kind));
            let dynamic = peer.capabilities.has(Extension::DynamicAddresses) && insists;
            peer.capabilities = peer.capabilities.having(Extension::DynamicAddresses, dynamic);
        }
        Ok((peer, handshake))
    }
}

/// The parameters of an INIT or INIT ACK that are processed: up to an unrecognised one whose type forbids processing the rest
/// (RFC 9260 §3.2.1). Malformed parameters are skipped.
fn understood_params(params: Params<'_>) -> impl Iterator<Item = Param<'_>> {
    let mut over = false;
    params.iter().flatten().take_while(move |param| {
        let before = over;
        over |= matches!(param, Param::Unrecognised(unknown) if unknown.kind.unrecognised_action().stop);
        !before
    })
}

/// The scope of an association with a peer that is reached at these addresses.
pub(crate) fn reach(config: &AssociationConfig, remote: impl IntoIterator<Item = IpAddr>) -> Scope {
    if config.address_scopes { Scope::between(remote) } else { Scope::Loopback }
}

/// The type of the parameter that carries such an address.
pub(crate) fn address_type(address: IpAddr) -> u16 {
    let kind = if address.is_ipv4() { ParamKind::IPV4_ADDRESS } else { ParamKind::IPV6_ADDRESS };
    kind.0
}
