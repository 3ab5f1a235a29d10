//! Retransmissions: of which chunks, when and on which path (RFC 9260 §6.3, §7.2.3, §7.2.4).

use crate::play;

/// §6.3.3 E2: each expiry doubles the timeout; §6.3.2 R2: when nothing is in flight it stops.
#[test]
fn the_timer_backs_off_and_stops_with_the_acknowledgement() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        > DATA tsn=1 after 1 s
        > DATA tsn=1 after 2 s
        > DATA tsn=1 after 4 s
        < SACK cum=1
        nothing within 15 s
        ",
    );
}

/// §6.3.1 C5 (Karn), §6.3.3: what was sent again measures nothing, so the timeout stays long until a fresh chunk is
/// acknowledged.
#[test]
fn back_off_ends_with_a_measurement_and_not_before() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        > DATA tsn=1 after 1 s
        < SACK cum=1
        call send
        > DATA tsn=2
        > DATA tsn=2 after 2 s
        < SACK cum=2
        call send
        > DATA tsn=3
        < SACK cum=3
        call send
        > DATA tsn=4
        > DATA tsn=4 after 1 s
        ",
    );
}

/// §6.3.3 E1, E3: what timed out is lost, one packet of it goes at once, the rest as acknowledgements allow.
#[test]
fn after_a_timeout_one_packet_goes_at_a_time() {
    play(
        "
        accepted
        call send len=4356
        > DATA tsn=1 len=1452
        > DATA tsn=2 len=1452
        > DATA tsn=3 len=1452
        > DATA tsn=1 after 1 s
        nothing within 100 ms
        < SACK cum=1
        > DATA tsn=2
        > DATA tsn=3
        < SACK cum=3
        nothing within 15 s
        ",
    );
}

/// §6.3.3 E3, §7.2.3: one packet means one packet, however small the chunks are; and so after every expiry, until
/// something is acknowledged.
#[test]
fn after_a_timeout_one_packet_of_tiny_messages_goes_at_a_time() {
    play(
        "
        with max_burst = 0
        accepted
        call send len=1 times=2000
        > DATA tsn=1-73
        > DATA tsn=74-146
        > DATA tsn=147-219
        > DATA tsn=220-292
        > DATA tsn=1-73 after 1 s
        nothing within 1999 ms
        > DATA tsn=1-73 after 1 ms
        nothing within 3999 ms
        > DATA tsn=1-73 after 1 ms
        nothing within 100 ms
        < SACK cum=73
        > DATA tsn=74-146
        > DATA tsn=147-219
        nothing within 100 ms
        < SACK cum=219
        > DATA tsn=220-292
        > DATA tsn=293-365
        > DATA tsn=366-438
        nothing within 100 ms
        ",
    );
}

/// The same with chunks of which more than one fit the window, but not a packet.
#[test]
fn after_a_timeout_no_second_packet_fills_the_window() {
    play(
        "
        accepted
        call send len=800
        > DATA tsn=1
        call send len=800
        > DATA tsn=2
        call send len=800
        > DATA tsn=3
        > DATA tsn=1 after 1 s
        nothing within 100 ms
        call send len=100
        nothing within 100 ms
        < SACK cum=1
        > DATA tsn=2
        > DATA tsn=3
        nothing within 100 ms
        ",
    );
}

/// §6.3.2 R1: the first chunk in flight starts the timer, those that follow it find it running.
#[test]
fn the_timer_starts_with_the_first_chunk_only() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        pass 600 ms
        call send
        > DATA tsn=2
        > DATA tsn=1 | DATA tsn=2 after 400 ms
        ",
    );
}

/// §6.3.2 R1 holds for retransmissions too: the one that finds the timer stopped starts it.
#[test]
fn a_retransmission_starts_a_timer_that_does_not_run() {
    play(
        "
        with initial_window = 14520B
        accepted
        call send len=1000
        > DATA tsn=1
        call send len=1000
        > DATA tsn=2
        call send len=1000
        > DATA tsn=3
        call send len=1000
        > DATA tsn=4
        pass 300 ms
        < SACK cum=0 gaps=2-2
        < SACK cum=0 gaps=2-3
        < SACK cum=0 gaps=2-4
        > DATA tsn=1
        > DATA tsn=1 after 1 s
        ",
    );
}

/// §6.3.2 R2: each path's timer stops when all that was sent there is acknowledged, whatever others wait for.
#[test]
fn a_path_with_nothing_in_flight_has_no_timer() {
    play(
        "
        with concurrent = true
        with timeout_retransmit_path = same
        paths 2
        call connect
        > INIT
        < INIT-ACK addresses=10.0.0.2,10.0.1.2
        > COOKIE-ECHO
        < COOKIE-ACK
        call send len=1452
        > @1 DATA tsn=1
        call send len=1452
        > @2 DATA tsn=2
        < @2 SACK cum=0 gaps=2-2
        > @1 DATA tsn=1 after 1 s
        < @1 SACK cum=2
        nothing within 15 s
        ",
    );
}

/// §6.3.2 R3: the acknowledgement of the earliest chunk restarts the timer, that of another does not.
#[test]
fn the_timer_follows_the_earliest_chunk() {
    play(
        "
        accepted
        call send len=500
        > DATA tsn=1
        pass 400 ms
        call send len=500
        > DATA tsn=2
        pass 400 ms
        < SACK cum=0 gaps=2-2
        > DATA tsn=1 after 200 ms
        ",
    );
    play(
        "
        accepted
        call send len=500
        > DATA tsn=1
        pass 400 ms
        call send len=500
        > DATA tsn=2
        pass 400 ms
        < SACK cum=1
        > DATA tsn=2 after 2400 ms      # the RTO that 800 ms of round trip make
        ",
    );
}

/// §7.2.4: three reports that a chunk is missing while later ones newly arrive: it goes again at once, and once.
#[test]
fn the_third_report_sends_a_chunk_again() {
    play(
        "
        with initial_window = 14520B
        with max_burst = 0
        accepted
        call send len=1000
        > DATA tsn=1
        call send len=1000
        > DATA tsn=2
        call send len=1000
        > DATA tsn=3
        call send len=1000
        > DATA tsn=4
        call send len=1000
        > DATA tsn=5
        < SACK cum=0 gaps=2-2
        < SACK cum=0 gaps=2-3
        < SACK cum=0 gaps=2-4
        > DATA tsn=1
        < SACK cum=0 gaps=2-5
        < SACK cum=0 gaps=2-5
        < SACK cum=0 gaps=2-5
        > DATA tsn=1 within 1 s
        ",
    );
}

/// §6.1, §7.2.4 rule 4: a timer that runs starts over when the earliest outstanding chunk is sent again.
#[test]
fn the_retransmission_of_the_earliest_chunk_restarts_the_timer() {
    play(
        "
        with initial_window = 14520B
        with max_burst = 0
        accepted
        call send len=1452
        > DATA tsn=1
        call send len=1452
        > DATA tsn=2
        call send len=1452
        > DATA tsn=3
        call send len=1452
        > DATA tsn=4
        call send len=1452
        > DATA tsn=5
        pass 700 ms
        < SACK cum=0 gaps=2-2
        < SACK cum=0 gaps=2-3
        < SACK cum=0 gaps=2-4
        > DATA tsn=1
        > DATA tsn=1 after 1 s
        ",
    );
}

/// §6.1, §7.2.4 rule 4: the retransmission of another chunk does not.
#[test]
fn the_retransmission_of_a_later_chunk_leaves_the_timer_alone() {
    play(
        "
        with initial_window = 14520B
        with max_burst = 0
        accepted
        call send len=1452
        > DATA tsn=1
        call send len=1452
        > DATA tsn=2
        call send len=1452
        > DATA tsn=3
        call send len=1452
        > DATA tsn=4
        call send len=1452
        > DATA tsn=5
        call send len=1452
        > DATA tsn=6
        call send len=1452
        > DATA tsn=7
        call send len=1452
        > DATA tsn=8
        pass 200 ms
        < SACK cum=0 gaps=2-2
        < SACK cum=0 gaps=2-3
        < SACK cum=0 gaps=2-4
        > DATA tsn=1
        pass 300 ms
        < SACK cum=0 gaps=2-4,6-6
        < SACK cum=0 gaps=2-4,6-7
        < SACK cum=0 gaps=2-4,6-8
        > DATA tsn=5
        > DATA tsn=1 after 700 ms
        ",
    );
}

/// §6.3.2 R4: a chunk that is reneged on starts the timer of its path where that has stopped, and only there.
#[test]
fn the_timer_of_a_reneged_chunk_runs() {
    play(
        "
        with concurrent = true
        with timeout_retransmit_path = same
        paths 2
        call connect
        > INIT
        < INIT-ACK addresses=10.0.0.2,10.0.1.2
        > COOKIE-ECHO
        < COOKIE-ACK
        call send len=1452
        > @1 DATA tsn=1
        call send len=1452
        > @2 DATA tsn=2
        < @2 SACK cum=0 gaps=2-2
        pass 600 ms
        < @2 SACK cum=0
        > @1 DATA tsn=1 after 400 ms
        > @2 DATA tsn=2 after 600 ms
        ",
    );
    play(
        "
        accepted
        call send len=500
        > DATA tsn=1
        call send len=500
        > DATA tsn=2
        < SACK cum=0 gaps=2-2
        pass 600 ms
        < SACK cum=0
        > DATA tsn=1 | DATA tsn=2 after 400 ms
        ",
    );
}

/// §7.2.4: only what the report newly acknowledges strikes (HTNA): repeating it proves nothing.
#[test]
fn a_report_that_says_nothing_new_is_no_sign_of_loss() {
    play(
        "
        accepted
        call send len=1000
        > DATA tsn=1
        call send len=1000
        > DATA tsn=2
        < SACK cum=0 gaps=2-2
        < SACK cum=0 gaps=2-2
        < SACK cum=0 gaps=2-2
        < SACK cum=0 gaps=2-2
        nothing within 900 ms
        ",
    );
}

/// §6.2.1, §6.3.2 R4: what was acknowledged in a gap and is so no more flies again, and its timer runs.
#[test]
fn what_the_peer_reneges_on_is_sent_again() {
    play(
        "
        accepted
        call send len=1000
        > DATA tsn=1
        call send len=1000
        > DATA tsn=2
        < SACK cum=0 gaps=2-2
        < SACK cum=1
        > DATA tsn=2 within 2 s
        < SACK cum=2
        nothing within 15 s
        ",
    );
}

/// §6.4.1: what timed out on one path goes again over another.
#[test]
fn what_timed_out_takes_another_path() {
    play(
        "
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
        ",
    );
}
