//! A capture can be read back, holds every packet, and its packets are whole.

use crate::common::two_paths;
use pcap_file::pcapng::{Block, PcapNgReader};
use tresse_sim::{RunOptions, run};
use tresse_wire::{ChecksumRule, ChunkKind, Packet};

#[test]
fn every_packet_is_captured_whole_and_in_order() {
    let scenario = two_paths(&[("settle", "1s"), ("measure", "1s"), ("path.0.queue", "3 packets")]);
    let mut file = Vec::new();
    let options = RunOptions { pcap: Some(&mut file), ..RunOptions::default() };
    let outcome = run(&scenario, options).expect("it runs");

    let mut reader = PcapNgReader::new(file.as_slice()).expect("a pcapng file");
    let (mut interfaces, mut packets, mut drops, mut inits) = (0, 0, 0, 0);
    let mut last = std::time::Duration::ZERO;
    while let Some(block) = reader.next_block() {
        match block.expect("a whole block") {
            Block::InterfaceDescription(_) => interfaces += 1,
            Block::EnhancedPacket(captured) => {
                packets += 1;
                drops += u64::from(!captured.options.is_empty());
                assert!(captured.timestamp >= last);
                last = captured.timestamp;
                let (header, sctp) = captured.data.split_at(20);
                assert_eq!((header[0], header[9]), (0x45, 132));
                assert_eq!(usize::from(u16::from_be_bytes([header[2], header[3]])), captured.data.len());
                let packet = Packet::parse(sctp, ChecksumRule::Verify).expect("a valid checksum");
                for chunk in packet.chunks() {
                    let chunk = chunk.expect("a chunk that parses");
                    inits += u32::from(chunk.kind() == ChunkKind::INIT);
                }
            }
            _ => {}
        }
    }
    assert_eq!((interfaces, inits), (4, 1));
    assert_eq!(packets, outcome.run.packets);
    assert!(drops > 0, "a queue of three packets overflows");
}
