//! Enum of all parameters, and dispatch to the file of each group.
//!
//! Owns their lengths. Reads any parameter in any chunk: the core decides which ones have a meaning there.

use std::net::IpAddr;

use crate::bytes::pad;
use crate::cause::Causes;
use crate::error::{Fault, TooLong};
use crate::list::List;
use crate::serial::Tsn;
use crate::tlv::{TLV_HEADER_LEN, Tlv, TlvItem, Tlvs, put_tlv};

pub(crate) mod address;
mod asconf;
mod auth;
mod capability;
mod key_management;
mod kind;
mod reconfig;

pub use key_management::KeyRoles;
pub use kind::ParamKind;

/// A list of parameters: raw bytes from a packet, or values to be written.
pub type Params<'a> = Tlvs<'a, Param<'a>>;

/// A parameter.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Param<'a> {
    /// Content of a HEARTBEAT, private to its sender.
    HeartbeatInfo(&'a [u8]),
    /// An address of the sender.
    Address(IpAddr),
    /// The state cookie of an INIT ACK.
    StateCookie(&'a [u8]),
    /// A parameter of the INIT that the responder did not know, header included.
    UnrecognisedParameter(&'a [u8]),
    /// Time by which the cookie should live longer, in milliseconds.
    CookiePreservative(u32),
    /// A host name; deprecated, never to be sent.
    HostName(&'a [u8]),
    /// Address types that the sender can use: 5 for IPv4, 6 for IPv6.
    SupportedAddressTypes(List<'a, u16>),
    /// The sender understands ECN (RFC 4960 appendix A).
    EcnCapable,
    /// The sender accepts packets without checksum, given this error detection method (RFC 9653).
    ZeroChecksumAcceptable(u32),
    /// A random number for AUTH keys; 32 bytes.
    Random(&'a [u8]),
    /// Chunk types that the sender wants to receive authenticated only.
    Chunks(&'a [u8]),
    /// HMACs that the sender can verify, best first.
    HmacAlgorithms(List<'a, u16>),
    /// Nothing, at some length.
    Padding(&'a [u8]),
    /// Key management that the sender offers for DTLS chunks.
    DtlsKeyManagement {
        /// Drawn at random; the larger one's sender is the server where both could be either.
        tie_breaker: u32,
        /// [`KeyRoles`] and bits without a meaning.
        flags: u8,
        /// Methods, best first; at least one.
        methods: &'a [u8],
    },
    /// Chunk types of extensions that the sender can receive.
    SupportedExtensions(&'a [u8]),
    /// The sender understands FORWARD-TSN.
    ForwardTsnSupported,
    /// The sender's adaptation layer.
    AdaptationIndication(u32),
    /// ASCONF: add an address.
    AddAddress {
        /// Names the request in the answer.
        correlation: u32,
        /// The address; unspecified means the packet's source.
        address: IpAddr,
    },
    /// ASCONF: delete an address.
    DeleteAddress {
        /// Names the request in the answer.
        correlation: u32,
        /// The address; unspecified means all but the packet's source.
        address: IpAddr,
    },
    /// ASCONF: send to this address by preference.
    SetPrimary {
        /// Names the request in the answer.
        correlation: u32,
        /// The address; unspecified means the packet's source.
        address: IpAddr,
    },
    /// ASCONF-ACK: a request failed.
    ErrorIndication {
        /// The request.
        correlation: u32,
        /// Reasons for the refusal.
        causes: Causes<'a>,
    },
    /// ASCONF-ACK: a request succeeded.
    SuccessIndication {
        /// The request.
        correlation: u32,
    },
    /// RE-CONFIG: the sender wants to start again at SSN 0 on streams it sends on.
    OutgoingReset {
        /// Number of this request.
        request: u32,
        /// Number of the incoming reset request that is answered, or of the peer's last request.
        response: u32,
        /// Last TSN that the sender has assigned.
        last_tsn: Tsn,
        /// Streams; none means all.
        streams: List<'a, u16>,
    },
    /// RE-CONFIG: the receiver is asked to reset streams it sends on.
    IncomingReset {
        /// Number of this request.
        request: u32,
        /// Streams; none means all.
        streams: List<'a, u16>,
    },
    /// RE-CONFIG: all SSNs and both TSNs are to start again.
    SsnTsnReset {
        /// Number of this request.
        request: u32,
    },
    /// RE-CONFIG: the answer to a request.
    ReconfigResponse {
        /// Number of the request that is answered.
        response: u32,
        /// Result code (RFC 6525 §4.4).
        result: u32,
        /// Next TSN of this answer's sender and next TSN of its receiver; only in answer to an SSN/TSN reset.
        next_tsns: Option<(Tsn, Tsn)>,
    },
    /// RE-CONFIG: the sender wants to send on more streams.
    AddOutgoingStreams {
        /// Number of this request.
        request: u32,
        /// Number of streams to add.
        count: u16,
    },
    /// RE-CONFIG: the receiver is asked to send on more streams.
    AddIncomingStreams {
        /// Number of this request.
        request: u32,
        /// Number of streams to add.
        count: u16,
    },
    /// A type this crate does not know.
    Unrecognised(UnrecognisedParam<'a>),
}

/// A parameter of a type this crate does not know.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnrecognisedParam<'a> {
    /// Its type; [`ParamKind::unrecognised_action`] says what to do.
    pub kind: ParamKind,
    /// The parameter as it stood, header included, padding not.
    pub whole: &'a [u8],
}

impl<'a> Param<'a> {
    /// The parameter's type.
    pub fn kind(&self) -> ParamKind {
        match self {
            Param::HeartbeatInfo(_) => ParamKind::HEARTBEAT_INFO,
            Param::Address(address) => address::kind(*address),
            Param::StateCookie(_) => ParamKind::STATE_COOKIE,
            Param::UnrecognisedParameter(_) => ParamKind::UNRECOGNISED_PARAMETER,
            Param::CookiePreservative(_) => ParamKind::COOKIE_PRESERVATIVE,
            Param::HostName(_) => ParamKind::HOST_NAME,
            Param::SupportedAddressTypes(_) => ParamKind::SUPPORTED_ADDRESS_TYPES,
            Param::EcnCapable => ParamKind::ECN_CAPABLE,
            Param::ZeroChecksumAcceptable(_) => ParamKind::ZERO_CHECKSUM_ACCEPTABLE,
            Param::Random(_) => ParamKind::RANDOM,
            Param::Chunks(_) => ParamKind::CHUNKS,
            Param::HmacAlgorithms(_) => ParamKind::HMAC_ALGORITHMS,
            Param::Padding(_) => ParamKind::PADDING,
            Param::DtlsKeyManagement { .. } => ParamKind::DTLS_KEY_MANAGEMENT,
            Param::SupportedExtensions(_) => ParamKind::SUPPORTED_EXTENSIONS,
            Param::ForwardTsnSupported => ParamKind::FORWARD_TSN_SUPPORTED,
            Param::AdaptationIndication(_) => ParamKind::ADAPTATION_INDICATION,
            Param::AddAddress { .. } => ParamKind::ADD_ADDRESS,
            Param::DeleteAddress { .. } => ParamKind::DELETE_ADDRESS,
            Param::SetPrimary { .. } => ParamKind::SET_PRIMARY,
            Param::ErrorIndication { .. } => ParamKind::ERROR_INDICATION,
            Param::SuccessIndication { .. } => ParamKind::SUCCESS_INDICATION,
            Param::OutgoingReset { .. } => ParamKind::OUTGOING_RESET,
            Param::IncomingReset { .. } => ParamKind::INCOMING_RESET,
            Param::SsnTsnReset { .. } => ParamKind::SSN_TSN_RESET,
            Param::ReconfigResponse { .. } => ParamKind::RECONFIG_RESPONSE,
            Param::AddOutgoingStreams { .. } => ParamKind::ADD_OUTGOING_STREAMS,
            Param::AddIncomingStreams { .. } => ParamKind::ADD_INCOMING_STREAMS,
            Param::Unrecognised(param) => param.kind,
        }
    }

    /// Length field of the parameter: header and value, without padding.
    pub fn wire_len(&self) -> usize {
        TLV_HEADER_LEN
            + match self {
                Param::HeartbeatInfo(bytes)
                | Param::StateCookie(bytes)
                | Param::UnrecognisedParameter(bytes)
                | Param::HostName(bytes)
                | Param::Random(bytes)
                | Param::Chunks(bytes)
                | Param::Padding(bytes)
                | Param::SupportedExtensions(bytes) => bytes.len(),
                Param::DtlsKeyManagement { methods, .. } => 5 + methods.len(),
                Param::Address(address) => address::value_len(*address),
                Param::SupportedAddressTypes(list) | Param::HmacAlgorithms(list) => list.wire_len(),
                Param::EcnCapable | Param::ForwardTsnSupported => 0,
                Param::CookiePreservative(_)
                | Param::ZeroChecksumAcceptable(_)
                | Param::AdaptationIndication(_)
                | Param::SuccessIndication { .. }
                | Param::SsnTsnReset { .. } => 4,
                Param::AddAddress { address, .. }
                | Param::DeleteAddress { address, .. }
                | Param::SetPrimary { address, .. } => 4 + address::wire_len(*address),
                Param::ErrorIndication { causes, .. } => 4 + causes.wire_len(),
                Param::OutgoingReset { streams, .. } => 12 + streams.wire_len(),
                Param::IncomingReset { streams, .. } => 4 + streams.wire_len(),
                Param::ReconfigResponse { next_tsns: None, .. } => 8,
                Param::ReconfigResponse { next_tsns: Some(_), .. } => 16,
                Param::AddOutgoingStreams { .. } | Param::AddIncomingStreams { .. } => 8,
                Param::Unrecognised(param) => param.value().len(),
            }
    }

    /// Header and value without padding, as they go into what both sides derive keys from.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn to_bytes(&self) -> Result<Box<[u8]>, TooLong> {
        let mut bytes = Vec::with_capacity(self.wire_len());
        self.write(&mut bytes)?;
        Ok(bytes.into())
    }

    /// Appends header and value without padding.
    ///
    /// # Errors
    /// If the parameter is longer than its length field can say; then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check(self.wire_len())?;
        self.put(out);
        Ok(())
    }

    /// Appends the state cookie of an INIT ACK, which `write` writes, to the parameters that `out` consists of.
    ///
    /// # Errors
    /// If the cookie is longer than a length field can say; then nothing is written.
    pub fn append_cookie(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLong> {
        let end = out.len();
        pad(out, 0);
        let start = out.len();
        put_tlv(out, ParamKind::STATE_COOKIE.0, write);
        TooLong::check(out.len() - start).inspect_err(|_| out.truncate(end))
    }

    /// Appends the value.
    fn put_value(&self, out: &mut Vec<u8>) {
        match self {
            Param::HeartbeatInfo(bytes)
            | Param::StateCookie(bytes)
            | Param::UnrecognisedParameter(bytes)
            | Param::HostName(bytes)
            | Param::Random(bytes)
            | Param::Chunks(bytes)
            | Param::Padding(bytes)
            | Param::SupportedExtensions(bytes) => out.extend_from_slice(bytes),
            Param::DtlsKeyManagement { .. } => key_management::put_value(self, out),
            Param::Address(address) => address::put_value(*address, out),
            Param::SupportedAddressTypes(list) | Param::HmacAlgorithms(list) => list.put(out),
            Param::EcnCapable | Param::ForwardTsnSupported => {}
            Param::CookiePreservative(word)
            | Param::ZeroChecksumAcceptable(word)
            | Param::AdaptationIndication(word) => out.extend_from_slice(&word.to_be_bytes()),
            Param::AddAddress { .. }
            | Param::DeleteAddress { .. }
            | Param::SetPrimary { .. }
            | Param::ErrorIndication { .. }
            | Param::SuccessIndication { .. } => asconf::put_value(self, out),
            Param::OutgoingReset { .. }
            | Param::IncomingReset { .. }
            | Param::SsnTsnReset { .. }
            | Param::ReconfigResponse { .. }
            | Param::AddOutgoingStreams { .. }
            | Param::AddIncomingStreams { .. } => reconfig::put_value(self, out),
            Param::Unrecognised(param) => out.extend_from_slice(param.value()),
        }
    }
}

impl<'a> TlvItem<'a> for Param<'a> {
    type Kind = ParamKind;

    fn from_tlv(tlv: Tlv<'a>) -> Result<Self, Fault> {
        let kind = ParamKind(tlv.kind);
        match kind {
            ParamKind::HEARTBEAT_INFO => Ok(Param::HeartbeatInfo(tlv.value)),
            ParamKind::IPV4_ADDRESS | ParamKind::IPV6_ADDRESS => address::parse(tlv).map(Param::Address),
            ParamKind::STATE_COOKIE => Ok(Param::StateCookie(tlv.value)),
            ParamKind::UNRECOGNISED_PARAMETER => Ok(Param::UnrecognisedParameter(tlv.value)),
            ParamKind::HOST_NAME => Ok(Param::HostName(tlv.value)),
            ParamKind::SUPPORTED_ADDRESS_TYPES => address::parse_types(tlv),
            ParamKind::COOKIE_PRESERVATIVE
            | ParamKind::ECN_CAPABLE
            | ParamKind::ZERO_CHECKSUM_ACCEPTABLE
            | ParamKind::PADDING
            | ParamKind::SUPPORTED_EXTENSIONS
            | ParamKind::FORWARD_TSN_SUPPORTED
            | ParamKind::ADAPTATION_INDICATION => capability::parse(kind, tlv),
            ParamKind::DTLS_KEY_MANAGEMENT => key_management::parse(tlv),
            ParamKind::RANDOM | ParamKind::CHUNKS | ParamKind::HMAC_ALGORITHMS => auth::parse(kind, tlv),
            ParamKind::ADD_ADDRESS
            | ParamKind::DELETE_ADDRESS
            | ParamKind::SET_PRIMARY
            | ParamKind::ERROR_INDICATION
            | ParamKind::SUCCESS_INDICATION => asconf::parse(kind, tlv),
            ParamKind::OUTGOING_RESET
            | ParamKind::INCOMING_RESET
            | ParamKind::SSN_TSN_RESET
            | ParamKind::RECONFIG_RESPONSE
            | ParamKind::ADD_OUTGOING_STREAMS
            | ParamKind::ADD_INCOMING_STREAMS => reconfig::parse(kind, tlv),
            _ => Ok(Param::Unrecognised(UnrecognisedParam { kind, whole: tlv.whole })),
        }
    }

    fn wire_len(&self) -> usize {
        Param::wire_len(self)
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_tlv(out, self.kind().0, |out| self.put_value(out));
    }
}

impl<'a> UnrecognisedParam<'a> {
    fn value(&self) -> &'a [u8] {
        self.whole.get(TLV_HEADER_LEN..).unwrap_or_default()
    }
}
