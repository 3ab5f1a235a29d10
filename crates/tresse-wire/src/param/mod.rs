//! Enum of all parameters, and dispatch to the file of each group.
//!
//! Owns their lengths. Reads any parameter in any chunk: the core decides which parameters have a meaning there.

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

/// A list of parameters: bytes of a received packet, or values to be written.
pub type Params<'a> = Tlvs<'a, Param<'a>>;

/// A parameter.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Param<'a> {
    /// Content of a HEARTBEAT, which only its sender interprets.
    HeartbeatInfo(&'a [u8]),
    /// An address of the sender.
    Address(IpAddr),
    /// The state cookie of an INIT ACK.
    StateCookie(&'a [u8]),
    /// A parameter of the INIT that the responder did not recognise, header included.
    UnrecognisedParameter(&'a [u8]),
    /// Requested increase of the cookie's lifetime, in milliseconds.
    CookiePreservative(u32),
    /// A host name; deprecated, never sent.
    HostName(&'a [u8]),
    /// Address types that the sender can use: 5 for IPv4, 6 for IPv6.
    SupportedAddressTypes(List<'a, u16>),
    /// The sender supports ECN (RFC 4960 appendix A).
    EcnCapable,
    /// The sender accepts packets without checksum that are protected by this error detection method (RFC 9653).
    ZeroChecksumAcceptable(u32),
    /// A random number for AUTH keys; 32 bytes.
    Random(&'a [u8]),
    /// Chunk types that the sender accepts only if they are authenticated.
    Chunks(&'a [u8]),
    /// HMACs that the sender can verify, in order of preference.
    HmacAlgorithms(List<'a, u16>),
    /// Bytes without a meaning (RFC 4820 §4).
    Padding(&'a [u8]),
    /// Key management that the sender offers for DTLS chunks.
    DtlsKeyManagement {
        /// Random number. If each side can be client or server, the sender of the larger number is the server.
        tie_breaker: u32,
        /// [`KeyRoles`] and undefined bits.
        flags: u8,
        /// Methods in order of preference; at least one.
        methods: &'a [u8],
    },
    /// Chunk types of the extensions that the sender supports.
    SupportedExtensions(&'a [u8]),
    /// The sender supports FORWARD-TSN.
    ForwardTsnSupported,
    /// The sender's adaptation layer.
    AdaptationIndication(u32),
    /// ASCONF: add an address.
    AddAddress {
        /// Correlation id, by which the response names the request.
        correlation: u32,
        /// The address to add; unspecified means the source address of the packet.
        address: IpAddr,
    },
    /// ASCONF: delete an address.
    DeleteAddress {
        /// Correlation id, by which the response names the request.
        correlation: u32,
        /// The address to delete; unspecified means all addresses but the source address of the packet.
        address: IpAddr,
    },
    /// ASCONF: use this address as the primary destination.
    SetPrimary {
        /// Correlation id, by which the response names the request.
        correlation: u32,
        /// The address; unspecified means the source address of the packet.
        address: IpAddr,
    },
    /// ASCONF-ACK: a request failed.
    ErrorIndication {
        /// Correlation id of the request.
        correlation: u32,
        /// Reasons for the refusal.
        causes: Causes<'a>,
    },
    /// ASCONF-ACK: a request succeeded.
    SuccessIndication {
        /// Correlation id of the request.
        correlation: u32,
    },
    /// RE-CONFIG: the sender resets streams on which it sends, so that they continue with SSN 0.
    OutgoingReset {
        /// Sequence number of this request.
        request: u32,
        /// Sequence number of the incoming reset request that is answered, or of the peer's last request.
        response: u32,
        /// Last TSN that the sender has assigned.
        last_tsn: Tsn,
        /// The streams; an empty list means all.
        streams: List<'a, u16>,
    },
    /// RE-CONFIG: the sender asks the receiver to reset streams on which the receiver sends.
    IncomingReset {
        /// Sequence number of this request.
        request: u32,
        /// The streams; an empty list means all.
        streams: List<'a, u16>,
    },
    /// RE-CONFIG: the sender asks for a reset of all SSNs and of the TSNs of both directions.
    SsnTsnReset {
        /// Sequence number of this request.
        request: u32,
    },
    /// RE-CONFIG: the answer to a request.
    ReconfigResponse {
        /// Sequence number of the request that is answered.
        response: u32,
        /// Result code (RFC 6525 §4.4).
        result: u32,
        /// Next TSN of the response's sender and next TSN of its receiver; only in the response to an SSN/TSN reset.
        next_tsns: Option<(Tsn, Tsn)>,
    },
    /// RE-CONFIG: the sender adds streams on which it sends.
    AddOutgoingStreams {
        /// Sequence number of this request.
        request: u32,
        /// Number of streams to add.
        count: u16,
    },
    /// RE-CONFIG: the sender asks the receiver to add streams on which the receiver sends.
    AddIncomingStreams {
        /// Sequence number of this request.
        request: u32,
        /// Number of streams to add.
        count: u16,
    },
    /// A parameter of a type that this crate does not know.
    Unrecognised(UnrecognisedParam<'a>),
}

/// A parameter of a type that this crate does not know.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnrecognisedParam<'a> {
    /// Type of the parameter; [`ParamKind::unrecognised_action`] returns the action for it.
    pub kind: ParamKind,
    /// The parameter as received, header included, padding not.
    pub whole: &'a [u8],
}

impl<'a> Param<'a> {
    /// Returns the type of the parameter.
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

    /// Returns the length field of the parameter: header and value, without padding.
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

    /// Returns header and value without padding. Both sides derive keys from these bytes of some parameters.
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
    /// If the length of the parameter exceeds 65535 bytes; then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check(self.wire_len())?;
        self.put(out);
        Ok(())
    }

    /// Appends the state cookie of an INIT ACK to the parameters in `out`, padding these first; `write` appends the value.
    ///
    /// # Errors
    /// If the length of the cookie parameter exceeds 65535 bytes; then `out` is unchanged.
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
