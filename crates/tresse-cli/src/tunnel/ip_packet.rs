//! Fields of an IP packet that determine its flow and its class.

use tresse::config::StreamClass;

/// Returns the class of a packet by its DSCP: latency for EF and for CS5 and above (RFC 4594), background for CS1 and LE (RFC 8622), and
/// otherwise bulk.
pub(super) fn class(packet: &[u8]) -> StreamClass {
    let traffic_class = match version(packet) {
        4 => packet.get(1).copied().unwrap_or_default(),
        _ => packet.get(..2).map_or(0, |two| two[0] << 4 | two[1] >> 4),
    };
    match traffic_class >> 2 {
        40.. => StreamClass::Latency,
        1 | 8 => StreamClass::Background,
        _ => StreamClass::Bulk,
    }
}

/// Returns a hash of a packet's flow: of its addresses, its protocol and, if there are any, its ports.
pub(super) fn flow(packet: &[u8]) -> usize {
    let (addresses, protocol, ports) = match version(packet) {
        4 => {
            let header = usize::from(packet[0] & 15) * 4;
            // Later fragments have no ports, so the ports of the first one are ignored, too: all fragments of a packet stay together.
            let fragment = packet.get(6..8).is_some_and(|bits| bits[0] & 0x3f != 0 || bits[1] != 0);
            let ports = packet.get(header..header + 4).filter(|_| !fragment);
            (packet.get(12..20), packet.get(9), ports)
        }
        _ => (packet.get(8..40), packet.get(6), packet.get(40..44)),
    };
    let protocol = protocol.copied().unwrap_or_default();
    let ports = ports.filter(|_| matches!(protocol, 6 | 17));
    let parts = [addresses.unwrap_or_default(), &[protocol], ports.unwrap_or_default()];
    // FNV-1a.
    let hash = parts.concat().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash >> 32) as usize
}

fn version(packet: &[u8]) -> u8 {
    packet.first().map_or(0, |first| first >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(dscp: u8, fragment: u16, ports: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45, dscp << 2, 0, 24, 0, 0];
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(ports);
        packet
    }

    #[test]
    fn packets_of_a_flow_stay_together_and_flows_are_told_apart() {
        let (one, other) = (ipv4(0, 0, [1, 2, 3, 4]), ipv4(46, 0, [1, 2, 3, 4]));
        assert_eq!(flow(&one), flow(&other));
        assert_ne!(flow(&one), flow(&ipv4(0, 0, [1, 2, 3, 5])));
        assert_eq!(flow(&ipv4(0, 0x2000, [1, 2, 3, 4])), flow(&ipv4(0, 100, [9, 9, 9, 9])), "fragments");
        let mut six = vec![0x60; 44];
        six[6] = 6;
        let before = flow(&six);
        six[43] ^= 1;
        assert_ne!(flow(&six), before);
    }

    #[test]
    fn marks_say_what_packets_are_for() {
        for (dscp, wanted) in [
            (46, StreamClass::Latency),
            (40, StreamClass::Latency),
            (8, StreamClass::Background),
            (1, StreamClass::Background),
            (0, StreamClass::Bulk),
            (10, StreamClass::Bulk),
        ] {
            assert_eq!(class(&ipv4(dscp, 0, [0; 4])), wanted, "DSCP {dscp}");
            assert_eq!(class(&[0x60 | dscp >> 2, dscp << 6]), wanted, "DSCP {dscp}");
        }
    }

    #[test]
    fn no_bytes_do_any_harm() {
        for length in 0..60 {
            for first in [0x00, 0x40, 0x4f, 0x60, 0xff] {
                let packet = vec![first; length];
                flow(&packet);
                class(&packet);
            }
        }
    }
}
