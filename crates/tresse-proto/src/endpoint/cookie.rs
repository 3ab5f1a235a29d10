//! State cookies (RFC 9260 §5.1.3): the authenticated state of a new association, which the peer stores, so that an INIT creates
//! no state at this endpoint.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use rand_chacha::ChaCha12Rng;
use rand_core::Rng;
use sha2::Sha256;
use tresse_policy::Instant;
use tresse_wire::Tsn;

use crate::association::{Capabilities, Peer};
use crate::collections::InlineVec;
use crate::extensions::auth::{PeerOffer, RANDOM_LEN};

/// Length of the message authentication code (HMAC-SHA-256), in bytes.
const MAC_LEN: usize = 32;

/// Content of a cookie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cookie {
    pub(super) created: Instant,
    /// Lifetime in addition to that of other cookies, as the peer requested (Cookie Preservative); whole milliseconds.
    pub(super) extension: Duration,
    pub(super) local_port: u16,
    pub(super) remote_port: u16,
    /// This side's verification tag.
    pub(super) local_tag: u32,
    pub(super) local_initial_tsn: Tsn,
    pub(super) peer: Peer,
    /// Digest of this side's settings; see [`Settings::announced`](crate::association::Settings::announced).
    pub(super) announced: u64,
    /// Own addresses that the peer has learned, the destination of the INIT first.
    pub(super) local: InlineVec<IpAddr>,
    /// Source address of the INIT.
    pub(super) remote: IpAddr,
    pub(super) encapsulation_port: Option<u16>,
    /// The random number in this side's AUTH parameters. The DTLS Key Management parameter is derived from it and from the
    /// settings. Unused if the peer made no offer.
    pub(super) auth_random: [u8; RANDOM_LEN],
    /// Tie-tags of the association that existed when the INIT arrived (RFC 9260 §5.2.2).
    pub(super) ties: TieTags,
}

/// Tie-tags, which link a cookie to an association; both 0 for none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct TieTags {
    pub(super) local: u32,
    pub(super) peer: u32,
}

/// A cookie that was authenticated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Opened {
    pub(super) cookie: Cookie,
    /// The time by which the cookie exceeds its lifetime. A duplicate of the COOKIE ECHO of an existing association is accepted
    /// at any age (RFC 9260 §5.2.4).
    pub(super) stale_by: Option<Duration>,
}

/// HMAC with its key set.
type Signer = Hmac<Sha256>;

/// The keys that sign cookies: the present key and the previous one.
pub(super) struct CookieKeys {
    current: Signer,
    previous: Signer,
    /// Key of tie-tags. It never changes, because an association may be older than any cookie key.
    ties: Signer,
    since: Instant,
    lifetime: Duration,
}

impl CookieKeys {
    pub(super) fn new(now: Instant, lifetime: Duration, rng: &mut ChaCha12Rng) -> Self {
        let (current, previous) = (fresh_signer(rng), fresh_signer(rng));
        let ties = signer(&sign(&current, b"tie-tags").finalize().into_bytes().into());
        CookieKeys { current, previous, ties, since: now, lifetime }
    }

    /// Replaces the key when its lifetime is over.
    pub(super) fn rotate(&mut self, now: Instant, rng: &mut ChaCha12Rng) {
        if now.since(self.since) >= self.lifetime {
            self.previous = std::mem::replace(&mut self.current, fresh_signer(rng));
            self.since = now;
        }
    }

    /// Appends `cookie` and its message authentication code to `out`.
    pub(super) fn seal(&self, cookie: &Cookie, out: &mut Vec<u8>) {
        let start = out.len();
        cookie.write(out);
        let mac = sign(&self.current, &out[start..]).finalize().into_bytes();
        out.extend_from_slice(&mac);
    }

    /// Reads a cookie; `None` if this endpoint did not sign it, or if it is damaged.
    pub(super) fn open(&self, now: Instant, lifetime: Duration, bytes: &[u8]) -> Option<Opened> {
        let (content, mac) = bytes.split_at(bytes.len().checked_sub(MAC_LEN)?);
        let mut keys = [&self.current, &self.previous].into_iter();
        if !keys.any(|key| sign(key, content).verify_slice(mac).is_ok()) {
            return None;
        }
        let cookie = Cookie::read(content)?;
        let age = now.since(cookie.created);
        let late = age.checked_sub(lifetime + cookie.extension).filter(|late| !late.is_zero());
        Some(Opened { cookie, stale_by: late })
    }

    /// Returns the tie-tags of the association with these tags: a nonce that reveals neither tag, because any host may read a
    /// cookie (RFC 9260 §1.3). They never change, so that no association has to store them.
    pub(super) fn tie_tags(&self, local_tag: u32, peer_tag: u32) -> TieTags {
        let tags = (u64::from(local_tag) << 32) | u64::from(peer_tag);
        let mac = sign(&self.ties, &tags.to_be_bytes()).finalize().into_bytes();
        let word = |at: usize| u32::from_be_bytes([mac[at], mac[at + 1], mac[at + 2], mac[at + 3]]);
        TieTags { local: word(0).max(1), peer: word(4).max(1) }
    }
}

fn fresh_signer(rng: &mut ChaCha12Rng) -> Signer {
    let mut key = [0; 32];
    rng.fill_bytes(&mut key);
    signer(&key)
}

fn signer(key: &[u8; 32]) -> Signer {
    Signer::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn sign(signer: &Signer, content: &[u8]) -> Signer {
    let mut mac = signer.clone();
    mac.update(content);
    mac
}

impl Cookie {
    /// Returns whether the INIT came from this address or listed it.
    pub(super) fn names(&self, address: IpAddr) -> bool {
        self.remote == address || self.peer.addresses.contains(&address)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.created.as_nanos().to_be_bytes());
        out.extend_from_slice(&self.announced.to_be_bytes());
        let shorts = [
            self.local_port,
            self.remote_port,
            self.encapsulation_port.unwrap_or(0),
            self.peer.outbound_streams,
            self.peer.inbound_streams,
        ];
        out.extend_from_slice(shorts.map(u16::to_be_bytes).as_flattened());
        let longs = [
            self.local_tag,
            self.local_initial_tsn.0,
            self.peer.tag,
            self.peer.a_rwnd,
            self.peer.initial_tsn.0,
            self.peer.capabilities.bits(),
            self.ties.local,
            self.ties.peer,
            u32::try_from(self.extension.as_millis()).unwrap_or(u32::MAX),
            u32::from(self.peer.adaptation.is_some()),
            self.peer.adaptation.unwrap_or(0),
        ];
        out.extend_from_slice(longs.map(u32::to_be_bytes).as_flattened());
        let vector = self.peer.auth.as_ref().map_or(&[][..], PeerOffer::vector);
        let parameter = self.peer.key_parameter.as_deref().unwrap_or_default();
        for offer in [vector, parameter] {
            out.extend_from_slice(&(offer.len() as u16).to_be_bytes());
            out.extend_from_slice(offer);
        }
        if !vector.is_empty() || !parameter.is_empty() {
            out.extend_from_slice(&self.auth_random);
        }
        out.extend_from_slice(&(self.local.len() as u16).to_be_bytes());
        for &address in self.local.iter().chain([&self.remote]).chain(&self.peer.addresses) {
            write_address(out, address);
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let created = Instant::from_nanos(u64::from_be_bytes(reader.take()?));
        let announced = u64::from_be_bytes(reader.take()?);
        let local_port = reader.u16()?;
        let remote_port = reader.u16()?;
        let encapsulation_port = Some(reader.u16()?).filter(|&port| port != 0);
        let outbound_streams = reader.u16()?;
        let inbound_streams = reader.u16()?;
        let local_tag = reader.u32()?;
        let local_initial_tsn = Tsn(reader.u32()?);
        let tag = reader.u32()?;
        let a_rwnd = reader.u32()?;
        let initial_tsn = Tsn(reader.u32()?);
        let capabilities = Capabilities::from_bits(reader.u32()?);
        let ties = TieTags { local: reader.u32()?, peer: reader.u32()? };
        let extension = Duration::from_millis(u64::from(reader.u32()?));
        let (adapts, code) = (reader.u32()? != 0, reader.u32()?);
        let auth = match reader.u16()? {
            0 => None,
            len => Some(PeerOffer::from_vector(reader.slice(len.into())?.into())?),
        };
        let key_parameter = match reader.u16()? {
            0 => None,
            len => Some(reader.slice(len.into())?.into()),
        };
        let random = auth.is_some() || key_parameter.is_some();
        let auth_random = if random { reader.take()? } else { [0; RANDOM_LEN] };
        let told = reader.u16()?;
        let local = (0..told).map(|_| reader.address()).collect::<Option<_>>()?;
        let remote = reader.address()?;
        let mut addresses = Vec::new();
        while !reader.0.is_empty() {
            addresses.push(reader.address()?);
        }
        let peer = Peer {
            tag,
            a_rwnd,
            outbound_streams,
            inbound_streams,
            initial_tsn,
            capabilities,
            adaptation: adapts.then_some(code),
            auth,
            key_parameter,
            addresses,
        };
        Some(Cookie {
            created,
            extension,
            local_port,
            remote_port,
            local_tag,
            local_initial_tsn,
            peer,
            announced,
            local,
            remote,
            encapsulation_port,
            auth_random,
            ties,
        })
    }
}

fn write_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            out.push(4);
            out.extend_from_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            out.push(6);
            out.extend_from_slice(&v6.octets());
        }
    }
}

/// Reader of a cookie's fields, in order; its methods return `None` at the end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn address(&mut self) -> Option<IpAddr> {
        match self.take::<1>()? {
            [4] => self.take::<4>().map(|octets| Ipv4Addr::from(octets).into()),
            [6] => self.take::<16>().map(|octets| Ipv6Addr::from(octets).into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;
    use crate::association::Extension;

    fn cookie() -> Cookie {
        Cookie {
            created: Instant::from_nanos(1_000),
            extension: Duration::from_millis(40),
            local_port: 5001,
            remote_port: 40_000,
            local_tag: 0x0102_0304,
            local_initial_tsn: Tsn(77),
            peer: Peer {
                tag: 9,
                a_rwnd: 65_536,
                outbound_streams: 10,
                inbound_streams: 20,
                initial_tsn: Tsn(u32::MAX),
                capabilities: Capabilities::from_iter([Extension::NrSack]),
                adaptation: Some(0),
                auth: PeerOffer::from_vector([0x80, 4, 0, 6, 0, 1].into()),
                key_parameter: Some([0x80, 6, 0, 10, 1, 2, 3, 4, 3, 192].into()),
                addresses: vec![
                    "10.0.0.2".parse().expect("an address"),
                    "fd00::2".parse().expect("an address"),
                ],
            },
            announced: 0x0102_0304_0506_0708,
            local: ["10.0.0.1", "fd00::1"]
                .map(|text| text.parse().expect("an address"))
                .into_iter()
                .collect(),
            remote: "10.0.0.2".parse().expect("an address"),
            encapsulation_port: Some(9899),
            auth_random: [9; RANDOM_LEN],
            ties: TieTags { local: 1, peer: 2 },
        }
    }

    fn keys() -> (CookieKeys, ChaCha12Rng) {
        let mut rng = ChaCha12Rng::from_seed([7; 32]);
        (CookieKeys::new(Instant::ZERO, Duration::from_secs(3600), &mut rng), rng)
    }

    fn sealed(keys: &CookieKeys) -> Vec<u8> {
        let mut sealed = Vec::new();
        keys.seal(&cookie(), &mut sealed);
        sealed
    }

    const LIFETIME: Duration = Duration::from_secs(60);

    #[test]
    fn a_sealed_cookie_opens_unchanged() {
        let (keys, _) = keys();
        let sealed = sealed(&keys);
        let opened = Opened { cookie: cookie(), stale_by: None };
        assert_eq!(keys.open(Instant::from_nanos(2_000), LIFETIME, &sealed), Some(opened));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let (keys, _) = keys();
        let sealed = sealed(&keys);
        for position in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[position / 8] ^= 1 << (position % 8);
            assert_eq!(keys.open(Instant::ZERO, LIFETIME, &forged), None);
        }
        for len in 0..sealed.len() {
            assert_eq!(keys.open(Instant::ZERO, LIFETIME, &sealed[..len]), None);
        }
    }

    #[test]
    fn an_old_cookie_is_stale_by_what_exceeds_its_life() {
        let (keys, _) = keys();
        let sealed = sealed(&keys);
        let late = Instant::from_nanos(1_000) + LIFETIME + Duration::from_millis(40 + 3);
        let opened = Opened { cookie: cookie(), stale_by: Some(Duration::from_millis(3)) };
        assert_eq!(keys.open(late, LIFETIME, &sealed), Some(opened));
    }

    #[test]
    fn tie_tags_name_one_association_for_good_and_show_no_tag() {
        let (mut keys, mut rng) = keys();
        let ties = keys.tie_tags(0x0102_0304, 9);
        assert!(![0, 9, 0x0102_0304].contains(&ties.local) && ![0, 9, 0x0102_0304].contains(&ties.peer));
        for other in [keys.tie_tags(9, 0x0102_0304), keys.tie_tags(0x0102_0304, 8)] {
            assert!(ties.local != other.local && ties.peer != other.peer);
        }
        keys.rotate(Instant::ZERO + Duration::from_secs(3600), &mut rng);
        assert_eq!(keys.tie_tags(0x0102_0304, 9), ties);
    }

    #[test]
    fn a_cookie_outlives_one_change_of_keys_but_not_two() {
        let (mut keys, mut rng) = keys();
        let sealed = sealed(&keys);
        let hour = Duration::from_secs(3600);
        keys.rotate(Instant::ZERO + hour, &mut rng);
        assert!(keys.open(Instant::from_nanos(1_000), LIFETIME, &sealed).is_some());
        keys.rotate(Instant::ZERO + hour * 2, &mut rng);
        assert!(keys.open(Instant::from_nanos(1_000), LIFETIME, &sealed).is_none());
    }
}
