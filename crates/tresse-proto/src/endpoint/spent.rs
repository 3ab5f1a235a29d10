//! Tags of associations that have ended, the replay cache of cookies: a cookie creates one association, however late a copy of it
//! arrives.
//!
//! Without this cache a delayed COOKIE ECHO would create the association again, and the DATA in its packet would be delivered
//! again. TCP has TIME-WAIT for this. Here the tags suffice, because cookies are authenticated and contain the tags of both
//! sides. The peer's tag is checked as well: if both sides set up at once, this side's answer to the peer's INIT may have a tag
//! that the association did not use.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tresse_policy::Instant;

/// Tags of the associations that ended last.
#[derive(Debug, Default)]
pub(super) struct SpentTags {
    own: Latest<u32>,
    /// Peers' tags with the peers' ports: peers draw their tags independently.
    peers: Latest<(u32, u16)>,
    /// Tags of peers that began anew while this side set up.
    superseded: Latest<(u32, u16)>,
    /// By own tag, of associations that both sides set up at once: the time at which their present cookie was made.
    crossed: BTreeMap<u32, Instant>,
}

impl SpentTags {
    /// Records that the association with these tags has ended, or has got other tags.
    pub(super) fn note(&mut self, own: u32, peer: u32, peer_port: u16) {
        self.own.note(own);
        self.peers.note((peer, peer_port));
        self.crossed.remove(&own);
    }

    /// Records that the association with this own tag, which both sides set up at once, uses a cookie made at `made`.
    pub(super) fn note_crossed(&mut self, own: u32, made: Instant) {
        self.crossed.insert(own, made);
    }

    /// Records that this side's set-up with this tag is over. Cookies with the tag were made for it while the peer set up as
    /// well. The peer's own attempt may go on, and create an association with another tag of this side.
    pub(super) fn note_setup(&mut self, own: u32) {
        self.own.note(own);
        self.crossed.remove(&own);
    }

    /// Records that a peer had this tag in its INIT, and another one in its INIT ACK: it has lost its state in between.
    pub(super) fn note_superseded(&mut self, peer: u32, peer_port: u16) {
        self.superseded.note((peer, peer_port));
    }

    /// Returns whether a cookie for the association with the tag `own`, made at `made`, is known to be of an earlier attempt of
    /// the peer. A peer echoes only cookies of its present attempt, and each of these was made later than all cookies that its
    /// earlier attempts echoed. If a COOKIE ACK has created the association, the tag in the peer's INIT ACK is the present one.
    pub(super) fn is_superseded(&self, own: u32, made: Instant, peer: u32, peer_port: u16) -> bool {
        match self.crossed.get(&own) {
            Some(&by) => made < by,
            None => self.superseded.contains((peer, peer_port)),
        }
    }

    /// Returns whether an association with this own tag, or with this tag of the peer, has ended lately.
    pub(super) fn contains(&self, own: u32, peer: u32, peer_port: u16) -> bool {
        self.own.contains(own) || self.contains_peer(peer, peer_port)
    }

    /// Returns whether an association with this tag of the peer has ended lately.
    pub(super) fn contains_peer(&self, peer: u32, peer_port: u16) -> bool {
        self.peers.contains((peer, peer_port))
    }
}

/// The keys that were recorded last.
#[derive(Debug, Default)]
struct Latest<K> {
    /// Oldest first.
    order: VecDeque<K>,
    known: BTreeSet<K>,
}

/// Number of keys that are kept: at a cookie lifetime of a minute, they suffice for 270 ends of associations a second; 600 kB at
/// most.
const KEPT: usize = 16_384;

impl<K: Copy + Ord> Latest<K> {
    fn note(&mut self, key: K) {
        if !self.known.insert(key) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn contains(&self, key: K) -> bool {
        self.known.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_tags_are_kept_and_each_once() {
        let mut latest = Latest::default();
        for tag in 0..KEPT as u32 + 10 {
            latest.note(tag);
            latest.note(tag);
        }
        assert_eq!((latest.order.len(), latest.known.len()), (KEPT, KEPT));
        assert!(!latest.contains(9) && latest.contains(10) && latest.contains(KEPT as u32 + 9));
    }

    #[test]
    fn an_association_is_known_by_the_tag_of_either_side() {
        let mut spent = SpentTags::default();
        spent.note(1, 2, 3);
        assert!(spent.contains(1, 9, 3) && spent.contains(9, 2, 3) && spent.contains_peer(2, 3));
        spent.note_setup(5);
        assert!(spent.contains(5, 9, 3) && !spent.contains(9, 5, 3));
        assert!(!spent.contains(9, 2, 4) && !spent.contains(9, 9, 3) && !spent.contains_peer(1, 3));
    }

    #[test]
    fn a_cookie_of_a_life_that_is_over_is_known_by_its_age_or_its_tag() {
        let at = |millis| Instant::ZERO + std::time::Duration::from_millis(millis);
        let mut spent = SpentTags::default();
        spent.note_superseded(7, 3);
        let is_superseded = |spent: &SpentTags, millis, port| spent.is_superseded(8, at(millis), 7, port);
        assert!(is_superseded(&spent, 30, 3) && !is_superseded(&spent, 30, 4) && !spent.contains_peer(7, 3));
        spent.note_crossed(8, at(20));
        assert!(is_superseded(&spent, 19, 4) && !is_superseded(&spent, 20, 3));
        spent.note(8, 2, 3);
        assert!(!is_superseded(&spent, 19, 4), "it has ended");
    }
}
