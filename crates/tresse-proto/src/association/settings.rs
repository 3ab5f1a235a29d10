//! The settings of associations, with what follows from them: worked out once for all associations that share
//! them, and not for each INIT. What this side says of itself in INIT and INIT ACK comes from here.
//!
//! Refuses to know any one association: its tag, its numbers and its addresses are given.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use tresse_policy::sharing::Rules;
use tresse_wire::{ChunkKind, Init, KindSet, Param, Params, Tsn};

use super::capabilities::{Capabilities, Extension};
use super::peer::LOWER_LAYER_DTLS;
use crate::config::{AssociationConfig, BlockedCopies, BufferShares, StreamMap};
use crate::extensions::auth::{OwnOffer, RANDOM_LEN, Terms};
use crate::paths::PathRules;

/// The settings of an association; those of the application can be read as though they stood here.
pub(crate) struct Settings {
    config: AssociationConfig,
    /// The extensions offered.
    offered: Capabilities,
    /// The chunk types to list as Supported Extensions: to a peer that has authentication, or may have it, and to
    /// one that has not.
    extensions: Vec<u8>,
    unauthenticated: Vec<u8>,
    /// There are some when authentication is offered.
    auth: Option<Arc<Terms>>,
    /// Chunks to look at closely before they are processed: AUTH, and what this side takes only when authenticated.
    screened: KindSet,
    paths: Arc<PathRules>,
    sharing: Rules,
}

impl Settings {
    pub(crate) fn new(config: AssociationConfig) -> Arc<Self> {
        let offered = Capabilities::offered(&config);
        let auth = Terms::new(&config).map(Arc::new);
        let mut screened = auth.as_deref().map(Terms::required).unwrap_or_default();
        screened.insert(ChunkKind::AUTH);
        Arc::new(Settings {
            offered,
            extensions: offered.kinds(),
            unauthenticated: offered.unauthenticated().kinds(),
            auth,
            screened,
            paths: Arc::new(PathRules::new(&config)),
            sharing: sharing_rules(&config),
            config,
        })
    }

    /// The same but for what `change` changes.
    pub(crate) fn with(&self, change: impl FnOnce(&mut AssociationConfig)) -> Arc<Self> {
        let mut config = self.config.clone();
        change(&mut config);
        Settings::new(config)
    }

    /// The extensions offered.
    pub(crate) fn offered(&self) -> Capabilities {
        self.offered
    }

    /// Whether DAC is used with a peer that has agreed on these extensions. Nothing in INIT says that a peer knows it; one
    /// that declines NR-SACK knows no extension for CMT. Where NR-SACK is not offered the setting alone decides.
    pub(super) fn delayed_ack_with(&self, agreed: Capabilities) -> bool {
        let declines = self.offered.has(Extension::NrSack) && !agreed.has(Extension::NrSack);
        self.config.delayed_ack && !declines
    }

    /// What the paths of an association go by.
    pub(super) fn path_rules(&self) -> &Arc<PathRules> {
        &self.paths
    }

    /// What the sharing of buffers among paths goes by.
    pub(super) fn sharing(&self) -> &Rules {
        &self.sharing
    }

    /// Whether a chunk of this kind may need authentication, or is what others need.
    #[inline]
    pub(super) fn screens(&self, kind: ChunkKind) -> bool {
        self.screened.contains(kind)
    }

    /// This side's offer of authentication with this random number; `None` when it makes none.
    pub(crate) fn auth_offer(&self, random: [u8; RANDOM_LEN]) -> Option<OwnOffer> {
        self.auth.as_ref().map(|terms| OwnOffer::new(Arc::clone(terms), random))
    }

    /// The parameters of an INIT or INIT ACK. `addresses` are to be told, if there is any that the packet does not
    /// come from itself; without an offer of authentication nothing that needs it is offered either.
    pub(crate) fn params<'a>(&'a self, addresses: &[IpAddr], auth: Option<&'a OwnOffer>) -> Vec<Param<'a>> {
        let extensions = if auth.is_some() { &self.extensions } else { &self.unauthenticated };
        // Room for what callers add, too.
        let mut params = Vec::with_capacity(addresses.len() + 10);
        params.extend(addresses.iter().copied().map(Param::Address));
        if !extensions.is_empty() {
            params.push(Param::SupportedExtensions(extensions));
        }
        if extensions.contains(&ChunkKind::FORWARD_TSN.0) {
            params.push(Param::ForwardTsnSupported);
        }
        params.extend(auth.into_iter().flat_map(OwnOffer::params));
        params.extend(self.config.adaptation.map(Param::AdaptationIndication));
        if self.config.ecn {
            params.push(Param::EcnCapable);
        }
        if self.config.zero_checksum {
            params.push(Param::ZeroChecksumAcceptable(LOWER_LAYER_DTLS));
        }
        params
    }

    /// An INIT or INIT ACK.
    pub(crate) fn init<'a>(
        &self,
        tag: u32,
        initial_tsn: Tsn,
        outbound_streams: u16,
        params: &'a [Param<'a>],
    ) -> Init<'a> {
        Init {
            initiate_tag: tag,
            a_rwnd: self.config.receive_buffer.0 as u32,
            outbound_streams,
            inbound_streams: self.config.inbound_streams,
            initial_tsn,
            params: Params::Values(params),
        }
    }
}

fn sharing_rules(config: &AssociationConfig) -> Rules {
    let allocates = config.concurrent && config.buffer_shares != BufferShares::Equal;
    Rules {
        estimates: allocates || (config.concurrent && config.stream_map == StreamMap::Adaptive),
        allocates,
        when_short: config.buffer_shares == BufferShares::WhenShort,
        suspends: allocates && config.paths_rest,
        duplicates: config.blocked_copies != BlockedCopies::Off,
    }
}

impl Deref for Settings {
    type Target = AssociationConfig;

    fn deref(&self) -> &AssociationConfig {
        &self.config
    }
}
