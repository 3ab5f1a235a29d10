//! AUTH parameters in each side's INIT or INIT ACK (RFC 4895 §3). Concatenated, they are the key vector of their side (§6.1).

use std::cmp::Ordering;
use std::sync::Arc;

use tresse_wire::{ChunkKind, KindSet, List, Param, ParamKind, Params};

use super::hash::Hash;
use crate::config::{AssociationConfig, AuthHash, UNLISTED};

/// Length of the random number in bytes (RFC 4895 §6.1).
pub(crate) const RANDOM_LEN: usize = 32;

/// Longest accepted key vector of a peer, in bytes: a list of all chunk types and a dozen hashes fit.
const LONGEST_VECTOR: usize = 512;

/// The peer's random number does not have 32 bytes. No association with this peer is possible (RFC 4895 §6.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadRandom;

/// The part of this side's offers that does not depend on the random number.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct AuthTemplate {
    required: KindSet,
    /// The same as numbers.
    chunks: Vec<u8>,
    hashes: [u16; 2],
    /// Both lists as encoded parameters.
    written: Vec<u8>,
}

impl AuthTemplate {
    /// Creates the template for these settings; `None` if they disable authentication.
    pub(crate) fn new(config: &AssociationConfig) -> Option<Self> {
        if !config.authentication {
            return None;
        }
        let mut required = config.authenticated_chunks.0;
        if config.dynamic_addresses {
            // RFC 5061 §4.1: these chunks are always authenticated.
            required.insert(ChunkKind::ASCONF);
            required.insert(ChunkKind::ASCONF_ACK);
        }
        let hashes = match config.authentication_hash {
            AuthHash::Sha256 => [Hash::Sha256, Hash::Sha1],
            AuthHash::Sha1 => [Hash::Sha1, Hash::Sha256],
        };
        let (chunks, hashes) = (required.iter().map(|kind| kind.0).collect(), hashes.map(Hash::id));
        let mut terms = AuthTemplate { required, chunks, hashes, written: Vec::new() };
        terms.written = terms.params().fold(Vec::new(), |mut written, param| {
            // They fit: the lists have at most 256 items.
            Params::Values(&[param]).append(&mut written).unwrap_or_default();
            written
        });
        Some(terms)
    }

    /// Returns the encoded parameters of INIT or INIT ACK behind the random number.
    pub(crate) fn written(&self) -> &[u8] {
        &self.written
    }

    fn params(&self) -> impl Iterator<Item = Param<'_>> + Clone {
        let chunks = (!self.chunks.is_empty()).then_some(Param::Chunks(&self.chunks));
        chunks.into_iter().chain([Param::HmacAlgorithms(List::Values(&self.hashes))])
    }

    /// Returns the chunk types that this side accepts only authenticated.
    pub(crate) fn required(&self) -> &KindSet {
        &self.required
    }
}

/// Offer of this side: the template and a random number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OwnOffer {
    terms: Arc<AuthTemplate>,
    random: [u8; RANDOM_LEN],
}

impl OwnOffer {
    /// Creates the offer of a template and a random number.
    pub(crate) fn new(terms: Arc<AuthTemplate>, random: [u8; RANDOM_LEN]) -> Self {
        OwnOffer { terms, random }
    }

    /// Returns the chunk types that this side accepts only authenticated.
    pub(super) fn required(&self) -> &KindSet {
        self.terms.required()
    }

    /// Returns the parameters for INIT or INIT ACK.
    pub(crate) fn params(&self) -> impl Iterator<Item = Param<'_>> + Clone {
        [Param::Random(&self.random)].into_iter().chain(self.terms.params())
    }

    /// Returns the association key: a shared key, and the key vectors of both sides, the smaller one first (RFC 4895 §6.1).
    pub(super) fn key(&self, peer: &[u8], shared: &[u8]) -> Vec<u8> {
        let own = concatenated(self.params());
        match order(&own, peer) {
            Ordering::Greater => [shared, peer, &own].concat(),
            _ => [shared, &own, peer].concat(),
        }
    }
}

/// The AUTH parameters in the peer's INIT or INIT ACK, the first one of each kind.
#[derive(Copy, Clone, Default)]
pub(crate) struct OfferParams<'a> {
    random: Option<Param<'a>>,
    chunks: Option<Param<'a>>,
    hashes: Option<Param<'a>>,
}

impl<'a> OfferParams<'a> {
    /// Takes the next parameter, of any kind.
    ///
    /// # Errors
    /// A random number of the wrong length.
    pub(crate) fn note(&mut self, param: Param<'a>) -> Result<(), BadRandom> {
        let kind = match param {
            Param::Random(bytes) if bytes.len() != RANDOM_LEN => return Err(BadRandom),
            Param::Random(_) => &mut self.random,
            Param::Chunks(_) => &mut self.chunks,
            Param::HmacAlgorithms(_) => &mut self.hashes,
            _ => return Ok(()),
        };
        kind.get_or_insert(param);
        Ok(())
    }

    /// Returns the offer, if it is complete and has a hash that this side supports.
    pub(crate) fn offer(self) -> Option<PeerOffer> {
        let (random, hashes) = (self.random?, self.hashes?);
        let params = [random].into_iter().chain(self.chunks).chain([hashes]);
        PeerOffer::from_vector(concatenated(params).into())
    }
}

/// Offer of the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PeerOffer {
    /// Its parameters as received, concatenated without padding.
    vector: Box<[u8]>,
    required: KindSet,
    hash: Hash,
}

impl PeerOffer {
    /// Creates the offer from its key vector, as a state cookie contains it; `None` if the vector is invalid or too long.
    pub(crate) fn from_vector(vector: Box<[u8]>) -> Option<Self> {
        if vector.len() > LONGEST_VECTOR {
            return None;
        }
        let (mut required, mut hash) = (KindSet::default(), None);
        let mut rest = &vector[..];
        while !rest.is_empty() {
            let &[type_0, type_1, len_0, len_1] = rest.first_chunk()?;
            let param = rest.get(..usize::from(u16::from_be_bytes([len_0, len_1])))?;
            let value = param.get(4..)?;
            match ParamKind(u16::from_be_bytes([type_0, type_1])) {
                ParamKind::CHUNKS => {
                    let listed = value.iter().copied().map(ChunkKind);
                    required = listed.filter(|kind| !UNLISTED.contains(kind)).collect();
                }
                // RFC 4895 §6.1: the first hash that this side supports.
                ParamKind::HMAC_ALGORITHMS => {
                    hash = List::<u16>::Wire(value).iter().find_map(Hash::of_id);
                }
                _ => {}
            }
            rest = &rest[param.len()..];
        }
        Some(PeerOffer { required, hash: hash?, vector })
    }

    /// Returns the key vector, which `from_vector` reads.
    pub(crate) fn vector(&self) -> &[u8] {
        &self.vector
    }

    /// Returns the key vector of an offer that is not needed any more.
    pub(super) fn into_vector(self) -> Box<[u8]> {
        self.vector
    }

    /// Returns the chunk types that the peer accepts only authenticated.
    pub(crate) fn required(&self) -> &KindSet {
        &self.required
    }

    pub(super) fn hash(&self) -> Hash {
        self.hash
    }
}

/// Compares two key vectors for their order in the association key: as numbers, most significant byte first, the smaller one
/// comes first; of equal numbers, the shorter vector (RFC 4895 §6.1).
pub(super) fn order(one: &[u8], other: &[u8]) -> Ordering {
    let leading_zeros = |vector: &[u8]| vector.iter().take_while(|&&byte| byte == 0).count();
    let (one_value, other_value) = (&one[leading_zeros(one)..], &other[leading_zeros(other)..]);
    (one_value.len(), one_value, one.len()).cmp(&(other_value.len(), other_value, other.len()))
}

fn concatenated<'a>(params: impl Iterator<Item = Param<'a>> + Clone) -> Vec<u8> {
    let mut vector = Vec::with_capacity(params.clone().map(|param| param.wire_len()).sum());
    for param in params {
        // Each parameter is from a chunk or fits one, so it is not too long for its length field.
        param.write(&mut vector).ok();
    }
    vector
}
