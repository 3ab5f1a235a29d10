//! Chunk type numbers: their names, and the treatment of an unknown number by its highest bits.
//!
//! Owns the table of types.

use std::fmt;

use crate::unrecognised::UnrecognisedAction;

/// A chunk type number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct ChunkKind(pub u8);

macro_rules! kinds {
    ($($(#[$doc:meta])* $constant:ident = $number:literal, $name:literal;)*) => {
        impl ChunkKind {
            $($(#[$doc])* pub const $constant: ChunkKind = ChunkKind($number);)*

            /// Every type that this crate reads and writes.
            pub const ALL: &'static [ChunkKind] = &[$(ChunkKind::$constant),*];

            /// Returns the name in its RFC or draft; `None` for a type that this crate does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(ChunkKind::$constant => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// RFC 9260 §3.3.1.
    DATA = 0, "DATA";
    /// RFC 9260 §3.3.2.
    INIT = 1, "INIT";
    /// RFC 9260 §3.3.3.
    INIT_ACK = 2, "INIT ACK";
    /// RFC 9260 §3.3.4.
    SACK = 3, "SACK";
    /// RFC 9260 §3.3.5.
    HEARTBEAT = 4, "HEARTBEAT";
    /// RFC 9260 §3.3.6.
    HEARTBEAT_ACK = 5, "HEARTBEAT ACK";
    /// RFC 9260 §3.3.7.
    ABORT = 6, "ABORT";
    /// RFC 9260 §3.3.8.
    SHUTDOWN = 7, "SHUTDOWN";
    /// RFC 9260 §3.3.9.
    SHUTDOWN_ACK = 8, "SHUTDOWN ACK";
    /// RFC 9260 §3.3.10.
    ERROR = 9, "ERROR";
    /// RFC 9260 §3.3.11.
    COOKIE_ECHO = 10, "COOKIE ECHO";
    /// RFC 9260 §3.3.12.
    COOKIE_ACK = 11, "COOKIE ACK";
    /// RFC 4960 appendix A.
    ECNE = 12, "ECNE";
    /// RFC 4960 appendix A.
    CWR = 13, "CWR";
    /// RFC 9260 §3.3.13.
    SHUTDOWN_COMPLETE = 14, "SHUTDOWN COMPLETE";
    /// RFC 4895 §4.1.
    AUTH = 15, "AUTH";
    /// draft-natarajan-tsvwg-sctp-nrsack; not registered.
    NR_SACK = 16, "NR-SACK";
    /// RFC 8260 §2.1.
    I_DATA = 64, "I-DATA";
    /// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2.
    DTLS = 65, "DTLS";
    /// RFC 5061 §4.1.2.
    ASCONF_ACK = 128, "ASCONF-ACK";
    /// draft-stewart-sctp-pktdrprep; not registered.
    PACKET_DROP = 129, "PKTDROP";
    /// RFC 6525 §3.1.
    RECONFIG = 130, "RE-CONFIG";
    /// RFC 4820 §3.
    PAD = 132, "PAD";
    /// RFC 3758 §3.2.
    FORWARD_TSN = 192, "FORWARD-TSN";
    /// RFC 5061 §4.1.1.
    ASCONF = 193, "ASCONF";
    /// RFC 8260 §2.3.1.
    I_FORWARD_TSN = 194, "I-FORWARD-TSN";
}

impl ChunkKind {
    /// Returns the action of a receiver that does not recognise this type (RFC 9260 §3.2).
    pub const fn unrecognised_action(self) -> UnrecognisedAction {
        UnrecognisedAction::of_top_bits(self.0 >> 6)
    }
}

/// A set of chunk types.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct KindSet([u64; 4]);

impl KindSet {
    /// Returns whether the set contains `kind`.
    #[inline]
    pub const fn contains(&self, kind: ChunkKind) -> bool {
        self.0[(kind.0 >> 6) as usize] & (1 << (kind.0 & 63)) != 0
    }

    /// Adds `kind` to the set.
    pub const fn insert(&mut self, kind: ChunkKind) {
        self.0[(kind.0 >> 6) as usize] |= 1 << (kind.0 & 63);
    }

    /// Returns whether the set contains no type.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Returns the types of the set, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = ChunkKind> {
        [0, 64, 128, 192].into_iter().zip(self.0).flat_map(|(first, mut word)| {
            std::iter::from_fn(move || {
                let lowest = word.trailing_zeros();
                // Clears the lowest bit; ends the iteration when no bit is left.
                word &= word.checked_sub(1)?;
                Some(ChunkKind(first + lowest as u8))
            })
        })
    }
}

impl FromIterator<ChunkKind> for KindSet {
    fn from_iter<I: IntoIterator<Item = ChunkKind>>(kinds: I) -> Self {
        let mut set = KindSet::default();
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}

impl fmt::Display for ChunkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_nothing_else() {
        let kinds = [ChunkKind::DATA, ChunkKind(63), ChunkKind::I_DATA, ChunkKind::ASCONF, ChunkKind(255)];
        let set: KindSet = kinds.into_iter().rev().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), kinds);
        assert!(!set.contains(ChunkKind::ASCONF_ACK) && !set.is_empty());
        assert!(KindSet::default().is_empty() && KindSet::default().iter().next().is_none());
    }
}
