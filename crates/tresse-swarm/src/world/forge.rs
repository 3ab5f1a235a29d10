//! Packets of an off-path attacker, which knows addresses and ports, but neither verification tags nor keys.

use bytes::Bytes;
use rand_core::Rng;
use tresse_sim::seed::Generator;
use tresse_wire::{
    Abort, Causes, Chunk, CommonHeader, CookieEcho, Data, DataFlags, Init, PacketWriter, Params, Ppid, Seal,
    Ssn, StreamId, Tsn,
};

use crate::script::Forgery;

/// Returns a packet of kind `what`; `ports` are the source port and the destination port.
pub(super) fn forge(what: Forgery, ports: (u16, u16), dice: &mut Generator) -> Bytes {
    let (source_port, destination_port) = ports;
    let tag = if what == Forgery::Init { 0 } else { dice.next_u32() };
    let header = CommonHeader { source_port, destination_port, verification_tag: tag };
    let mut noise = [0; 64];
    dice.fill_bytes(&mut noise);
    let mut packet = Vec::new();
    let mut writer = PacketWriter::new(&mut packet, header, 1400);
    let chunk = match what {
        Forgery::Init => Chunk::Init(Init {
            initiate_tag: dice.next_u32().max(1),
            a_rwnd: 65_536,
            outbound_streams: 3,
            inbound_streams: 3,
            initial_tsn: Tsn(dice.next_u32()),
            params: Params::Values(&[]),
        }),
        Forgery::Cookie => Chunk::CookieEcho(CookieEcho { cookie: &noise }),
        Forgery::Data => Chunk::Data(Data {
            tsn: Tsn(dice.next_u32()),
            stream: StreamId(0),
            ssn: Ssn(0),
            ppid: Ppid(0),
            flags: DataFlags { beginning: true, ending: true, ..DataFlags::default() },
            payload: &noise,
        }),
        Forgery::Abort => Chunk::Abort(Abort { tag_reflected: false, causes: Causes::Wire(&[]) }),
        Forgery::ShutdownAck => Chunk::ShutdownAck,
        Forgery::Noise => {
            writer.finish(Seal::Zero);
            packet.extend_from_slice(&noise);
            tresse_wire::seal(&mut packet);
            return packet.into();
        }
    };
    // Each of these chunks fits in an empty packet.
    writer.push(&chunk).ok();
    writer.finish(Seal::Crc32c);
    packet.into()
}
