//! Extensions of RFC 9260: those that a side offers, and those that are negotiated because both sides list them.
//!
//! Owns the table of extensions: the switch that offers each, and its encoding in INIT and INIT ACK.
//! Independent of the effects of an extension.

use tresse_wire::{ChunkKind, KindSet, Param};

use crate::config::{AssociationConfig, Encryption, NrSack};
use crate::fragment::DataFormat;

/// The error detection method of RFC 9653 that replaces the checksum: SCTP over DTLS.
pub(crate) const LOWER_LAYER_DTLS: u32 = 1;

/// An extension that both sides must support.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extension {
    /// NR-SACK chunks instead of SACK chunks (draft-tuexen-tsvwg-sctp-multipath §4).
    NrSack,
    /// I-DATA chunks instead of DATA chunks (RFC 8260 §2.2.1).
    Interleaving,
    /// FORWARD TSN: messages that were sent may be abandoned (RFC 3758).
    PartialReliability,
    /// I-FORWARD-TSN, which replaces FORWARD TSN where I-DATA replaces DATA (RFC 8260 §2.3.1).
    InterleavedPartialReliability,
    /// RE-CONFIG chunks: streams are reset and added (RFC 6525).
    StreamReconfiguration,
    /// Packets without checksum, where the lower layer detects errors (RFC 9653).
    ZeroChecksum,
    /// AUTH chunks (RFC 4895).
    Authentication,
    /// PKTDROP: packets that arrive damaged are reported to their sender (draft-stewart-sctp-pktdrprep).
    DropReports,
    /// ASCONF chunks: addresses are added and removed (RFC 5061).
    DynamicAddresses,
    /// ECN: packets with new data may be marked instead of dropped (RFC 4960 appendix A).
    Ecn,
}

impl Extension {
    /// Every extension; its position is its bit in a set.
    const ALL: [Extension; 10] = [
        Extension::NrSack,
        Extension::Interleaving,
        Extension::PartialReliability,
        Extension::InterleavedPartialReliability,
        Extension::StreamReconfiguration,
        Extension::ZeroChecksum,
        Extension::Authentication,
        Extension::DropReports,
        Extension::DynamicAddresses,
        Extension::Ecn,
    ];

    /// Returns whether these settings offer the extension.
    fn offered(self, config: &AssociationConfig) -> bool {
        match self {
            Extension::NrSack => config.nr_sack != NrSack::Off,
            Extension::Interleaving => config.interleaving,
            Extension::PartialReliability => config.partial_reliability,
            Extension::InterleavedPartialReliability => config.interleaving && config.partial_reliability,
            Extension::StreamReconfiguration => config.stream_reconfiguration,
            // No error detection method is registered for the DTLS chunk (RFC 9653).
            Extension::ZeroChecksum => config.zero_checksum && config.encryption == Encryption::Off,
            Extension::Authentication => config.authentication && config.encryption != Encryption::Require,
            Extension::DropReports => config.drop_reports && config.encryption != Encryption::Require,
            Extension::DynamicAddresses => {
                config.dynamic_addresses && (config.authentication || config.encryption != Encryption::Off)
            }
            Extension::Ecn => config.ecn,
        }
    }

    /// The chunk types that a side with the extension lists as Supported Extensions (RFC 5061 §4.2.7); all of them are required.
    /// Empty for an extension that has a parameter of its own.
    fn kinds(self) -> &'static [ChunkKind] {
        match self {
            Extension::NrSack => &[ChunkKind::NR_SACK],
            Extension::Interleaving => &[ChunkKind::I_DATA],
            Extension::PartialReliability => &[ChunkKind::FORWARD_TSN],
            Extension::InterleavedPartialReliability => &[ChunkKind::I_FORWARD_TSN],
            Extension::StreamReconfiguration => &[ChunkKind::RECONFIG],
            Extension::ZeroChecksum | Extension::Ecn => &[],
            Extension::Authentication => &[ChunkKind::AUTH],
            Extension::DropReports => &[ChunkKind::PACKET_DROP],
            Extension::DynamicAddresses => &[ChunkKind::ASCONF, ChunkKind::ASCONF_ACK],
        }
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A set of extensions: those that one side supports, or both.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Capabilities(u32);

impl Capabilities {
    /// Extensions that these settings offer.
    pub(crate) fn offered(config: &AssociationConfig) -> Self {
        Extension::ALL.into_iter().filter(|extension| extension.offered(config)).collect()
    }

    /// The extensions that the peer announces by one of the parameters of its INIT or INIT ACK.
    pub(crate) fn said_by(param: &Param<'_>) -> Self {
        let said = match param {
            Param::SupportedExtensions(kinds) => {
                let listed: KindSet = kinds.iter().copied().map(ChunkKind).collect();
                let speaks = |extension: &Extension| {
                    extension.kinds().iter().all(|&kind| listed.contains(kind))
                        && !extension.kinds().is_empty()
                };
                return Extension::ALL.into_iter().filter(speaks).collect();
            }
            // This parameter is older than Supported Extensions, and sufficient by itself (RFC 3758 §3.3.2).
            Param::ForwardTsnSupported => Extension::PartialReliability,
            Param::ZeroChecksumAcceptable(LOWER_LAYER_DTLS) => Extension::ZeroChecksum,
            Param::EcnCapable => Extension::Ecn,
            _ => return Capabilities::default(),
        };
        Capabilities(said.bit())
    }

    /// The extensions that both sides have. If I-DATA is among them and I-FORWARD-TSN is not, no message can be abandoned.
    pub(crate) fn agreed(self, other: Self) -> Self {
        let both = Capabilities(self.0 & other.0);
        let gives_up = match both.data_format() {
            DataFormat::Data => true,
            DataFormat::IData => both.has(Extension::InterleavedPartialReliability),
        };
        if gives_up { both } else { Capabilities(both.0 & !Extension::PartialReliability.bit()) }
    }

    /// Returns whether the set has `extension`.
    #[inline]
    pub(crate) fn has(self, extension: Extension) -> bool {
        self.0 & extension.bit() != 0
    }

    /// The chunk types to list as Supported Extensions (RFC 5061 §4.2.7), each once.
    pub(crate) fn kinds(self) -> Vec<u8> {
        let mut kinds = Vec::new();
        for kind in
            Extension::ALL.into_iter().filter(|&extension| self.has(extension)).flat_map(Extension::kinds)
        {
            if !kinds.contains(&kind.0) {
                kinds.push(kind.0);
            }
        }
        kinds
    }

    /// The type of chunk that carries user data (RFC 8260 §2.2.1).
    #[inline]
    pub(crate) fn data_format(self) -> DataFormat {
        if self.has(Extension::Interleaving) { DataFormat::IData } else { DataFormat::Data }
    }

    /// The set as bits, for the state cookie.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// The set from the bits in a state cookie.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Capabilities(bits)
    }

    /// This set with or without `extension`.
    pub(crate) fn having(self, extension: Extension, has: bool) -> Self {
        let rest = self.0 & !extension.bit();
        Capabilities(if has { rest | extension.bit() } else { rest })
    }

    /// The set without authentication, and so without dynamic addresses (RFC 5061 §6).
    pub(crate) fn unauthenticated(self) -> Self {
        self.having(Extension::Authentication, false).having(Extension::DynamicAddresses, false)
    }

    /// The set where packets are protected: without AUTH, without zero checksums, and without reports of damaged packets, which
    /// would show only encrypted bytes.
    pub(crate) fn protected(self) -> Self {
        [Extension::Authentication, Extension::DropReports, Extension::ZeroChecksum]
            .into_iter()
            .fold(self, |rest, extension| rest.having(extension, false))
    }

    /// The extensions that remain where packets are protected, or chunks authenticated, or neither.
    pub(crate) fn secured(self, protected: bool, authenticated: bool) -> Self {
        match (protected, authenticated) {
            (true, _) => self.protected(),
            (false, true) => self,
            (false, false) => self.unauthenticated(),
        }
    }

    /// The extensions that are in either set.
    pub(crate) fn with(self, other: Self) -> Self {
        Capabilities(self.0 | other.0)
    }
}

impl FromIterator<Extension> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Extension>>(extensions: I) -> Self {
        Capabilities(extensions.into_iter().fold(0, |bits, extension| bits | extension.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(params: &[Param<'_>]) -> Capabilities {
        params.iter().map(Capabilities::said_by).fold(Capabilities::default(), Capabilities::with)
    }

    #[test]
    fn with_i_data_only_i_forward_tsn_gives_messages_up() {
        let config = AssociationConfig { interleaving: true, ..AssociationConfig::default() };
        let agreed = |kinds: &[ChunkKind]| {
            let kinds: Vec<u8> = kinds.iter().map(|kind| kind.0).collect();
            let peer = listed(&[Param::SupportedExtensions(&kinds), Param::ForwardTsnSupported]);
            let agreed = Capabilities::offered(&config).agreed(peer);
            (agreed.data_format(), agreed.has(Extension::PartialReliability))
        };
        assert_eq!(agreed(&[]), (DataFormat::Data, true));
        assert_eq!(agreed(&[ChunkKind::I_DATA]), (DataFormat::IData, false));
        assert_eq!(agreed(&[ChunkKind::I_DATA, ChunkKind::I_FORWARD_TSN]), (DataFormat::IData, true));
    }

    #[test]
    fn forward_tsn_is_agreed_on_by_parameter_or_by_list() {
        let kinds = [ChunkKind::FORWARD_TSN.0];
        let both = [Param::SupportedExtensions(&kinds), Param::ForwardTsnSupported];
        for params in [&both[..1], &both[1..], &both[..]] {
            assert!(listed(params).has(Extension::PartialReliability));
        }
        assert!(!listed(&[]).has(Extension::PartialReliability));
        assert!(
            !listed(&[Param::SupportedExtensions(&[ChunkKind::NR_SACK.0])])
                .has(Extension::PartialReliability)
        );
    }
}
