//! Heartbeats, and when paths and associations are given up (RFC 9260 §8.1 to §8.3).

use crate::play;

/// §8.3: an idle path is probed after HB.interval and its RTO, half an RTO more or less.
#[test]
fn an_idle_path_is_probed_after_the_interval() {
    play(
        "
        accepted
        > HEARTBEAT after 30500 ms to 31500 ms
        < HEARTBEAT-ACK
        > HEARTBEAT after 30500 ms to 31500 ms
        < HEARTBEAT-ACK
        ",
    );
}

/// §8.3: a HEARTBEAT is answered with what was in it.
#[test]
fn a_heartbeat_is_answered_as_it_came() {
    play("accepted\n< HEARTBEAT info=hello\n> HEARTBEAT-ACK info=hello");
}

/// §5.4, §8.3: an answer that fits no HEARTBEAT proves nothing.
#[test]
fn a_made_up_answer_confirms_nothing() {
    play(
        "
        paths 2
        < INIT addresses=10.0.0.2,10.0.1.2
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        > @2 HEARTBEAT
        event Established
        < @2 HEARTBEAT-ACK info=xxxxxxxx
        discards stray_heartbeat_ack = 1
        < @2 HEARTBEAT-ACK
        event PathChanged { path: PathId(1), state: Active }
        ",
    );
}

/// §8.1, §8.2, §8.3: unanswered heartbeats count for the path and the association, answers take that back.
#[test]
fn an_answer_forgives_everything_before() {
    play(
        "
        with path_max_retrans = 1
        with association_max_retrans = 1
        with heartbeat_interval = 5s
        accepted
        > HEARTBEAT after 5500 ms to 6500 ms
        > HEARTBEAT after 6 s to 9 s
        < HEARTBEAT-ACK
        > HEARTBEAT after 5500 ms to 6500 ms
        > HEARTBEAT after 6 s to 9 s
        < HEARTBEAT-ACK
        state ESTABLISHED
        ",
    );
}

/// §8.2: a path is inactive when its errors exceed Path.Max.Retrans, and the application is told.
#[test]
fn a_path_turns_inactive_one_error_after_its_limit() {
    play(
        "
        with path_max_retrans = 2
        paths 2
        call connect
        > INIT
        < INIT-ACK addresses=10.0.0.2,10.0.1.2
        > COOKIE-ECHO
        < COOKIE-ACK
        call send
        > @1 DATA tsn=1
        > @2 DATA tsn=1 after 1 s
        < @2 SACK cum=1
        call send
        > @1 DATA tsn=2
        > @2 DATA tsn=2 after 2 s
        < @2 SACK cum=2
        call send
        > @1 DATA tsn=3
        > @2 DATA tsn=3 after 4 s
        event PathChanged { path: PathId(0), state: Inactive }
        < @2 SACK cum=3
        call send
        > @2 DATA tsn=4
        state ESTABLISHED
        ",
    );
}

/// §8.1: the association is over when errors in a row exceed Association.Max.Retrans. Should the peer be there after all, it
/// is told by an ABORT.
#[test]
fn the_association_ends_one_error_after_its_limit() {
    play(
        "
        with association_max_retrans = 2
        with path_max_retrans = 2
        accepted
        call send
        > DATA tsn=1
        > DATA tsn=1 after 1 s
        > DATA tsn=1 after 2 s
        state ESTABLISHED
        > ABORT after 4 s
        state CLOSED
        event Closed(PathsLost)
        nothing within 100 s
        ",
    );
}

/// §8.3: while data keeps a path busy it needs no probes.
#[test]
fn a_busy_path_is_not_probed() {
    play(
        "
        accepted
        pass 20 s
        call send
        > DATA tsn=1
        < SACK cum=1
        nothing within 25 s
        > HEARTBEAT within 7 s
        ",
    );
}
