//! Properties: what is written reads back as the same value, and no bytes whatever make reading panic or run
//! on.

mod strategies;

use std::collections::BTreeSet;
use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tresse_wire::*;

/// Random values for each type of chunk, parameter or cause.
const CASES_PER_TYPE: u32 = 128;

/// Random packets or byte strings for each property.
const CASES_PER_PROPERTY: u32 = 2_000;

/// Runs `check` over values of every strategy. Gives the kinds that came up, as `check` names them.
fn for_every_type<T: Debug, K: Ord>(
    strategies: Vec<BoxedStrategy<T>>,
    check: impl Fn(&T) -> Result<K, TestCaseError>,
) -> BTreeSet<K> {
    let mut kinds = BTreeSet::new();
    for strategy in strategies {
        let mut runner = TestRunner::new(ProptestConfig::with_cases(CASES_PER_TYPE));
        let seen = std::cell::RefCell::new(&mut kinds);
        let outcome = runner.run(&strategy, |value| {
            let kind = check(&value)?;
            seen.borrow_mut().insert(kind);
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    }
    kinds
}

#[test]
fn every_chunk_reads_back_as_written() {
    let seen = for_every_type(strategies::chunks(), |chunk| {
        let mut bytes = vec![0xEE];
        chunk.write(&mut bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let bytes = &bytes[1..];
        prop_assert_eq!(bytes.len(), chunk.wire_len().next_multiple_of(4));
        prop_assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), chunk.wire_len());
        let read = Chunk::parse(bytes);
        prop_assert_eq!(read.as_ref(), Ok(chunk));
        prop_assert_eq!(read.map(|read| read.wire_len()), Ok(chunk.wire_len()));
        prop_assert!(dissect_chunk(chunk).starts_with(&chunk.kind().to_string()));
        Ok(chunk.kind())
    });
    assert_eq!(ChunkKind::ALL.iter().find(|kind| !seen.contains(kind)), None);
}

#[test]
fn every_parameter_reads_back_as_written() {
    let seen = for_every_type(strategies::params(), |param| {
        let mut bytes = Vec::new();
        param.write(&mut bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(bytes.len(), param.wire_len());
        let written = [*param];
        prop_assert_eq!(Params::Wire(&bytes), Params::Values(&written));
        Ok(param.kind())
    });
    assert_eq!(ParamKind::ALL.iter().find(|kind| !seen.contains(kind)), None);
}

#[test]
fn every_cause_reads_back_as_written() {
    let seen = for_every_type(strategies::causes(), |cause| {
        let mut bytes = Vec::new();
        cause.write(&mut bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(bytes.len(), cause.wire_len());
        let written = [*cause];
        prop_assert_eq!(Causes::Wire(&bytes), Causes::Values(&written));
        Ok(cause.code())
    });
    assert_eq!(CauseCode::ALL.iter().find(|code| !seen.contains(code)), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES_PER_PROPERTY))]

    #[test]
    fn packets_read_back_as_written((header, chunks, bytes) in strategies::packet()) {
        let packet = Packet::parse(&bytes, ChecksumRule::Verify);
        let packet = packet.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(packet.header, header);
        prop_assert_eq!(packet.checksum, checksum(&bytes));
        let read: Result<Vec<_>, _> = packet.chunks().collect();
        prop_assert_eq!(read, Ok(chunks));
    }

    #[test]
    fn a_flipped_bit_never_passes_the_checksum(
        (_, _, bytes) in strategies::packet(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut damaged = bytes.clone();
        let bit = at.index(bytes.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        let outcome = Packet::parse(&damaged, ChecksumRule::Verify);
        prop_assert!(matches!(outcome, Err(PacketError::BadChecksum { .. })), "{:?}", outcome);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&bytes)?;
    }

    #[test]
    fn any_bytes_after_a_chunk_header_are_read_or_refused(
        kind in prop::sample::select(ChunkKind::ALL),
        flags in any::<u8>(),
        len in 0..80u16,
        body in prop::collection::vec(prop_oneof![Just(0u8), 1..20u8, any::<u8>()], 0..80),
    ) {
        let [high, low] = len.to_be_bytes();
        let header = [0x13, 0x88, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 0, kind.0, flags, high, low];
        read_everything(&[&header[..], &body].concat())?;
    }

    #[test]
    fn damaged_packets_are_read_or_refused(
        (_, _, mut bytes) in strategies::packet(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..6),
    ) {
        for (at, value, how) in changes {
            let at = at.index(bytes.len().max(1));
            match how {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), value),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => if let Some(byte) = bytes.get_mut(at) { *byte = value },
            }
        }
        read_everything(&bytes)?;
    }
}

/// Reads all there is to read. Every value that comes out must survive being written again, and every
/// iteration must end within as many steps as there are headers' worth of bytes.
fn read_everything(bytes: &[u8]) -> Result<(), TestCaseError> {
    let line = dissect(bytes);
    prop_assert!(!line.is_empty() && !line.contains('\n'));
    for rule in [ChecksumRule::Verify, ChecksumRule::AcceptZero] {
        let _ = Packet::parse(bytes, rule);
    }
    let Ok(packet) = Packet::parse(bytes, ChecksumRule::Trust) else { return Ok(()) };
    prop_assert!(packet.chunks().count() <= bytes.len().div_ceil(4));
    for chunk in packet.chunks().flatten() {
        let debug = format!("{chunk:?}");
        prop_assert!(!debug.is_empty());
        let mut again = Vec::new();
        chunk.write(&mut again).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(Chunk::parse(&again), Ok(chunk));
        let (params, causes) = inside(&chunk);
        prop_assert!(params.iter().count() <= bytes.len().div_ceil(4));
        prop_assert!(causes.iter().count() <= bytes.len().div_ceil(4));
    }
    Ok(())
}

fn inside<'a>(chunk: &Chunk<'a>) -> (Params<'a>, Causes<'a>) {
    match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => (init.params, Causes::default()),
        Chunk::Asconf(asconf) => (asconf.params, Causes::default()),
        Chunk::AsconfAck(ack) => (ack.params, Causes::default()),
        Chunk::Reconfig(reconfig) => (reconfig.params, Causes::default()),
        Chunk::Heartbeat(beat) | Chunk::HeartbeatAck(beat) => (Params::Wire(beat.body), Causes::default()),
        Chunk::Abort(abort) => (Params::default(), abort.causes),
        Chunk::Error(error) => (Params::default(), error.causes),
        _ => (Params::default(), Causes::default()),
    }
}
