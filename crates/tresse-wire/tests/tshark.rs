//! Everything this crate writes, read by Wireshark's dissector: an implementation that shares nothing with
//! ours.
//!
//! The packets go into a capture file; tshark's reading of it has to be free of complaints, to find every
//! checksum right, and to say the values that were written.

mod samples;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use tresse_wire::*;

/// IP protocol number of SCTP.
const SCTP: u8 = 132;

/// What tshark may call unknown. The samples hold one chunk type, one parameter type and one cause code that
/// nobody has registered. The rest it lacks: tshark 4.0 knows neither two parameters (Zero Checksum Acceptable is younger,
/// RFC 9653 of 2024; it has Padding as a chunk only) nor what internet drafts bring: the DTLS chunk with its
/// parameter and causes, and the cause of another one.
const MAY_BE_UNKNOWN: &[&str] = &[
    "Chunk type: Unknown (254)",
    "Unrecognized chunk type cause (Type: 254 (unknown))",
    "Unknown parameter (Type 65280, value length: 4 bytes)",
    "Parameter type: Unknown (0xff00)",
    "Unknown cause (Code: 1911, information length: 3 bytes)",
    "Cause code: Unknown (0x0777)",
    "Unknown parameter (Type 32769, value length: 4 bytes)",
    "Parameter type: Unknown (0x8001)",
    "Unknown parameter (Type 32773, value length: 5 bytes)",
    "Parameter type: Unknown (0x8005)",
    "Unknown cause (Code: 14, information length: 4 bytes)",
    "Cause code: Unknown (0x000e)",
    "Unknown cause (Code: 100, information length: 0 bytes)",
    "Cause code: Unknown (0x0064)",
    "Unknown cause (Code: 101, information length: 0 bytes)",
    "Cause code: Unknown (0x0065)",
    "Unknown cause (Code: 102, information length: 0 bytes)",
    "Cause code: Unknown (0x0066)",
    "Unknown cause (Code: 103, information length: 0 bytes)",
    "Cause code: Unknown (0x0067)",
    "Chunk type: Unknown (65)",
    "Parameter type: Unknown (0x8006)",
    "Unknown parameter (Type 32774, value length: 7 bytes)",
];

/// For each chunk type, how tshark's lines for one of its samples begin.
const EXPECTED: &[(ChunkKind, &[&str])] = &[
    (
        ChunkKind::DATA,
        &[
            "DATA chunk (ordered, complete segment, TSN: 0, SID: 3, SSN: 7, PPID: 0, payload length: 6 bytes)",
            "Transmission sequence number (absolute): 100",
        ],
    ),
    (
        ChunkKind::INIT,
        &[
            "INIT chunk (Outbound streams: 10, inbound streams: 2048)",
            "Initiate tag: 0x01020304",
            "Advertised receiver window credit (a_rwnd): 131072",
            "Initial TSN: 168496141",
            "IPv4 address parameter (Address: 192.0.2.1)",
            "IPv6 address parameter (Address: 2001:db8::1)",
            "Cookie preservative parameter (Increment :5000 msec)",
            "Supported address types parameter (Supported types: IPv4, IPv6)",
            "ECN parameter",
            "Random parameter",
            "Authenticated Chunk list parameter (Chunk types to be authenticated: ASCONF, ASCONF_ACK)",
            "Requested HMAC Algorithm parameter (Supported HMACs: SHA-256, SHA-1)",
            "Supported Extensions parameter (Supported types: I_DATA, AUTH, NR_SACK, ASCONF_ACK, RE_CONFIG, \
             FORWARD_TSN, ASCONF, I_FORWARD_TSN)",
            "Forward TSN supported parameter",
            "Adaptation Layer Indication parameter (Indication: 7)",
            "Set primary address parameter (Address: 192.0.2.1, correlation ID: 1)",
        ],
    ),
    (ChunkKind::INIT, &["Hostname address parameter (Hostname: host.example)"]),
    (
        ChunkKind::INIT_ACK,
        &[
            "INIT_ACK chunk (Outbound streams: 10, inbound streams: 2048)",
            "State cookie parameter (Cookie length: 61 bytes)",
            "Unrecognized parameter parameter",
        ],
    ),
    (
        ChunkKind::SACK,
        &[
            "SACK chunk (Cumulative TSN: 99, a_rwnd: 65536, gaps: 2, duplicate TSNs: 2)",
            "Gap Acknowledgement for TSN 101 to 102",
            "Gap Acknowledgement for TSN 106 to 108",
            "Duplicate TSN: 98",
        ],
    ),
    (
        ChunkKind::HEARTBEAT,
        &["HEARTBEAT chunk (Information: 16 bytes)", "Heartbeat information: 0102030405060708090a0b0c"],
    ),
    (
        ChunkKind::HEARTBEAT_ACK,
        &["HEARTBEAT_ACK chunk (Information: 16 bytes)", "Heartbeat info parameter (Information: 12 bytes)"],
    ),
    (ChunkKind::ABORT, &["ABORT chunk", ".... ...0 = T-Bit"]),
    (ChunkKind::ABORT, &["ABORT chunk", ".... ...1 = T-Bit", "User initiated ABORT cause"]),
    (ChunkKind::SHUTDOWN, &["SHUTDOWN chunk (Cumulative TSN ack: 99)"]),
    (ChunkKind::SHUTDOWN_ACK, &["SHUTDOWN_ACK chunk"]),
    (
        ChunkKind::ERROR,
        &[
            "ERROR chunk",
            "Invalid stream identifier cause (SID: 9)",
            "Missing mandatory parameter cause",
            "Missing parameter type: State cookie (0x0007)",
            "Stale cookie error cause (Measure: 123456 usec)",
            "Out of resource cause",
            "Unresolvable address cause",
            "Unrecognized chunk type cause",
            "Invalid mandatory parameter cause",
            "Unrecognized parameters cause",
            "No user data cause (TSN: 77)",
            "Cookie received while shutting down cause",
            "Restart of an association with new addresses cause (New addresses: 192.0.2.9)",
            "User initiated ABORT cause",
            "Protocol violation cause",
            "Request to delete last address cause",
            "Operation refused due to resource shortage cause",
            "Request to delete source address cause",
            "Association Aborted due to illegal ASCONF-ACK cause",
            "Request refused - no authorization cause",
            "Unsupported HMAC identifier cause",
        ],
    ),
    (ChunkKind::COOKIE_ECHO, &["COOKIE_ECHO chunk (Cookie length: 61 bytes)"]),
    (ChunkKind::COOKIE_ACK, &["COOKIE_ACK chunk"]),
    (ChunkKind::ECNE, &["ECNE chunk (Lowest TSN: 100)"]),
    (ChunkKind::CWR, &["CWR chunk (Lowest TSN: 100)"]),
    (ChunkKind::SHUTDOWN_COMPLETE, &["SHUTDOWN_COMPLETE chunk", ".... ...0 = T-Bit"]),
    (ChunkKind::SHUTDOWN_COMPLETE, &["SHUTDOWN_COMPLETE chunk", ".... ...1 = T-Bit"]),
    (
        ChunkKind::AUTH,
        &["AUTH chunk", "Shared key identifier: 0", "HMAC identifier: SHA-1 (1)", "HMAC: a5a5a5a5"],
    ),
    (ChunkKind::AUTH, &["AUTH chunk", "Shared key identifier: 5", "HMAC identifier: SHA-256 (3)"]),
    (
        ChunkKind::NR_SACK,
        &[
            "NR_SACK chunk (Cumulative TSN: 99, a_rwnd: 65536, gaps: 2, nr-gaps: 1, duplicate TSNs: 1)",
            "Gap Acknowledgement for TSN 101 to 102",
            "NR-Gap Acknowledgement for TSN 104 to 104",
            "Duplicate TSN: 98",
        ],
    ),
    (
        ChunkKind::I_DATA,
        &[
            "I_DATA chunk (ordered, complete segment, TSN: 0, SID: 3, MID: 8, payload length: 5 bytes)",
            "Payload protocol identifier: not specified (0)",
        ],
    ),
    (
        ChunkKind::I_DATA,
        &["I_DATA chunk (unordered, last segment, TSN: 0, SID: 3, MID: 8, FSN: 1, payload length: 5 bytes)"],
    ),
    (
        ChunkKind::ASCONF_ACK,
        &[
            "ASCONF_ACK chunk",
            "Sequence number: 0x00000005",
            "Success report parameter (Correlation ID: 1)",
            "Error cause indication parameter",
            "Request to delete last address cause",
            "Operation refused due to resource shortage cause",
        ],
    ),
    (
        ChunkKind::PACKET_DROP,
        &["PKTDROP chunk", "Bandwidth: 131072", "Queuesize: 1024", "Truncated length: 0", "COOKIE_ACK chunk"],
    ),
    (
        ChunkKind::RECONFIG,
        &["RE_CONFIG chunk", "Outgoing SSN reset request parameter", "Stream Identifier: 3"],
    ),
    (ChunkKind::RECONFIG, &["Incoming SSN reset request parameter", "Stream Identifier: 5"]),
    (
        ChunkKind::RECONFIG,
        &["SSN/TSN reset request parameter", "Re-configuration request sequence number: 9"],
    ),
    (
        ChunkKind::RECONFIG,
        &[
            "Add outgoing streams request parameter",
            "Number of streams: 5",
            "Add incoming streams request parameter",
            "Number of streams: 6",
        ],
    ),
    (ChunkKind::RECONFIG, &["Result: Performed (1)", "Senders next TSN: 1000", "Receivers next TSN: 2000"]),
    (ChunkKind::PAD, &["PAD chunk (Padding data length: 9 bytes)"]),
    (
        ChunkKind::FORWARD_TSN,
        &[
            "FORWARD_TSN chunk",
            "New cumulative TSN: 120",
            "Stream identifier: 3",
            "Stream sequence number: 9",
        ],
    ),
    (
        ChunkKind::ASCONF,
        &[
            "ASCONF chunk",
            "Sequence number: 0x00000005",
            "IPv4 address parameter (Address: 192.0.2.1)",
            "Add IP address parameter (Address: 2001:db8::1, correlation ID: 1)",
            "Delete IP address parameter (Address: 192.0.2.1, correlation ID: 2)",
            "Set primary address parameter (Address: 2001:db8::1, correlation ID: 3)",
        ],
    ),
    (
        ChunkKind::I_FORWARD_TSN,
        &[
            "I_FORWARD_TSN chunk",
            "New cumulative TSN: 120",
            "Message identifier: 9",
            ".... .... .... ...1 = U-Bit: Unordered messages",
            "Message identifier: 4",
        ],
    ),
    (ChunkKind::DTLS, &["RESERVED chunk (Type: 65, value length: 25 bytes)"]),
    (ChunkKind(0xFE), &["RESERVED chunk (Type: 254, value length: 4 bytes)"]),
];

#[test]
fn tshark_reads_every_chunk_without_complaint() {
    let chunks = samples::chunks();
    let packets: Vec<_> = chunks.iter().enumerate().map(|(i, chunk)| packet(i, &[*chunk])).collect();
    let readings = tshark("chunks", &packets);
    for (chunk, reading) in chunks.iter().zip(&readings) {
        check_without_complaint(reading, &dissect_chunk(chunk));
    }
    for (kind, expected) in EXPECTED {
        let of_kind = || chunks.iter().zip(&readings).filter(|(chunk, _)| chunk.kind() == *kind);
        let said = of_kind().any(|(_, reading)| expected.iter().all(|line| has_line(reading, line)));
        let readings: Vec<_> = of_kind().map(|(_, reading)| reading.as_str()).collect();
        assert!(said, "tshark says {expected:?} of no {kind} sample, but:\n{}", readings.join("\n"));
    }
}

#[test]
fn tshark_reads_bundled_chunks_each_in_its_place() {
    let chunks = samples::chunks();
    let pick =
        |kind: ChunkKind| *chunks.iter().find(|chunk| chunk.kind() == kind).expect("a sample of every type");
    // 3 bytes of padding after COOKIE ECHO, 2 after DATA, 0 after SACK.
    let kinds =
        [ChunkKind::COOKIE_ECHO, ChunkKind::SACK, ChunkKind::DATA, ChunkKind::DATA, ChunkKind::FORWARD_TSN];
    let bundle = kinds.map(pick);
    let readings = tshark("bundle", &[packet(0, &bundle)]);
    check_without_complaint(&readings[0], "bundle");
    // The chunks stand one level below the protocol, indented by four.
    let lines = readings[0].lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
    let names: Vec<_> =
        lines.filter_map(|line| line.trim().split_once(" chunk").map(|(name, _)| name)).collect();
    assert_eq!(names, ["COOKIE_ECHO", "SACK", "DATA", "DATA", "FORWARD_TSN"]);
}

#[test]
fn the_samples_leave_no_type_out() {
    let chunks: BTreeSet<_> = samples::chunks().iter().map(Chunk::kind).collect();
    assert_eq!(missing(ChunkKind::ALL, &chunks), []);
    let expected: BTreeSet<_> = EXPECTED.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(missing(ChunkKind::ALL, &expected), []);

    let lists = [
        samples::INIT_PARAMS,
        samples::INIT_ACK_PARAMS,
        samples::HOST_NAME,
        samples::ASCONF_PARAMS,
        samples::ASCONF_ACK_PARAMS,
    ];
    let params = lists.iter().chain(samples::RECONFIG_PARAMS).flat_map(|list| list.iter().map(Param::kind));
    // Heartbeat Info is written as the raw body of a HEARTBEAT.
    let params: BTreeSet<_> = params.chain([ParamKind::HEARTBEAT_INFO]).collect();
    assert_eq!(missing(ParamKind::ALL, &params), []);

    let causes: BTreeSet<_> = samples::CAUSES.iter().map(Cause::code).collect();
    assert_eq!(missing(CauseCode::ALL, &causes), []);
}

fn missing<T: Copy + Ord>(all: &[T], there: &BTreeSet<T>) -> Vec<T> {
    all.iter().copied().filter(|item| !there.contains(item)).collect()
}

/// A packet with these chunks. Ports differ from packet to packet, so that tshark sees no association between
/// them.
fn packet(i: usize, chunks: &[Chunk<'_>]) -> Vec<u8> {
    let header = CommonHeader {
        source_port: 32_001 + i as u16,
        destination_port: 42_001 + i as u16,
        verification_tag: if chunks[0].kind() == ChunkKind::INIT { 0 } else { 0x0506_0708 },
    };
    let mut buf = Vec::new();
    let mut writer = PacketWriter::new(&mut buf, header, 1_452);
    for chunk in chunks {
        writer.push(chunk).expect("samples are small");
    }
    writer.finish(Seal::Crc32c);
    // Both families carry SCTP; every other packet shows one of them.
    if i.is_multiple_of(2) { over_ipv4(&buf) } else { over_ipv6(&buf) }
}

fn over_ipv4(sctp: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + sctp.len() as u16).to_be_bytes();
    let mut ip = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, SCTP, 0, 0];
    ip.extend_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    ip.extend_from_slice(sctp);
    ip
}

fn over_ipv6(sctp: &[u8]) -> Vec<u8> {
    let [high, low] = (sctp.len() as u16).to_be_bytes();
    let mut ip = vec![0x60, 0, 0, 0, high, low, SCTP, 64];
    for host in [1, 2] {
        ip.extend_from_slice(&[0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    ip.extend_from_slice(sctp);
    ip
}

/// What tshark says about each packet.
fn tshark(name: &str, packets: &[Vec<u8>]) -> Vec<String> {
    let directory =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tshark-{}-{name}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory for the capture");
    let capture = directory.join("packets.pcapng");
    write_capture(&capture, packets);
    let output = Command::new("tshark")
        .args(["-n", "-V", "-O", "sctp", "-o", "sctp.checksum:CRC 32c", "-r"])
        .arg(&capture)
        .env("WIRESHARK_CONFIG_DIR", &directory)
        .env("LC_ALL", "C.UTF-8")
        .output();
    fs::remove_dir_all(&directory).expect("the directory to be ours");
    let output = output.unwrap_or_else(|error| {
        panic!("cannot run tshark ({error}): install the Debian package \"tshark\"");
    });
    assert!(output.status.success(), "tshark failed: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let readings: Vec<_> = text.split("Frame ").skip(1).map(str::to_owned).collect();
    assert_eq!(readings.len(), packets.len(), "tshark must see every packet");
    readings
}

fn write_capture(path: &Path, packets: &[Vec<u8>]) {
    let file = fs::File::create(path).expect("a file for the capture");
    let mut writer = PcapNgWriter::new(file).expect("a header");
    writer.write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::RAW, 0)).expect("an interface");
    for (i, data) in packets.iter().enumerate() {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_secs(i as u64),
            original_len: data.len() as u32,
            data: Cow::Borrowed(data),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).expect("a packet");
    }
}

fn check_without_complaint(reading: &str, what: &str) {
    assert!(reading.contains("[correct]"), "{what}: no good checksum in\n{reading}");
    for line in reading.lines().map(str::trim) {
        let complaint = ["malformed", "expert info", "incorrect", "bad "].iter().any(|word| {
            let line = line.to_lowercase();
            line.contains(word)
        });
        assert!(!complaint, "{what}: tshark complains, {line:?}, in\n{reading}");
        let unknown = line.contains("Unknown") || line.contains("(unknown)");
        let interface = line.starts_with("Interface") || line.contains("on interface");
        assert!(
            !unknown || interface || MAY_BE_UNKNOWN.contains(&line),
            "{what}: tshark does not know {line:?} in\n{reading}"
        );
    }
}

fn has_line(reading: &str, start: &str) -> bool {
    reading.lines().any(|line| line.trim().starts_with(start))
}
