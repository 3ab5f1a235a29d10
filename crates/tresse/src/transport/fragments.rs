//! Fragmentation by IP, which all other packets forbid. A chunk keeps its size for as long as it is retransmitted, so after a path has become
//! narrower, only fragments carry the chunks that were sent before.

use std::net::IpAddr;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::net::UdpSocket;

/// Does `work`, and lets IP fragment what the socket at `local` sends meanwhile. Without permission of the system the packet leaves as all
/// others do. Routers fragment packets of IPv4 only; for IPv6 the MTU that the system knows determines the fragments.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn permitted<T>(socket: &UdpSocket, local: IpAddr, work: impl FnOnce() -> T) -> T {
    use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
    match local {
        IpAddr::V4(_) => {
            let set = |mode| sockopt::set_ip_mtu_discover(socket, mode);
            meanwhile(sockopt::ip_mtu_discover(socket), Ipv4PathMtuDiscovery::DONT, set, work)
        }
        IpAddr::V6(_) => {
            let set = |mode| sockopt::set_ipv6_mtu_discover(socket, mode);
            meanwhile(sockopt::ipv6_mtu_discover(socket), Ipv6PathMtuDiscovery::DONT, set, work)
        }
    }
}

/// Does `work` with the mode `other` instead of the `usual` one.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn meanwhile<M, T>(
    usual: rustix::io::Result<M>,
    other: M,
    set: impl Fn(M) -> rustix::io::Result<()>,
    work: impl FnOnce() -> T,
) -> T {
    let _ = set(other);
    let done = work();
    let _ = usual.and_then(set);
    done
}

/// As on Linux, if the system has no such option.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn permitted<S, T>(_socket: &S, _local: IpAddr, work: impl FnOnce() -> T) -> T {
    work()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover, set_ip_mtu_discover};

    use super::*;

    #[test]
    fn fragments_are_permitted_for_one_call_only() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("free");
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE).expect("Linux has the option");
        let local = socket.local_addr().expect("bound").ip();
        let meanwhile = permitted(&socket, local, || ip_mtu_discover(&socket));
        assert_eq!(meanwhile.expect("an option"), Ipv4PathMtuDiscovery::DONT);
        assert_eq!(ip_mtu_discover(&socket).expect("an option"), Ipv4PathMtuDiscovery::PROBE);
    }
}
