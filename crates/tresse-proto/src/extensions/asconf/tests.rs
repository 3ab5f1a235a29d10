//! The state machine of dynamic addresses, without an association.

use std::net::IpAddr;
use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::{Cause, Causes, Param, Params};

use super::grant::{Response, Responses, SerialStatus};
use super::*;
use crate::interface::addresses::{AddressChange, AddressOutcome};

const RTO: Duration = Duration::from_secs(1);
const START: Instant = Instant::ZERO;

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn request(change: AddressChange, last: u8) -> AddressRequest {
    AddressRequest { change, address: address(last) }
}

/// Returns requests in flight in one chunk with number 70, on path 3.
fn asking(wanted: &[AddressRequest]) -> Requests {
    let mut requests = Requests::new(70);
    wanted.iter().for_each(|&request| requests.push(request));
    assert!(requests.begin(address(1)));
    requests.on_sent(START, PathId(3), RTO);
    requests
}

fn outcomes(requests: &mut Requests, serial: u32, params: &[Param<'_>]) -> Vec<AddressOutcome> {
    let answered = requests.on_ack(serial, &Params::Values(params)).expect("an answer to what was asked");
    answered.into_iter().map(|(_, outcome)| outcome).collect()
}

fn failed<'a>(correlation: u32, causes: &'a [Cause<'a>]) -> Param<'a> {
    Param::ErrorIndication { correlation, causes: Causes::Values(causes) }
}

#[test]
fn one_chunk_is_in_flight_and_the_rest_waits() {
    let mut requests = asking(&[request(AddressChange::Add, 5)]);
    requests.push(request(AddressChange::Remove, 2));
    requests.push(request(AddressChange::Prefer, 5));
    assert!(!requests.begin(address(1)), "one at a time");
    assert_eq!(requests.chunk().map(|(serial, lookup, _)| (serial, lookup)), Some((70, address(1))));
    assert_eq!(outcomes(&mut requests, 70, &[]), [AddressOutcome::Done], "silence is success");
    assert!(requests.begin(address(1)));
    let (serial, _, body) = requests.chunk().expect("in flight");
    let params: Vec<_> = Params::Wire(body).iter().flatten().collect();
    assert_eq!(serial, 71);
    assert_eq!(
        params,
        [
            Param::DeleteAddress { correlation: 1, address: address(2) },
            Param::SetPrimary { correlation: 2, address: address(5) }
        ],
        "what waited travels together, and correlation ids go on"
    );
}

#[test]
fn serial_numbers_wrap() {
    let mut requests = Requests::new(u32::MAX);
    requests.push(request(AddressChange::Add, 5));
    assert!(requests.begin(address(1)));
    assert_eq!(outcomes(&mut requests, u32::MAX, &[]), [AddressOutcome::Done]);
    requests.push(request(AddressChange::Add, 6));
    assert!(requests.begin(address(1)));
    assert_eq!(requests.on_ack(u32::MAX, &Params::Values(&[])), Err(StrayAck::Old));
    assert_eq!(outcomes(&mut requests, 0, &[]), [AddressOutcome::Done]);

    let mut answers = PeerRequests::new(u32::MAX);
    assert_eq!(answers.status(u32::MAX, true), SerialStatus::New);
    answers.give(vec![1]);
    assert_eq!(answers.status(u32::MAX, true), SerialStatus::Repeated(Some(vec![1])));
    assert_eq!(answers.status(0, true), SerialStatus::New);
}

#[test]
fn the_timer_runs_until_the_answer() {
    let mut requests = asking(&[request(AddressChange::Add, 5)]);
    let before = requests.chunk().map(|(serial, _, body)| (serial, body.to_vec()));
    assert_eq!(requests.deadline(), Some(START + RTO));
    assert_eq!(requests.pop_due(START + RTO / 2), None);
    assert_eq!(requests.pop_due(START + RTO), Some(PathId(3)));
    assert_eq!(requests.pop_due(START + RTO * 9), None, "once");
    requests.on_sent(START + RTO, PathId(1), RTO * 2);
    assert_eq!(requests.chunk().map(|(serial, _, body)| (serial, body.to_vec())), before, "unchanged");
    assert_eq!((requests.path(), requests.deadline()), (Some(PathId(1)), Some(START + RTO * 3)));
    outcomes(&mut requests, 70, &[]);
    assert_eq!(requests.deadline(), None);
}

#[test]
fn what_is_not_spoken_of_failed_if_something_before_it_did() {
    let wanted = [AddressChange::Add; 4].map(|change| request(change, 5));
    let last = [Cause::DeleteLastAddress(&[])];
    let mut requests = asking(&wanted);
    assert_eq!(
        outcomes(&mut requests, 70, &[failed(1, &last), Param::SuccessIndication { correlation: 3 }]),
        [AddressOutcome::Done, AddressOutcome::LastAddress, AddressOutcome::Refused, AddressOutcome::Done]
    );
    let mut requests = asking(&wanted);
    let strange = [Param::SuccessIndication { correlation: 99 }, Param::EcnCapable];
    assert_eq!(outcomes(&mut requests, 70, &strange), [AddressOutcome::Done; 4], "nobody asked that");
}

#[test]
fn causes_say_what_is_wrong() {
    let outcome = |cause| AddressOutcome::of_causes(&Causes::Values(&[cause]));
    assert_eq!(outcome(Cause::DeleteLastAddress(&[])), AddressOutcome::LastAddress);
    assert_eq!(outcome(Cause::DeleteSourceAddress(&[])), AddressOutcome::SourceAddress);
    assert_eq!(outcome(Cause::ResourceShortage(&[])), AddressOutcome::NoResources);
    assert_eq!(outcome(Cause::OutOfResource), AddressOutcome::NoResources);
    assert_eq!(outcome(Cause::NoAuthorisation(&[])), AddressOutcome::NotAuthorised);
    assert_eq!(outcome(Cause::UnrecognisedParameters(&[])), AddressOutcome::NotSupported);
    assert_eq!(outcome(Cause::UnresolvableAddress(&[])), AddressOutcome::Refused);
    assert_eq!(AddressOutcome::of_causes(&Causes::Values(&[])), AddressOutcome::Refused);
}

#[test]
fn a_kind_of_request_that_the_peer_does_not_understand_is_not_made_again() {
    let mut requests = asking(&[request(AddressChange::Prefer, 5)]);
    outcomes(&mut requests, 70, &[failed(0, &[Cause::UnrecognisedParameters(&[])])]);
    assert!(!requests.understands(AddressChange::Prefer));
    assert!(requests.understands(AddressChange::Add) && requests.understands(AddressChange::Remove));
    requests.push(request(AddressChange::Add, 6));
    requests.begin(address(1));
    requests.push(request(AddressChange::Add, 7));
    let given_up = [6, 7].map(|last| request(AddressChange::Add, last));
    assert_eq!(requests.on_unsupported(), given_up, "the chunk itself is not understood");
    assert!(!requests.understands(AddressChange::Add));
    assert_eq!((requests.deadline(), requests.open().count()), (None, 0));
}

#[test]
fn an_answer_to_a_request_that_was_never_made_is_illegal() {
    let mut requests = Requests::new(70);
    let none = Params::Values(&[]);
    assert_eq!(requests.on_ack(69, &none), Err(StrayAck::Old));
    assert_eq!(requests.on_ack(70, &none), Err(StrayAck::Illegal), "the next number");
    assert_eq!(requests.on_ack(71, &none), Err(StrayAck::Illegal));
    let mut requests = asking(&[request(AddressChange::Add, 5)]);
    assert_eq!(requests.on_ack(69, &none), Err(StrayAck::Old));
    assert_eq!(requests.on_ack(71, &none), Err(StrayAck::Illegal));
    assert_eq!(outcomes(&mut requests, 70, &[]), [AddressOutcome::Done], "still in flight");
}

#[test]
fn requests_of_one_chunk_are_bounded() {
    let mut requests = Requests::new(70);
    let mut count = 0;
    while requests.has_room() {
        requests.push(request(AddressChange::Add, 5));
        count += 1;
    }
    assert_eq!(count, 64);
    assert!(requests.begin(address(1)));
    assert_eq!(requests.in_flight().len(), 15);
}

#[test]
fn answers_are_kept_until_the_peer_has_them() {
    let mut answers = PeerRequests::new(9);
    assert_eq!(answers.status(8, true), SerialStatus::Repeated(None), "never answered, or long ago");
    assert_eq!(answers.status(10, true), SerialStatus::Stray);
    for (serial, first) in [(9, true), (10, false), (11, false)] {
        assert_eq!(answers.status(serial, first), SerialStatus::New);
        answers.give(vec![serial as u8]);
    }
    for serial in 9..12 {
        assert_eq!(answers.status(serial, true), SerialStatus::Repeated(Some(vec![serial as u8])));
    }
    assert_eq!(
        answers.status(12, true),
        SerialStatus::New,
        "first in its packet: what was before has arrived"
    );
    answers.give(vec![12]);
    assert_eq!(answers.status(11, true), SerialStatus::Repeated(None));
    for serial in 13..40 {
        assert_eq!(answers.status(serial, false), SerialStatus::New);
        answers.give(vec![0; 4]);
    }
    assert_eq!(answers.status(31, true), SerialStatus::Repeated(None), "no more than a packet's are kept");
    assert!(matches!(answers.status(32, true), SerialStatus::Repeated(Some(_))));
}

#[test]
fn success_is_spoken_of_only_behind_a_failure() {
    let read = |responses: Responses| -> Vec<(u32, bool)> {
        let body = responses.into_body();
        let params: Vec<_> = Params::Wire(&body).iter().flatten().collect();
        let said = |param: &Param<'_>| match param {
            Param::SuccessIndication { correlation } => (*correlation, true),
            Param::ErrorIndication { correlation, .. } => (*correlation, false),
            other => panic!("{other:?}"),
        };
        params.iter().map(said).collect()
    };
    let mut responses = Responses::new(500);
    responses.push(1, Response::Done);
    responses.push(2, Response::Done);
    assert_eq!(read(responses), []);
    let mut responses = Responses::new(500);
    responses.push(1, Response::Done);
    responses.push(2, Response::Failed(Cause::DeleteSourceAddress(&[0; 16])));
    responses.push(3, Response::Done);
    assert!(!responses.is_exhausted());
    responses.push(4, Response::Failed(Cause::ResourceShortage(&[0; 16])));
    assert!(responses.is_exhausted());
    assert_eq!(read(responses), [(2, false), (3, true), (4, false)]);
}

/// RFC 9260 §3.2: padding between parameters, but none behind the last one.
#[test]
fn responses_are_padded_in_between() {
    let mut responses = Responses::new(500);
    let odd = Response::Failed(Cause::UnrecognisedParameters(&[0xc0, 0x37, 0, 5, 1]));
    responses.push(1, odd);
    responses.push(2, odd);
    let body = responses.into_body();
    assert_eq!(body.len(), 20 + 17);
    assert_eq!(Params::Wire(&body).iter().flatten().count(), 2);
}

#[test]
fn responses_stay_within_their_room() {
    let mut responses = Responses::new(200);
    let mut count = 0;
    while responses.has_room() {
        responses.push(count, Response::Failed(Cause::ResourceShortage(&[0; 28])));
        count += 1;
    }
    assert!(responses.into_body().len() <= 200);
    assert_eq!(count, 5);
}
