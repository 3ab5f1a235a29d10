//! Permission for IP to fragment single packets; all others have the DF bit. A chunk keeps its size for as long as it is retransmitted, so
//! after a path has become narrower, only fragments carry the chunks that were sent before.

use std::net::{IpAddr, UdpSocket};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

/// Does `work`, and lets IP fragment what the socket at `local` sends meanwhile, also for other threads. Where the system does not permit
/// that, the packets leave as all others do. With IPv6 only this host can make fragments, by the MTU that its system knows.
pub(crate) fn permitted<T>(socket: &UdpSocket, local: IpAddr, work: impl FnOnce() -> T) -> T {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_packets_of_the_call_may_be_fragmented() {
        for local in [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])] {
            let Ok(socket) = UdpSocket::bind((local, 0)) else { continue };
            let discovers = || match local {
                IpAddr::V4(_) => sockopt::ip_mtu_discover(&socket) != Ok(Ipv4PathMtuDiscovery::DONT),
                IpAddr::V6(_) => sockopt::ipv6_mtu_discover(&socket) != Ok(Ipv6PathMtuDiscovery::DONT),
            };
            assert!(discovers(), "{local}");
            assert!(!permitted(&socket, local, discovers), "{local}");
            assert!(discovers(), "{local}");
        }
    }
}
