//! The graceful end (RFC 9260 §9.2) and the other one (§9.1).

use crate::play;

/// §9.2: SHUTDOWN says what has arrived, goes again as T2 wants, and ends with the third packet.
#[test]
fn a_shutdown_is_repeated_until_it_is_answered() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        call shutdown
        > SHUTDOWN cum=1
        > SHUTDOWN cum=1 after 1 s
        > SHUTDOWN cum=1 after 2 s
        < SHUTDOWN-ACK
        > SHUTDOWN-COMPLETE
        event Closed(Graceful)
        nothing within 100 s
        ",
    );
}

/// §9.2: SHUTDOWN waits for the acknowledgement of everything; nothing new is taken from the application.
#[test]
fn what_is_queued_is_delivered_before_the_shutdown() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        call shutdown
        state SHUTDOWN-PENDING
        call send refused
        < DATA tsn=1
        > SACK cum=1
        < SACK cum=1
        > SHUTDOWN cum=1
        state SHUTDOWN-SENT
        call send refused
        ",
    );
}

/// RFC 7053 §4.2: the last DATA before a SHUTDOWN asks for its report at once.
#[test]
fn the_last_data_before_a_shutdown_hurries_its_report() {
    play(
        "
        accepted
        call send len=4356
        > DATA tsn=1 flags=B
        > DATA tsn=2
        > DATA tsn=3 flags=E
        call send len=100
        call shutdown
        < SACK cum=1
        > DATA tsn=4 flags=IBE
        < SACK cum=4
        > SHUTDOWN
        ",
    );
}

/// §9.2: after a SHUTDOWN the peer may still send what it had: each packet is answered with SHUTDOWN and a report.
#[test]
fn data_after_the_shutdown_is_answered_with_another() {
    play(
        "
        accepted
        call shutdown
        > SHUTDOWN cum=0
        < DATA tsn=1
        > SHUTDOWN cum=1 | SACK cum=1
        < DATA tsn=3
        > SHUTDOWN cum=1 | SACK cum=1 gaps=3-3
        read ssn=0
        > SHUTDOWN cum=1 after 1 s
        ",
    );
}

/// §9.2: any packet of the peer clears the count of repetitions and starts T2 anew: it may have much to send still.
#[test]
fn a_peer_that_is_heard_is_given_time() {
    play(
        "
        with association_max_retrans = 2
        accepted
        call shutdown
        > SHUTDOWN
        > SHUTDOWN after 1 s
        < HEARTBEAT
        > HEARTBEAT-ACK
        > SHUTDOWN after 1 s
        > SHUTDOWN after 2 s
        < HEARTBEAT
        > HEARTBEAT-ACK
        > SHUTDOWN after 1 s
        > SHUTDOWN after 2 s
        > ABORT after 4 s
        event Closed(PathsLost)
        ",
    );
}

/// §9.2: T5 is of who sends SHUTDOWN, and begins with that. Before, what is queued takes as long as it needs. At its end an
/// ABORT leaves.
#[test]
fn the_guard_begins_with_shutdown_and_ends_with_an_abort() {
    play(
        "
        with rto_max = 4s
        accepted
        call send
        > DATA tsn=1
        call shutdown
        pass 25 s
        state SHUTDOWN-PENDING
        < SACK cum=1
        > SHUTDOWN
        > SHUTDOWN after 4 s
        < HEARTBEAT
        > HEARTBEAT-ACK
        > SHUTDOWN after 4 s
        < HEARTBEAT
        > HEARTBEAT-ACK
        > SHUTDOWN after 4 s
        < HEARTBEAT
        > HEARTBEAT-ACK
        > SHUTDOWN after 4 s
        < HEARTBEAT
        > HEARTBEAT-ACK
        > ABORT after 4 s
        event Closed(ShutdownTimeout)
        nothing within 100 s
        ",
    );
}

/// §9.2: who is told to shut down has no guard: it sends what it has, as long as that takes.
#[test]
fn who_is_told_to_shut_down_has_no_guard() {
    play(
        "
        with rto_max = 4s
        accepted
        call send
        > DATA tsn=1
        < SHUTDOWN cum=0
        pass 25 s
        state SHUTDOWN-RECEIVED
        < SHUTDOWN cum=1
        > SHUTDOWN-ACK
        < SHUTDOWN-COMPLETE
        event Closed(Graceful)
        ",
    );
}

/// §9.2: the guard bounds the whole sequence, also where both sides began one.
#[test]
fn the_guard_goes_on_where_shutdowns_cross() {
    play(
        "
        with rto_max = 1s
        accepted
        call shutdown
        > SHUTDOWN
        > SHUTDOWN after 1 s
        < SHUTDOWN cum=0
        > SHUTDOWN-ACK
        > SHUTDOWN-ACK after 1 s
        > SHUTDOWN-ACK after 1 s
        > SHUTDOWN-ACK after 1 s
        > ABORT after 1 s
        state CLOSED
        ",
    );
}

/// §9.2: told to shut down, an endpoint sends what it has first, and takes nothing more.
#[test]
fn a_shutdown_of_the_peer_waits_for_what_is_queued() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        < SHUTDOWN cum=0
        event PeerShutdown
        state SHUTDOWN-RECEIVED
        call send refused
        > DATA tsn=1 after 1 s
        < SHUTDOWN cum=1
        > SHUTDOWN-ACK
        < SHUTDOWN-COMPLETE
        event Closed(Graceful)
        ",
    );
}

/// §9.2: both sides may shut down at once; §8.5.1 C: a COMPLETE that got lost is answered under the reflected tag.
#[test]
fn both_sides_may_shut_down_at_once() {
    play(
        "
        accepted
        call shutdown
        > SHUTDOWN
        < SHUTDOWN cum=0
        > SHUTDOWN-ACK
        < SHUTDOWN-ACK
        > SHUTDOWN-COMPLETE
        event Closed(Graceful)
        < SHUTDOWN-ACK
        > tag=E SHUTDOWN-COMPLETE T
        ",
    );
}

/// §9.2: SHUTDOWN ACK goes again until it is answered, and is repeated for a SHUTDOWN that comes again.
#[test]
fn a_shutdown_ack_is_repeated_until_it_is_answered() {
    play(
        "
        accepted
        < SHUTDOWN cum=0
        > SHUTDOWN-ACK
        > SHUTDOWN-ACK after 1 s
        < SHUTDOWN cum=0
        > SHUTDOWN-ACK
        < SHUTDOWN-COMPLETE
        state CLOSED
        nothing within 100 s
        ",
    );
}

/// §9.2: once it was sent, neither heartbeats nor anything else of the association's routine.
#[test]
fn no_heartbeats_are_sent_after_a_shutdown() {
    play(
        "
        with rto_max = 60s
        with association_max_retrans = 4
        with heartbeat_interval = 1s
        accepted
        call shutdown
        > SHUTDOWN
        > SHUTDOWN after 1 s
        > SHUTDOWN after 2 s
        > SHUTDOWN after 4 s
        > SHUTDOWN after 8 s
        > ABORT after 16 s
        state CLOSED
        nothing within 100 s
        ",
    );
}

/// §9.1: an ABORT ends it without a word more.
#[test]
fn an_abort_is_never_answered() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        call abort
        > ABORT causes=12
        state CLOSED
        nothing within 100 s
        ",
    );
    play("accepted\ncall send\n> DATA tsn=1\n< ABORT\nevent Closed(AbortedByPeer\nnothing within 100 s");
}
