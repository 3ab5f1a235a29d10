//! Steering of packets among the sockets of several drivers: the driver of each pair of SCTP ports, and the system's
//! filter that selects the socket of this driver.
//!
//! All packets of an association have its two ports, on every path, and so has its INIT. So the ports alone determine
//! the driver, and collisions and restarts reach the association concerned.

use std::io;
use std::net::UdpSocket;

/// Returns the number of the driver, out of `count`, of associations between the SCTP port `peer` of another host and `own`.
pub(crate) fn driver_of(peer: u16, own: u16, count: usize) -> usize {
    let ports = u32::from(peer) << 16 | u32::from(own);
    let mixed = ports.wrapping_mul(MULTIPLIER) >> SHIFT;
    mixed as usize % count.max(1)
}

/// Returns the number of the driver to which an arrived packet belongs. A packet too short to have ports belongs to the
/// first driver, which counts it.
pub(crate) fn driver_of_packet(packet: &[u8], count: usize) -> usize {
    match *packet {
        [a, b, c, d, ..] => driver_of(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), count),
        _ => 0,
    }
}

/// Makes the system deliver each packet to the socket of its driver. `count` sockets share the address and port of
/// `socket`, in the order of the drivers' numbers (SO_REUSEPORT).
///
/// # Errors
/// Error of the system, which then selects by addresses and UDP ports.
#[cfg(target_os = "linux")]
pub(super) fn attach(socket: &UdpSocket, count: usize) -> io::Result<()> {
    // A program of the classic packet filter (BPF) on the bytes behind the UDP header. The first socket gets a packet
    // that is too short for it.
    let program = [
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        (libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K, MULTIPLIER),
        (libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, SHIFT),
        (libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, u32::try_from(count.max(1)).unwrap_or(u32::MAX)),
        (libc::BPF_RET | libc::BPF_A, 0),
    ];
    system::attach_to_group(socket, &program)
}

/// As on Linux, if the system has no such option.
#[cfg(not(target_os = "linux"))]
pub(super) fn attach(_socket: &UdpSocket, _count: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// System call that no crate offers.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "setsockopt reads a structure with a pointer to the program")]
mod system {
    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Attaches a program of pairs of operation and operand, without jumps, to all sockets of the group of `socket`.
    pub(super) fn attach_to_group<const N: usize>(
        socket: &UdpSocket,
        program: &[(u32, u32); N],
    ) -> io::Result<()> {
        let mut filter = program.map(|(operation, operand)| libc::sock_filter {
            // All operations fit: they are flags of sixteen bits.
            code: operation as u16,
            jt: 0,
            jf: 0,
            k: operand,
        });
        let length = u16::try_from(N).map_err(|_| io::ErrorKind::InvalidInput)?;
        let fprog = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
        let size = size_of::<libc::sock_fprog>() as libc::socklen_t;
        // SAFETY: the descriptor is open as long as `socket` is borrowed. The system reads `size` bytes of `fprog` and `length`
        // instructions behind its pointer; both outlive the call, and it keeps a copy.
        let outcome = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_REUSEPORT_CBPF,
                (&raw const fprog).cast(),
                size,
            )
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Multiplier that spreads ports over all bits: 2^32 divided by the golden ratio, odd.
const MULTIPLIER: u32 = 0x9e37_79b1;
/// Shift that selects the upper half, which both ports affect.
const SHIFT: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_a_row_are_spread_over_all_drivers() {
        for count in [1, 2, 3, 4, 8, 13] {
            let mut had = vec![0_usize; count];
            for peer in 10_000..11_000 {
                had[driver_of(peer, 7, count)] += 1;
            }
            let fair = 1000 / count;
            assert!(had.iter().all(|&had| had > fair / 2 && had < fair * 2), "{count}: {had:?}");
        }
    }

    #[test]
    fn a_packet_says_whose_it_is_by_its_ports() {
        for peer in [1, 7, 40_000, 65_535_u16] {
            let [high, low] = peer.to_be_bytes();
            assert_eq!(driver_of_packet(&[high, low, 0, 7, 1, 2], 5), driver_of(peer, 7, 5));
        }
        assert_eq!(driver_of_packet(&[1, 2, 3], 5), 0, "too short");
    }
}
