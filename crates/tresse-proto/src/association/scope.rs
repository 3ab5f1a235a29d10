//! Address scopes: the local addresses that are listed to a peer, and the addresses that are accepted from it. Independent of
//! everything but addresses.
//!
//! The rule is that of most SCTP stacks: to a peer at an address of some scope, this side lists addresses of that scope and of
//! wider ones, and accepts only such addresses from it. The source and the destination of the packet itself are always valid.

use std::net::IpAddr;

/// Scope of an address; a wider scope is greater.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Scope {
    /// This host (127.0.0.0/8, ::1).
    Loopback,
    /// One link (169.254.0.0/16, fe80::/10).
    Link,
    /// One organisation (RFC 1918, RFC 4193).
    Private,
    /// Anywhere.
    Global,
}

impl Scope {
    /// The scope of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Scope::Loopback,
            IpAddr::V4(v4) if v4.is_link_local() => Scope::Link,
            IpAddr::V4(v4) if v4.is_private() => Scope::Private,
            IpAddr::V6(v6) if v6.is_unicast_link_local() => Scope::Link,
            IpAddr::V6(v6) if v6.is_unique_local() => Scope::Private,
            _ => Scope::Global,
        }
    }

    /// The narrowest scope of the addresses by which one side reaches the other; `Global` if there is none.
    pub(crate) fn between(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        addresses.into_iter().map(Scope::of).min().unwrap_or(Scope::Global)
    }

    /// Returns whether `address` means the same on both sides of an association with this scope.
    pub(crate) fn covers(self, address: IpAddr) -> bool {
        Scope::of(address) >= self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(address: &str) -> Scope {
        Scope::of(address.parse().expect("an address"))
    }

    #[test]
    fn addresses_reach_as_far_as_their_prefix_says() {
        use Scope::{Global, Link, Loopback, Private};
        for (address, expected) in [
            ("127.0.0.1", Loopback),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("169.254.1.1", Link),
            ("fe80::1", Link),
            ("10.1.2.3", Private),
            ("172.31.0.1", Private),
            ("192.168.0.1", Private),
            ("fd00::1", Private),
            ("172.32.0.1", Global),
            ("203.0.113.1", Global),
            ("2001:db8::1", Global),
        ] {
            assert_eq!(scope(address), expected, "{address}");
        }
    }

    #[test]
    fn the_nearest_address_of_the_peer_decides_what_it_may_know() {
        let parse = |address: &str| address.parse::<IpAddr>().expect("an address");
        let near = Scope::between(["203.0.113.1", "192.168.0.1"].map(parse));
        assert_eq!(near, Scope::Private);
        assert!(near.covers(parse("10.0.0.1")) && near.covers(parse("2001:db8::1")));
        assert!(!near.covers(parse("127.0.0.1")) && !near.covers(parse("fe80::1")));
        assert!(!Scope::between([]).covers(parse("10.0.0.1")));
    }
}
