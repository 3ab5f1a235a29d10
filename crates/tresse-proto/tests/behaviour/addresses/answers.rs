//! Answers to a peer that writes its own requests, and their effects (RFC 5061 §5.2, §5.3).

use super::*;

use tresse_wire::{Cause, Causes};

/// The causes in an answer, by correlation id.
fn failures(flight: Option<&Flight>) -> Vec<(u32, Cause<'_>)> {
    let Some(flight) = flight else { panic!("no answer") };
    let failures = answer_of(flight).1.into_iter().filter_map(|param| match param {
        Param::ErrorIndication { correlation, causes } => {
            causes.iter().flatten().next().map(|c| (correlation, c))
        }
        _ => None,
    });
    failures.collect()
}

fn add(correlation: u32, address: IpAddr) -> Param<'static> {
    Param::AddAddress { correlation, address }
}

fn delete(correlation: u32, address: IpAddr) -> Param<'static> {
    Param::DeleteAddress { correlation, address }
}

fn bytes_of(param: Param<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    param.write(&mut bytes).expect("short");
    bytes
}

const NOBODY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

fn remotes(pair: &mut Pair) -> Vec<IpAddr> {
    let paths = stats(pair)[1].clone();
    let living = paths.iter().filter(|path| path.state != PathState::Removed);
    let mut remotes: Vec<IpAddr> = living.map(|path| path.remote).collect();
    remotes.sort_unstable();
    remotes.dedup();
    remotes
}

#[test]
fn silence_says_that_all_went_well() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let answer = ask(&mut pair, 0, serial, &[add(1, address(1, 5)), delete(2, address(1, 1))]);
    assert_eq!(answer.map(answer_of), Some((serial, vec![])));
    assert_eq!(remotes(&mut pair), [address(1, 0), address(1, 5)]);
    assert_eq!(heard(&pair), [(address(1, 5), AddressChange::Add), (address(1, 1), AddressChange::Remove)]);
}

#[test]
fn the_last_address_of_the_peer_stays() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let request = delete(9, address(1, 0));
    ask(&mut pair, 1, serial, &[delete(8, address(1, 0))]).expect("an answer");
    let last = delete(9, address(1, 1));
    let answer = ask(&mut pair, 1, serial.wrapping_add(1), &[last]).cloned();
    assert_eq!(failures(answer.as_ref()), [(9, Cause::DeleteLastAddress(&bytes_of(last)))], "before 0xA2");
    assert_ne!(request, last);
    assert_eq!(remotes(&mut pair), [address(1, 1)]);
}

#[test]
fn the_address_that_asks_cannot_be_removed() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let request = delete(9, address(1, 1));
    let answer = ask(&mut pair, 1, serial, &[request]).cloned();
    assert_eq!(failures(answer.as_ref()), [(9, Cause::DeleteSourceAddress(&bytes_of(request)))]);
    assert_eq!(remotes(&mut pair).len(), 2);
    assert!(heard(&pair).is_empty());
}

#[test]
fn what_is_done_already_is_done() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let answer = ask(&mut pair, 0, serial, &[add(1, address(1, 1)), delete(2, address(1, 9))]);
    assert_eq!(answer.map(answer_of), Some((serial, vec![])));
    assert!(heard(&pair).is_empty());
}

#[test]
fn an_address_of_zeros_means_the_source_of_the_packet() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    // From an address that the server does not know; the chunk says which association it is about.
    let answer = ask(&mut pair, 6, serial, &[add(1, NOBODY)]);
    assert_eq!(
        answer.map(|flight| flight.transmit.remote),
        Some(address(1, 6)),
        "answered to where it came from"
    );
    assert_eq!(remotes(&mut pair), [address(1, 0), address(1, 1), address(1, 6)]);
    let prefer = Param::SetPrimary { correlation: 2, address: NOBODY };
    ask(&mut pair, 1, serial.wrapping_add(1), &[prefer]).expect("an answer");
    assert!(stats(&mut pair)[1][1].primary);
    ask(&mut pair, 6, serial.wrapping_add(2), &[delete(3, NOBODY)]).expect("an answer");
    assert_eq!(remotes(&mut pair), [address(1, 6)], "all others");
}

#[test]
fn addresses_that_no_host_has_are_refused() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let multicast: IpAddr = "224.0.0.9".parse().expect("an address");
    let other_family: IpAddr = "fd00::9".parse().expect("an address");
    let strange = Param::SetPrimary { correlation: 3, address: address(1, 9) };
    let params = [add(1, multicast), add(2, other_family), strange];
    let answer = ask(&mut pair, 0, serial, &params).cloned();
    let expected: Vec<Vec<u8>> = params.map(|param| bytes_of(param)[8..].to_vec()).to_vec();
    assert_eq!(
        failures(answer.as_ref()),
        [
            (1, Cause::UnresolvableAddress(&expected[0])),
            (2, Cause::UnresolvableAddress(&expected[1])),
            (3, Cause::UnresolvableAddress(&expected[2])),
        ]
    );
    assert!(heard(&pair).is_empty());
}

#[test]
fn without_room_for_a_path_nothing_more_is_changed() {
    let two = AssociationConfig::default().with(|c| c.max_paths = 2);
    let mut pair = Pair::unlike(2, &AssociationConfig::default(), &two, 1).settled();
    let serial = first_serial(&pair);
    let prefer = Param::SetPrimary { correlation: 3, address: address(1, 1) };
    let (first, second) = (add(1, address(1, 5)), delete(2, address(1, 1)));
    let answer = ask(&mut pair, 0, serial, &[first, second, prefer]).cloned().expect("an answer");
    assert_eq!(
        answer_of(&answer).1,
        [
            Param::ErrorIndication {
                correlation: 1,
                causes: Causes::Wire(&cause_bytes(&Cause::ResourceShortage(&bytes_of(first))))
            },
            Param::ErrorIndication {
                correlation: 2,
                causes: Causes::Wire(&cause_bytes(&Cause::ResourceShortage(&bytes_of(second))))
            },
            Param::SuccessIndication { correlation: 3 },
        ]
    );
    assert_eq!(remotes(&mut pair).len(), 2);
}

/// A cause as it stands in an answer.
fn cause_bytes(cause: &Cause<'_>) -> Vec<u8> {
    let mut bytes = bytes_of(Param::ErrorIndication { correlation: 0, causes: Causes::Values(&[*cause]) });
    bytes.drain(..8);
    bytes
}

#[test]
fn requests_are_done_once_and_in_their_order() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    assert!(ask(&mut pair, 0, serial.wrapping_add(1), &[add(1, address(1, 5))]).is_none(), "too early");
    assert!(ask(&mut pair, 0, serial.wrapping_sub(1), &[add(1, address(1, 5))]).is_none(), "too late");
    assert!(heard(&pair).is_empty());
    let delete_source = [delete(1, address(1, 0))];
    let answer = ask(&mut pair, 0, serial, &delete_source).cloned().expect("an answer");
    let again = ask(&mut pair, 1, serial, &delete_source).cloned().expect("an answer");
    assert_eq!(answer_of(&answer), answer_of(&again), "as before, although it comes from elsewhere now");
    assert_eq!(again.path(), 1, "to where it came from");
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.stray_asconf, 2);
}

#[test]
fn several_requests_of_one_packet_are_answered_in_their_order() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let (one, two) = ([add(1, address(1, 5))], [delete(2, address(1, 5))]);
    let chunk = |serial, params| Chunk::Asconf(Asconf { serial, address: address(1, 0), params });
    let packet = pair.authenticated_packet(
        true,
        &[chunk(serial, Params::Values(&one)), chunk(serial.wrapping_add(1), Params::Values(&two))],
    );
    let before = pair.wire.len();
    pair.inject(true, 0, packet);
    let answers: Vec<u32> = pair
        .sent_since(before)
        .iter()
        .flat_map(Flight::chunks)
        .filter_map(|chunk| match chunk {
            Chunk::AsconfAck(ack) => Some(ack.serial),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [serial, serial.wrapping_add(1)]);
    assert_eq!(remotes(&mut pair), [address(1, 0), address(1, 1)]);
}

#[test]
fn what_is_not_understood_is_said_to_be_so() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    // Type 0xC0F0: skipped, and reported (RFC 9260 §3.2.1).
    let unknown: [u8; 12] = [0xc0, 0xf0, 0, 12, 0, 0, 0, 7, 1, 2, 3, 4];
    let chunk = Chunk::Asconf(Asconf { serial, address: address(1, 0), params: Params::Wire(&unknown) });
    let packet = pair.authenticated_packet(true, &[chunk]);
    let before = pair.wire.len();
    pair.inject(true, 0, packet);
    let answer = pair.sent_since(before).iter().find(|flight| flight.carries(ChunkKind::ASCONF_ACK));
    assert_eq!(failures(answer), [(7, Cause::UnrecognisedParameters(&unknown))]);
}

#[test]
fn a_request_of_many_parts_gets_an_answer_that_fits_a_packet() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let params: Vec<Param<'_>> = (0..2000).map(|id| delete(id, address(1, 0))).collect();
    let answer = ask(&mut pair, 0, serial, &params).cloned().expect("an answer");
    assert!(answer.bytes.len() <= 1480);
    assert!(failures(Some(&answer)).len() > 20);
    assert!(pair.server().is_established());
}

#[test]
fn a_stranger_without_a_request_is_a_stranger() {
    let mut pair = pair(2);
    let now = pair.now;
    let before = pair.server().stats(now).expect("open").discards;
    let heartbeat = Chunk::Heartbeat(tresse_wire::Heartbeat { body: &[0, 1, 0, 8, 1, 2, 3, 4] });
    let packet = pair.packet(true, &[heartbeat]);
    pair.inject(true, 6, packet);
    let lost = Asconf { serial: first_serial(&pair), address: address(1, 9), params: Params::Values(&[]) };
    let packet = pair.authenticated_packet(true, &[Chunk::Asconf(lost)]);
    pair.inject(true, 6, packet);
    assert_eq!(pair.server.endpoint.discards().out_of_the_blue, 2);
    assert_eq!(pair.server().stats(now).expect("open").discards, before);
    assert!(!pair.wire.iter().any(|flight| flight.path() == 6), "no answer");
}
