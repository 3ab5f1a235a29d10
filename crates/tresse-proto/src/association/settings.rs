//! The settings of associations, and the values derived from them: computed once for all associations that share
//! them, and not for each INIT. The parameters of this side's INIT and INIT ACK come from here.
//!
//! Independent of any single association: its tag, its numbers and its addresses are arguments.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tresse_policy::sharing::Rules;
use tresse_wire::{ChunkKind, Init, LARGEST_RECORD_TEXT, Param, Params, Tsn};

use super::capabilities::{Capabilities, Extension, LOWER_LAYER_DTLS};
use super::peer::{InitFault, Peer};
use crate::config::{AssociationConfig, BufferAllocation, Encryption, Size, StreamMap};
use crate::extensions::auth::{AuthTemplate, OwnOffer, RANDOM_LEN};
use crate::extensions::protection::{agree, own_parameter};
use crate::interface::protection::Agreed;
use crate::paths::PathRules;

/// The settings of an association, with values derived from them. Those of the application can be read as fields.
pub(crate) struct Settings {
    config: AssociationConfig,
    /// The extensions offered.
    offered: Capabilities,
    /// Encoded parameters that list the supported chunk types of extensions: for a peer that has authentication, or may have it,
    /// and for one that does not.
    extensions: Vec<u8>,
    unauthenticated: Vec<u8>,
    /// The same for a peer with which packets will be protected.
    protected: Vec<u8>,
    /// This side's offer of authentication, if it makes one.
    auth: Option<Arc<AuthTemplate>>,
    /// Encoded parameters after those: all that do not depend on the association.
    others: Vec<u8>,
    announced: u64,
    paths: Arc<PathRules>,
    sharing: Rules,
}

impl Settings {
    pub(crate) fn new(mut config: AssociationConfig) -> Arc<Self> {
        if config.encryption != Encryption::Off {
            // No DTLS record holds more, so a larger packet could not be probed.
            config.mtu = config.mtu.min(Size(LARGEST_RECORD_TEXT));
        }
        let offered = Capabilities::offered(&config);
        let auth = AuthTemplate::new(&config).map(Arc::new);
        let mut settings = Settings {
            announced: 0,
            offered,
            extensions: written_kinds(offered),
            unauthenticated: written_kinds(offered.unauthenticated()),
            protected: written_kinds(offered.protected()),
            auth,
            others: written_others(&config, offered),
            paths: Arc::new(PathRules::new(&config)),
            sharing: sharing_rules(&config),
            config,
        };
        settings.announced = settings.digest();
        Arc::new(settings)
    }

    /// Digest of all that the peer learns of these settings by INIT or INIT ACK: settings with the same digest announce the same.
    pub(crate) fn announced(&self) -> u64 {
        self.announced
    }

    fn digest(&self) -> u64 {
        let zeros = [0; RANDOM_LEN];
        // If protection is required, authentication is never negotiated.
        let random = (self.config.encryption != Encryption::Require).then_some(&zeros);
        let params = self.params(&[], random, self.key_parameter(zeros).as_deref());
        let mut hash = Sha256::new_with_prefix(&params);
        hash.update(self.config.receive_buffer.0.to_be_bytes());
        hash.update(self.config.outbound_streams.to_be_bytes());
        hash.update(self.config.inbound_streams.to_be_bytes());
        // Offered and required protection announce the same, and differ in the peers that they accept.
        hash.update([self.config.encryption as u8]);
        hash.finalize().iter().take(8).fold(0, |digest, &byte| digest << 8 | u64::from(byte))
    }

    /// A copy of these settings that `change` has modified.
    pub(crate) fn with(&self, change: impl FnOnce(&mut AssociationConfig)) -> Arc<Self> {
        let mut config = self.config.clone();
        change(&mut config);
        Settings::new(config)
    }

    /// The protection negotiated with `peer` (see [`protection`](Self::protection)), and the extensions negotiated beside it.
    /// `authenticated` says whether chunks are authenticated.
    pub(super) fn agreed_with(
        &self,
        peer: &Peer,
        random: [u8; RANDOM_LEN],
        authenticated: bool,
    ) -> (Result<Option<Agreed>, InitFault>, Capabilities) {
        let agreed = self.protection(random, peer);
        let protected = matches!(agreed, Ok(Some(_)));
        (agreed, self.offered.agreed(peer.capabilities).secured(protected, authenticated))
    }

    /// Number of outbound and of inbound streams that are negotiated with `peer` (RFC 9260 §5.1.1).
    pub(super) fn streams_with(&self, peer: &Peer) -> (u16, u16) {
        let outbound = self.config.outbound_streams.min(peer.inbound_streams);
        (outbound, self.config.inbound_streams.min(peer.outbound_streams))
    }

    /// Returns whether DAC is used with a peer that has agreed on these extensions. No parameter of INIT announces DAC; a peer
    /// that declines NR-SACK is assumed to have no extension for CMT. If NR-SACK is not offered, the setting alone decides.
    pub(super) fn delayed_ack_with(&self, agreed: Capabilities) -> bool {
        let declines = self.offered.has(Extension::NrSack) && !agreed.has(Extension::NrSack);
        self.config.delayed_ack && !declines
    }

    /// Rules for the paths of an association.
    pub(super) fn path_rules(&self) -> &Arc<PathRules> {
        &self.paths
    }

    /// Rules for the sharing of buffers among paths.
    pub(super) fn sharing(&self) -> &Rules {
        &self.sharing
    }

    /// This side's offer of authentication with this random number; `None` if there is none.
    pub(crate) fn auth_offer(&self, random: [u8; RANDOM_LEN]) -> Option<OwnOffer> {
        self.auth.as_ref().map(|terms| OwnOffer::new(Arc::clone(terms), random))
    }

    /// This side's DTLS Key Management parameter, encoded, with values derived from `random`; `None` if protection is not
    /// offered.
    pub(crate) fn key_parameter(&self, random: [u8; RANDOM_LEN]) -> Option<Box<[u8]>> {
        own_parameter(&self.config, &random)
    }

    /// The protection negotiated with `peer`, where this side's parameter was derived from `random`; `None` if packets stay in
    /// the clear.
    ///
    /// # Errors
    /// The settings require protection, and its negotiation failed.
    pub(crate) fn protection(
        &self,
        random: [u8; RANDOM_LEN],
        peer: &Peer,
    ) -> Result<Option<Agreed>, InitFault> {
        let agreed = match (self.key_parameter(random), &peer.key_parameter) {
            (Some(own), Some(peer)) => agree(&own, peer).map_err(InitFault::Disagreed),
            (Some(_), None) => Err(InitFault::Unprotected),
            (None, _) => return Ok(None),
        };
        match agreed {
            Ok(agreed) => Ok(Some(agreed)),
            Err(_) if self.config.encryption != Encryption::Require => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Checks that an association with `peer` is as secure as these settings require.
    ///
    /// # Errors
    /// The requirement that is not met.
    pub(crate) fn check_peer(&self, peer: &Peer) -> Result<(), InitFault> {
        if peer.auth.is_none() && !self.config.authenticated_chunks.0.is_empty() {
            return Err(InitFault::Unauthenticated);
        }
        let both = self.offered.agreed(peer.capabilities);
        // A peer that offers protection needs no AUTH. If the negotiation of protection fails, dynamic addresses are not used.
        if peer.auth.is_none() && peer.key_parameter.is_none() && both.has(Extension::DynamicAddresses) {
            return Err(InitFault::Careless);
        }
        Ok(())
    }

    /// The encoded parameters of an INIT or INIT ACK, to which callers may [`append`]. `addresses` are listed: none, if the
    /// source of the packet is the only one. Without a random number authentication is not offered; and without an offer of
    /// authentication, or of protection (`keys`), no extension that needs one is.
    pub(crate) fn params(
        &self,
        addresses: &[IpAddr],
        random: Option<&[u8; RANDOM_LEN]>,
        keys: Option<&[u8]>,
    ) -> Vec<u8> {
        let auth = self.auth.as_ref().zip(random);
        let extensions = match (auth, keys) {
            (Some(_), _) => &self.extensions,
            (None, Some(_)) => &self.protected,
            (None, None) => &self.unauthenticated,
        };
        // With room for the parameters that callers append.
        let mut params = Vec::with_capacity(20 * addresses.len() + 480);
        for &address in addresses {
            append(&mut params, Param::Address(address));
        }
        append_written(&mut params, extensions);
        if let Some((terms, random)) = auth {
            append(&mut params, Param::Random(random));
            append_written(&mut params, terms.written());
        }
        append_written(&mut params, keys.unwrap_or_default());
        append_written(&mut params, &self.others);
        params
    }

    /// An INIT or INIT ACK.
    pub(crate) fn init<'a>(
        &self,
        tag: u32,
        initial_tsn: Tsn,
        outbound_streams: u16,
        params: &'a [u8],
    ) -> Init<'a> {
        Init {
            initiate_tag: tag,
            a_rwnd: self.config.receive_buffer.0 as u32,
            outbound_streams,
            inbound_streams: self.config.inbound_streams,
            initial_tsn,
            params: Params::Wire(params),
        }
    }
}

/// Appends a parameter to those of an INIT or INIT ACK; a parameter that is too long to encode is left out.
pub(crate) fn append(params: &mut Vec<u8>, param: Param<'_>) {
    Params::Values(&[param]).append(params).unwrap_or_default();
}

fn append_written(params: &mut Vec<u8>, written: &[u8]) {
    Params::Wire(written).append(params).unwrap_or_default();
}

/// The encoded parameters that list the supported chunk types of extensions.
fn written_kinds(offered: Capabilities) -> Vec<u8> {
    let (kinds, mut params) = (offered.kinds(), Vec::new());
    if !kinds.is_empty() {
        append(&mut params, Param::SupportedExtensions(&kinds));
    }
    if kinds.contains(&ChunkKind::FORWARD_TSN.0) {
        append(&mut params, Param::ForwardTsnSupported);
    }
    params
}

fn written_others(config: &AssociationConfig, offered: Capabilities) -> Vec<u8> {
    let mut params = Vec::new();
    if let Some(code) = config.adaptation {
        append(&mut params, Param::AdaptationIndication(code));
    }
    if config.ecn {
        append(&mut params, Param::EcnCapable);
    }
    if offered.has(Extension::ZeroChecksum) {
        append(&mut params, Param::ZeroChecksumAcceptable(LOWER_LAYER_DTLS));
    }
    params
}

fn sharing_rules(config: &AssociationConfig) -> Rules {
    let allocates = config.concurrent && config.buffer_allocation != BufferAllocation::Equal;
    Rules {
        estimates: allocates || (config.concurrent && config.stream_map == StreamMap::Adaptive),
        allocates,
        when_short: config.buffer_allocation == BufferAllocation::WhenShort,
        suspends: allocates && config.path_suspension,
    }
}

impl Deref for Settings {
    type Target = AssociationConfig;

    fn deref(&self) -> &AssociationConfig {
        &self.config
    }
}
