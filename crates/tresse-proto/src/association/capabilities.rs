//! Which extensions were offered and which are agreed: what both sides listed.

use tresse_wire::{ChunkKind, Init, Param};

use crate::config::{AssociationConfig, NrSack};

/// Extensions of RFC 9260 that one side can speak, or both.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Capabilities {
    /// NR-SACK chunks instead of SACK chunks (draft-tuexen-tsvwg-sctp-multipath §4).
    pub(crate) nr_sack: bool,
}

impl Capabilities {
    /// What these settings offer.
    pub(crate) fn offered(config: &AssociationConfig) -> Self {
        Capabilities { nr_sack: config.nr_sack != NrSack::Off }
    }

    /// What the peer listed in its INIT or INIT ACK.
    pub(crate) fn listed(init: &Init<'_>) -> Self {
        let mut listed = Capabilities::default();
        for param in init.params.iter().flatten() {
            if let Param::SupportedExtensions(kinds) = param {
                listed.nr_sack |= kinds.contains(&ChunkKind::NR_SACK.0);
            }
        }
        listed
    }

    /// What both have.
    pub(crate) fn agreed(self, other: Self) -> Self {
        Capabilities { nr_sack: self.nr_sack && other.nr_sack }
    }

    /// The chunk types to list as Supported Extensions (RFC 5061 §4.2.7).
    pub(crate) fn kinds(self) -> Vec<u8> {
        let mut kinds = Vec::new();
        if self.nr_sack {
            kinds.push(ChunkKind::NR_SACK.0);
        }
        kinds
    }

    /// As bits, for the state cookie.
    pub(crate) fn bits(self) -> u32 {
        u32::from(self.nr_sack)
    }

    /// From the bits in a state cookie.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Capabilities { nr_sack: bits & 1 != 0 }
    }
}
