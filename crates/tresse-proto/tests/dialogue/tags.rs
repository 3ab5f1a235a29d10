//! Verification tags, and packets that belong to no association (RFC 9260 §8.4, §8.5).

use crate::play;

/// §8.5: under a tag that is not its own an association hears nothing.
#[test]
fn nothing_is_heard_under_a_wrong_tag() {
    play(
        "
        accepted
        < tag=0x1 DATA tsn=1
        < tag=P DATA tsn=1
        < tag=0 DATA tsn=1
        < tag=0x1 HEARTBEAT
        < tag=0x1 SHUTDOWN cum=0
        < tag=0x1 SHUTDOWN-ACK
        < tag=0x1 ABORT
        < tag=0x1 ABORT T
        nothing within 1 s
        state ESTABLISHED
        ",
    );
}

/// §8.5.1 B: ABORT counts under the own tag without the T bit, or under the peer's with it.
#[test]
fn an_abort_needs_the_right_tag_for_its_t_bit() {
    play("accepted\n< tag=E ABORT T\n< tag=P ABORT\nstate ESTABLISHED\n< tag=E ABORT\nstate CLOSED");
    play("accepted\n< tag=P ABORT T\nstate CLOSED\nnothing within 100 s");
}

/// §8.5.1 C: so does SHUTDOWN COMPLETE, and only when one is waited for.
#[test]
fn a_shutdown_complete_needs_the_right_tag_and_state() {
    play(
        "
        accepted
        < SHUTDOWN-COMPLETE
        < tag=P SHUTDOWN-COMPLETE T
        state ESTABLISHED
        < SHUTDOWN cum=0
        > SHUTDOWN-ACK
        < tag=P SHUTDOWN-COMPLETE
        < tag=E SHUTDOWN-COMPLETE T
        state SHUTDOWN-ACK-SENT
        < tag=P SHUTDOWN-COMPLETE T
        state CLOSED
        ",
    );
}

/// §8.5.1 E: a peer that still ends an association of the past is told that it is over; the set-up goes on.
#[test]
fn a_shutdown_ack_during_the_set_up_is_of_the_past() {
    play(
        "
        call connect
        > INIT
        < tag=0x123 SHUTDOWN-ACK
        > tag=0x123 SHUTDOWN-COMPLETE T
        state COOKIE-WAIT
        < INIT-ACK
        > COOKIE-ECHO
        < SHUTDOWN-ACK
        > tag=E SHUTDOWN-COMPLETE T
        < COOKIE-ACK
        state ESTABLISHED
        ",
    );
}

/// §8.5.1: what comes in COOKIE-WAIT and cannot be used is answered under its own tag, for the peer's is not known.
#[test]
fn an_init_ack_without_a_tag_is_answered_under_its_own() {
    play(
        "
        call connect
        > INIT
        < INIT-ACK itag=0
        > tag=E ABORT T causes=7
        state CLOSED
        ",
    );
}

/// §8.4: what belongs to nobody is answered so that its sender forgets; what might begin a loop is not.
#[test]
fn a_stranger_is_answered_by_what_it_brings() {
    play(
        "
        < tag=9 DATA
        > tag=9 ABORT T
        < tag=9 SACK
        > tag=9 ABORT T
        < tag=9 HEARTBEAT
        > tag=9 ABORT T
        < tag=9 SHUTDOWN
        > tag=9 ABORT T
        < tag=9 ERROR
        > tag=9 ABORT T
        < tag=9 SHUTDOWN-ACK
        > tag=9 SHUTDOWN-COMPLETE T
        < tag=9 ABORT
        < tag=9 ABORT T
        < tag=9 DATA | ABORT
        < tag=9 SHUTDOWN-COMPLETE
        < tag=9 COOKIE-ACK
        < tag=9 ERROR stale=5
        < tag=9 INIT-ACK
        > tag=9 ABORT T
        nothing within 1 s
        ",
    );
}

/// §5.1, §8.4: where nobody listens an INIT is refused, under its own tag and so without the T bit.
#[test]
fn an_init_that_nobody_waits_for_is_refused_under_its_tag() {
    play("endpoint listen = false\n< INIT itag=0x77\n> tag=0x77 ABORT causes=4");
}

/// §6.10, §8.5.1 A: an INIT travels alone and under tag 0.
#[test]
fn an_init_that_is_not_alone_or_has_a_tag_is_dropped() {
    play(
        "
        < tag=9 INIT
        < INIT | DATA tsn=1
        nothing within 1 s
        discards bad_init = 2
        ",
    );
}
