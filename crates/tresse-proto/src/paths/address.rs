//! Pairs of a local and a remote address that become paths. Depends on the addresses only.

use std::net::IpAddr;

use crate::collections::InlineVec;
use crate::config::PathPairs;

/// Returns the pairs that become paths, in the order of the paths: at most `limit`, each once, both addresses of one family.
///
/// By position, each remote address is paired with the local address at the same position within the family; then each local
/// address that is still without a partner is paired in the same way. The shorter list starts over. A full mesh begins with the
/// same pairs, so that its first paths share as little as possible. Addresses without a partner of their family are left out:
/// see [`unreachable()`].
pub(crate) fn pairs(
    policy: PathPairs,
    local: &[IpAddr],
    remote: &[IpAddr],
    limit: usize,
) -> InlineVec<(IpAddr, IpAddr)> {
    // Most associations have one address on each side.
    match (local, remote) {
        (&[local], &[remote]) if limit > 0 && local.is_ipv4() == remote.is_ipv4() => {
            InlineVec::of((local, remote))
        }
        _ => choose_pairs(policy, local, remote, limit).into_iter().collect(),
    }
}

fn choose_pairs(
    policy: PathPairs,
    local: &[IpAddr],
    remote: &[IpAddr],
    limit: usize,
) -> Vec<(IpAddr, IpAddr)> {
    let mut chosen = Vec::new();
    let mut add = |pair| {
        if chosen.len() < limit && !chosen.contains(&pair) {
            chosen.push(pair);
        }
        chosen.len() < limit
    };
    for (position, &remote) in with_family_positions(remote) {
        if let Some(local) = around(local.iter().copied(), remote, position)
            && !add((local, remote))
        {
            return chosen;
        }
    }
    for (position, &local) in with_family_positions(local) {
        if position >= of_family(remote.iter().copied(), local).count()
            && let Some(remote) = around(remote.iter().copied(), local, position)
            && !add((local, remote))
        {
            return chosen;
        }
    }
    if policy == PathPairs::FullMesh {
        for &remote in remote {
            for local in of_family(local.iter().copied(), remote) {
                if !add((local, remote)) {
                    return chosen;
                }
            }
        }
    }
    chosen
}

/// Returns the addresses with which a new address forms paths. `side` are the addresses of its own side in the order in which
/// they joined, the new one included; `others` are those of the other side.
///
/// By position, this is the address at the same position within the family; the shorter list starts over, as at set-up. A full
/// mesh begins with that address.
pub(crate) fn partners(
    policy: PathPairs,
    address: IpAddr,
    side: impl Iterator<Item = IpAddr>,
    others: impl Iterator<Item = IpAddr> + Clone,
) -> impl Iterator<Item = IpAddr> {
    let position = of_family(side, address).take_while(|&other| other != address).count();
    let first = around(others.clone(), address, position);
    let mesh = (policy == PathPairs::FullMesh).then_some(others).into_iter().flatten();
    first.into_iter().chain(of_family(mesh, address).filter(move |&other| Some(other) != first))
}

/// Returns whether any local address and any remote address are of one family.
pub(crate) fn can_meet(
    local: impl Iterator<Item = IpAddr> + Clone,
    mut remote: impl Iterator<Item = IpAddr>,
) -> bool {
    remote.any(|remote| local.clone().any(|local| local.is_ipv4() == remote.is_ipv4()))
}

/// Returns whether an address can belong to one host (RFC 9260 §3.3.2.1: no multicast or broadcast).
pub(crate) fn is_usable(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !broadcast
}

/// Returns the first remote address that has no local address of its family.
pub(crate) fn unreachable(local: &[IpAddr], remote: &[IpAddr]) -> Option<IpAddr> {
    remote.iter().copied().find(|remote| local.iter().all(|local| local.is_ipv4() != remote.is_ipv4()))
}

/// Returns the addresses of the family of `address`.
fn of_family<I: Iterator<Item = IpAddr>>(addresses: I, address: IpAddr) -> impl Iterator<Item = IpAddr> {
    addresses.filter(move |other| other.is_ipv4() == address.is_ipv4())
}

/// Returns each address with its position among those of its family.
fn with_family_positions(addresses: &[IpAddr]) -> impl Iterator<Item = (usize, &IpAddr)> {
    let mut counts = [0, 0];
    addresses.iter().map(move |address| {
        let count = &mut counts[usize::from(address.is_ipv6())];
        *count += 1;
        (*count - 1, address)
    })
}

/// Returns the address at `position` among those of the family of `address`; a position beyond the last one starts over.
fn around(
    addresses: impl Iterator<Item = IpAddr> + Clone,
    address: IpAddr,
    position: usize,
) -> Option<IpAddr> {
    let count = of_family(addresses.clone(), address).count();
    of_family(addresses, address).nth(position.checked_rem(count)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn paired(policy: PathPairs, local: &[&str], remote: &[&str], limit: usize) -> Vec<String> {
        pairs(policy, &addresses(local), &addresses(remote), limit)
            .iter()
            .map(|(local, remote)| format!("{local}>{remote}"))
            .collect()
    }

    #[test]
    fn by_position_pairs_first_with_first_and_starts_the_shorter_list_over() {
        let by_position = |local: &[&str], remote: &[&str]| paired(PathPairs::ByPosition, local, remote, 16);
        assert_eq!(
            by_position(&["10.0.0.1", "10.1.0.1"], &["10.0.0.2", "10.1.0.2"]),
            ["10.0.0.1>10.0.0.2", "10.1.0.1>10.1.0.2"]
        );
        assert_eq!(
            by_position(&["10.0.0.1"], &["10.0.0.2", "10.1.0.2"]),
            ["10.0.0.1>10.0.0.2", "10.0.0.1>10.1.0.2"]
        );
        assert_eq!(
            by_position(&["10.0.0.1", "10.1.0.1", "10.2.0.1"], &["10.0.0.2", "10.1.0.2"]),
            ["10.0.0.1>10.0.0.2", "10.1.0.1>10.1.0.2", "10.2.0.1>10.0.0.2"]
        );
    }

    #[test]
    fn families_do_not_mix() {
        let local = ["10.0.0.1", "fd00::1", "10.1.0.1"];
        let remote = ["fd00::2", "10.0.0.2", "10.1.0.2"];
        assert_eq!(
            paired(PathPairs::ByPosition, &local, &remote, 16),
            ["fd00::1>fd00::2", "10.0.0.1>10.0.0.2", "10.1.0.1>10.1.0.2"]
        );
        assert_eq!(
            paired(PathPairs::FullMesh, &["10.0.0.1"], &["fd00::2", "10.0.0.2"], 16),
            ["10.0.0.1>10.0.0.2"]
        );
        assert_eq!(unreachable(&addresses(&local), &addresses(&remote)), None);
        let (ipv4_only, remote) = (addresses(&["10.0.0.1"]), addresses(&["10.0.0.2", "fd00::2"]));
        assert_eq!(unreachable(&ipv4_only, &remote), Some(remote[1]));
    }

    #[test]
    fn a_new_address_pairs_as_it_would_have_at_set_up() {
        let new = |policy, address: &str, side: &[&str], others: &[&str]| -> Vec<String> {
            let (side, others) = (addresses(side), addresses(others));
            let new = address.parse().unwrap();
            partners(policy, new, side.into_iter(), others.into_iter())
                .map(|other| other.to_string())
                .collect()
        };
        let side = ["10.0.0.1", "fd00::1", "10.1.0.1", "10.2.0.1"];
        let by_position = |others: &[&str]| new(PathPairs::ByPosition, "10.2.0.1", &side, others);
        assert_eq!(by_position(&["10.0.0.2", "10.1.0.2"]), ["10.0.0.2"], "the shorter list starts over");
        assert_eq!(by_position(&["10.0.0.2", "fd00::2", "10.1.0.2", "10.2.0.2"]), ["10.2.0.2"]);
        assert_eq!(by_position(&["fd00::2"]), [""; 0]);
        let others = ["10.0.0.2", "fd00::2", "10.1.0.2", "10.2.0.2"];
        let mesh = new(PathPairs::FullMesh, "10.1.0.1", &side, &others);
        assert_eq!(mesh, ["10.1.0.2", "10.0.0.2", "10.2.0.2"]);
    }

    #[test]
    fn a_full_mesh_begins_with_what_shares_least() {
        let (local, remote) = (["10.0.0.1", "10.1.0.1"], ["10.0.0.2", "10.1.0.2"]);
        assert_eq!(
            paired(PathPairs::FullMesh, &local, &remote, 16),
            ["10.0.0.1>10.0.0.2", "10.1.0.1>10.1.0.2", "10.1.0.1>10.0.0.2", "10.0.0.1>10.1.0.2"]
        );
    }

    #[test]
    fn pairs_are_few_and_distinct() {
        let (local, remote) = (["10.0.0.1", "10.0.0.1"], ["10.0.0.2", "10.0.0.2", "10.1.0.2"]);
        assert_eq!(paired(PathPairs::FullMesh, &local, &remote, 16).len(), 2);
        assert_eq!(paired(PathPairs::FullMesh, &local, &remote, 1), ["10.0.0.1>10.0.0.2"]);
        assert!(paired(PathPairs::ByPosition, &[], &remote, 16).is_empty());
        assert!(paired(PathPairs::ByPosition, &local, &[], 16).is_empty());
        assert!(paired(PathPairs::ByPosition, &local, &remote, 0).is_empty());
    }
}
