//! The state machine of stream reconfiguration, without an association.

use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Param, Params, StreamId, Tsn};

use super::grant::SequenceStatus;
use super::requests::{StrayResponse, Timeout};
use super::{
    Origin, PeerRequests, Progress, Reconfig, Request, Requested, Response, Silence, encode, read, result,
};
use crate::interface::reconfiguration::{Reconfiguration, ReconfigurationOutcome, Streams};

const RTO: Duration = Duration::from_secs(1);
const START: Instant = Instant::ZERO;

fn progress(drained: bool, highest: u64, cumulative: u64) -> Progress {
    Progress { drained, highest, cumulative }
}

fn one(stream: u16) -> Streams {
    Streams::from(StreamId(stream))
}

/// Returns a state with requests of these kinds in flight, numbered from `next` on, on path 3.
fn asking(next: u32, wanted: &[Reconfiguration]) -> Reconfig {
    let mut reconfig = Reconfig::new(next, 70);
    reconfig.own.begin(wanted.to_vec(), Origin::Application);
    assert!(reconfig.own.may_be_sent(progress(true, 9, 9)));
    reconfig.own.number(Tsn(1000), 9, reconfig.peer.last_sequence());
    reconfig.own.on_sent(START, PathId(3), RTO, RTO * 3);
    reconfig
}

fn body_of(reconfig: &Reconfig) -> Vec<Param<'_>> {
    let params: Params<'_> = Params::Wire(reconfig.own.body().expect("in flight"));
    params.iter().map(|param| param.expect("a sound parameter")).collect()
}

#[test]
fn only_what_may_stand_together_is_read() {
    let outgoing =
        Param::OutgoingReset { request: 1, response: 2, last_tsn: Tsn(3), streams: List::Values(&[4, 5, 4]) };
    let incoming = Param::IncomingReset { request: 2, streams: List::Values(&[]) };
    let association = Param::SsnTsnReset { request: 1 };
    let response = Param::ReconfigResponse { response: 1, result: 1, next_tsns: None };
    let add_outgoing = Param::AddOutgoingStreams { request: 1, count: 7 };
    let add_incoming = Param::AddIncomingStreams { request: 2, count: 8 };
    let all = [outgoing, incoming, association, response, add_outgoing, add_incoming];
    let legal = [(0, 1), (3, 0), (3, 3), (4, 5)];
    for (first, one) in all.iter().enumerate() {
        assert_eq!(read(&Params::Values(&[*one])).map(|read| read.len()), Some(1));
        for (second, other) in all.iter().enumerate() {
            let expected = legal.contains(&(first, second)) || legal.contains(&(second, first));
            let read = read(&Params::Values(&[*one, *other]));
            assert_eq!(read.is_some(), expected, "{one:?} {other:?}");
        }
    }
    assert_eq!(read(&Params::Values(&[])), None);
    assert_eq!(read(&Params::Values(&[response; 3])), None);
    assert_eq!(read(&Params::Values(&[Param::EcnCapable])), None, "not of this chunk");
    assert_eq!(read(&Params::Wire(&[0, 13, 0, 8, 1, 2, 3, 4])), None, "cut off");
    let streams = Streams::These([StreamId(4), StreamId(5)].into());
    assert_eq!(
        read(&Params::Values(&[outgoing])),
        Some(vec![Requested::Request {
            sequence: 1,
            request: Request::ResetOutgoing { response: 2, last_tsn: Tsn(3), streams },
        }])
    );
    let Some([Requested::Request { request, .. }]) =
        read(&Params::Values(&[incoming])).as_deref().map(|read| {
            let [only] = read else { panic!("one parameter") };
            [only.clone()]
        })
    else {
        panic!("a request")
    };
    assert_eq!(request, Request::ResetIncoming { streams: Streams::All }, "none named: all are meant");
}

#[test]
fn numbers_wrap() {
    let mut reconfig =
        asking(u32::MAX, &[Reconfiguration::ResetOutbound(one(1)), Reconfiguration::ResetInbound(one(1))]);
    assert!(matches!(
        body_of(&reconfig)[..],
        [
            Param::OutgoingReset { request: u32::MAX, response: 69, last_tsn: Tsn(1000), .. },
            Param::IncomingReset { request: 0, .. }
        ]
    ));
    for sequence in [u32::MAX, 0] {
        let answered = reconfig.own.on_response(START, RTO, sequence, result::PERFORMED);
        assert!(matches!(answered, Ok(Some(_))));
    }
    assert!(!reconfig.own.is_busy());

    let mut peer = PeerRequests::new(u32::MAX);
    for sequence in [u32::MAX, 0, 1] {
        assert_eq!(peer.status(sequence), SequenceStatus::Open);
        peer.give(Response::new(sequence, result::PERFORMED));
        assert_eq!(peer.last_sequence(), sequence);
        assert_eq!(
            peer.status(sequence),
            SequenceStatus::Answered(Response::new(sequence, result::PERFORMED))
        );
    }
    assert_eq!(peer.status(u32::MAX), SequenceStatus::Wrong, "older than the last two");
    assert_eq!(peer.status(3), SequenceStatus::Wrong, "one is missing");
}

#[test]
fn a_request_goes_again_until_it_is_answered() {
    let mut reconfig = asking(5, &[Reconfiguration::AddOutbound(4)]);
    let before = reconfig.own.body().map(<[u8]>::to_vec);
    assert_eq!(reconfig.own.deadline(), Some(START + RTO));
    assert_eq!(reconfig.own.pop_due(START), None);
    // The timeout doubles up to its maximum.
    let mut now = START;
    for (timeouts, wait) in [(1, RTO), (2, RTO * 2), (3, RTO * 3), (4, RTO * 3)] {
        now += wait;
        assert_eq!(reconfig.own.pop_due(now), Some(Timeout { path: PathId(3), timeouts }));
        assert_eq!(reconfig.own.pop_due(now), None, "until it was sent again");
        reconfig.own.on_sent(now, PathId(3), RTO, RTO * 3);
    }
    assert_eq!(reconfig.own.body().map(<[u8]>::to_vec), before, "the same chunk");
    assert_eq!(
        reconfig.own.on_response(START, RTO, 6, result::PERFORMED),
        Err(StrayResponse),
        "of another number"
    );
    assert!(matches!(reconfig.own.on_response(START, RTO, 5, result::PERFORMED), Ok(Some(_))));
    assert_eq!(
        reconfig.own.on_response(START, RTO, 5, result::PERFORMED),
        Err(StrayResponse),
        "a second time"
    );
    assert_eq!((reconfig.own.deadline(), reconfig.own.is_busy()), (None, false));
}

#[test]
fn a_peer_that_is_busy_with_it_has_not_failed() {
    let mut reconfig = asking(5, &[Reconfiguration::ResetOutbound(Streams::All)]);
    let later = START + Duration::from_millis(10);
    assert_eq!(reconfig.own.on_response(later, RTO, 5, result::IN_PROGRESS), Ok(None));
    assert_eq!(reconfig.own.deadline(), Some(later + RTO), "the timer starts over");
    assert!(!reconfig.own.should_remind(8), "it still misses something");
    assert!(reconfig.own.should_remind(9));
    assert!(!reconfig.own.should_remind(9), "once");
    assert_eq!(reconfig.own.pop_due(later + RTO), Some(Timeout { path: PathId(3), timeouts: 0 }));
    reconfig.own.on_sent(later + RTO, PathId(3), RTO, RTO * 3);
    assert_eq!(reconfig.own.pop_due(later + RTO * 2), Some(Timeout { path: PathId(3), timeouts: 1 }));
}

#[test]
fn every_result_has_its_outcome() {
    use ReconfigurationOutcome::{Denied, Failed, Performed};
    for code in (0..9).filter(|&code| code != result::IN_PROGRESS) {
        let mut reconfig = asking(5, &[Reconfiguration::AddOutbound(4)]);
        let answered = reconfig.own.on_response(START, RTO, 5, code).expect("an answer").expect("for good");
        match code {
            result::NOTHING_TO_DO | result::PERFORMED => assert_eq!(answered.outcome, Performed),
            result::DENIED => assert_eq!(answered.outcome, Denied),
            _ => assert!(matches!(answered.outcome, Failed(_)), "{code}"),
        }
        assert!(!reconfig.own.is_busy());
    }
}

#[test]
fn streams_are_silent_when_what_was_sent_before_is_acknowledged() {
    let mut silence = Silence::default();
    assert!(!silence.is_reached(progress(false, 20, 20)), "something is still queued");
    assert!(!silence.is_reached(progress(true, 25, 20)));
    assert!(!silence.is_reached(progress(true, 40, 24)), "what other streams sent since is not waited for");
    assert!(silence.is_reached(progress(true, 40, 25)));
    assert!(Silence::default().is_reached(progress(true, 0, 0)), "nothing was ever sent");
}

#[test]
fn an_answer_may_come_as_a_request_of_the_peer() {
    let mut reconfig = asking(5, &[Reconfiguration::ResetInbound(one(1))]);
    assert_eq!(reconfig.own.on_peer_reset(4), None, "that answers another request");
    assert!(reconfig.own.on_peer_reset(5).is_some());
    assert_eq!(reconfig.own.on_peer_reset(5), None);
    assert!(!reconfig.own.is_busy());

    // Streams that the peer adds, with and without a response before.
    let mut reconfig = asking(5, &[Reconfiguration::AddInbound(7)]);
    assert_eq!(reconfig.own.on_peer_added(3), (false, None), "its own idea");
    let (solicited, answered) = reconfig.own.on_peer_added(7);
    assert!(solicited && answered.is_some() && !reconfig.own.is_busy());
    let mut reconfig = asking(5, &[Reconfiguration::AddInbound(7)]);
    assert!(matches!(reconfig.own.on_response(START, RTO, 5, result::PERFORMED), Ok(Some(_))));
    assert_eq!(reconfig.own.on_peer_added(7), (true, None));
    assert_eq!(reconfig.own.on_peer_added(7), (false, None), "once");
}

#[test]
fn the_longest_lists_fit_the_smallest_packet() {
    // 576 bytes without the headers of IPv6, UDP, SCTP and the chunk.
    const ROOM: usize = 576 - 40 - 8 - 12 - 4;
    let streams = |count| Streams::of_numbers(0..count);
    let named = streams(super::MOST_NAMED as u16);
    let both =
        asking(5, &[Reconfiguration::ResetOutbound(named.clone()), Reconfiguration::ResetInbound(named)]);
    assert!(both.own.body().expect("in flight").len() <= ROOM);
    let answer = asking(5, &[Reconfiguration::ResetOutbound(streams(super::MOST_ANSWERED as u16))]);
    assert!(answer.own.body().expect("in flight").len() <= ROOM);
    let answers = [Response { sequence: 1, result: 1, next_tsns: Some((Tsn(1), Tsn(2))) }.param(); 2];
    assert!(encode(&answers).len() <= ROOM);
}
