//! Target for packets: any bytes are read as a value or an error, and a value that was read is written as the same bytes.

use tresse_wire::{ChecksumRule, Chunk, CommonHeader, Packet, PacketWriter, Seal, dissect};

/// Most characters that describe a packet: the first number for each byte of it, plus the second.
const LINE: (usize, usize) = (64, 1_000);

pub(crate) fn target(bytes: &[u8]) {
    let line = dissect(bytes);
    assert!(
        line.len() <= LINE.0 * bytes.len() + LINE.1,
        "{} characters for {} bytes",
        line.len(),
        bytes.len()
    );
    let Ok(packet) = Packet::parse(bytes, ChecksumRule::Trust) else { return };
    for chunk in packet.chunks().flatten() {
        read_all(&chunk);
        let header = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };
        let mut copy = Vec::new();
        let mut writer = PacketWriter::new(&mut copy, header, 1 << 17);
        writer.push(&chunk).expect("room for a chunk");
        writer.finish(Seal::Crc32c);
        let copy = Packet::parse(&copy, ChecksumRule::Verify).expect("a packet that was written can be read");
        let again = copy.chunks().next().expect("a chunk").expect("that can be read");
        assert_eq!(chunk, again);
    }
}

/// Reads all items inside the chunk.
fn read_all(chunk: &Chunk<'_>) {
    let items = match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => init.params.iter().count(),
        Chunk::Reconfig(reconfig) => reconfig.params.iter().count(),
        Chunk::Asconf(asconf) => asconf.params.iter().count(),
        Chunk::AsconfAck(ack) => ack.params.iter().count(),
        Chunk::Abort(abort) => abort.causes.iter().count(),
        Chunk::Error(error) => error.causes.iter().count(),
        Chunk::Heartbeat(heartbeat) => heartbeat.info().map_or(0, <[u8]>::len),
        _ => 0,
    };
    assert!(items <= 1 << 16);
}
