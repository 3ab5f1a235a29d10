//! Windows of both sides (RFC 9260 §6.1, §6.2, §7.2.1).

use crate::play;

/// §7.2.1: the first window is 4404 bytes, three packets of this size; each acknowledgement of it lets one more out than
/// it takes.
#[test]
fn the_first_window_lets_three_packets_out() {
    play(
        "
        accepted
        call send len=10000
        > DATA tsn=1 flags=B len=1452
        > DATA tsn=2 len=1452
        > DATA tsn=3 len=1452
        nothing within 100 ms
        < SACK cum=2
        > DATA tsn=4 len=1452
        > DATA tsn=5 len=1452
        > DATA tsn=6 len=1452
        < SACK cum=6
        > DATA tsn=7 len=1288 flags=E
        ",
    );
}

/// §6.2.1: the peer's window is what it announces less what is still in flight.
#[test]
fn what_is_in_flight_counts_against_the_announced_window() {
    play(
        "
        accepted
        call send len=1000
        > DATA tsn=1
        call send len=1000
        > DATA tsn=2
        < SACK cum=1 rwnd=1500
        call send len=1000
        nothing within 500 ms
        < SACK cum=2 rwnd=1500
        > DATA tsn=3 len=1000
        ",
    );
}

/// §6.1 A: into a closed window one chunk is sent when nothing is in flight, and again ever more slowly; an answer to
/// it counts as no error.
#[test]
fn a_closed_window_is_probed_and_the_probes_are_no_errors() {
    play(
        "
        with path_max_retrans = 2
        with association_max_retrans = 2
        accepted
        call send len=1000
        > DATA tsn=1
        < SACK cum=1 rwnd=0
        call send len=1000
        > DATA tsn=2 within 1 s
        < SACK cum=1 rwnd=0
        > DATA tsn=2 after 1 s
        < SACK cum=1 rwnd=0
        > DATA tsn=2 after 2 s
        < SACK cum=1 rwnd=0
        > DATA tsn=2 after 4 s
        < SACK cum=1 rwnd=0
        > DATA tsn=2 after 8 s
        < SACK cum=2 rwnd=100000
        state ESTABLISHED
        ",
    );
}

/// §6.2.1 i: a report older than one already seen says nothing; one that repeats it may open the window.
#[test]
fn an_older_report_is_dropped_and_an_equal_one_counts() {
    play(
        "
        accepted
        call send len=1000
        > DATA tsn=1
        call send len=1000
        > DATA tsn=2
        < SACK cum=2 rwnd=0
        < SACK cum=1 rwnd=100000
        discards stale_sack = 1
        < SACK cum=2 rwnd=100000
        call send len=1000
        > DATA tsn=3
        ",
    );
}

/// §6.2: a report on what was never sent cannot be true.
#[test]
fn a_report_on_what_was_never_sent_changes_nothing() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        < SACK cum=2
        < SACK cum=0 gaps=2-2
        discards impossible_sack = 2
        > DATA tsn=1 after 1 s
        < SACK cum=1
        nothing within 20 s
        ",
    );
}

/// §6.2: into a full buffer nothing more is taken, at once said so, and nothing of it reported; what fills a gap is.
#[test]
fn data_beyond_the_window_is_refused_and_what_fills_a_gap_is_not() {
    play(
        "
        with receive_buffer = 3000B
        accepted
        < DATA tsn=1 len=1000
        > SACK cum=1
        < DATA tsn=3 ssn=2 len=1000
        > SACK cum=1 gaps=3-3
        < DATA tsn=4 ssn=3 len=1001
        > SACK cum=1 gaps=3-3
        discards beyond_window = 1
        < DATA tsn=2 ssn=1 len=1000
        > SACK cum=3 rwnd=0
        < DATA tsn=4 ssn=3 len=1000
        > SACK cum=3 rwnd=0
        read len=1000
        > SACK cum=3 rwnd=1000
        ",
    );
}

/// §6.2: the window is announced anew only when a good part of the buffer has become free.
#[test]
fn the_window_is_announced_anew_by_quarters() {
    play(
        "
        with receive_buffer = 8000B
        accepted
        < DATA tsn=1 len=1000 | DATA tsn=2 len=1000
        > SACK cum=2 rwnd=6000
        read len=1000
        nothing within 1 s
        read len=1000
        > SACK cum=2 rwnd=8000
        ",
    );
}

/// §6.1 D: no more packets in a row than Max.Burst, however wide the window has become.
#[test]
fn a_burst_ends_at_four_packets() {
    play(
        "
        with initial_window = 14520B
        accepted
        call send len=14520
        > DATA tsn=1
        > DATA tsn=2
        > DATA tsn=3
        > DATA tsn=4
        < SACK cum=2
        > DATA tsn=5
        > DATA tsn=6
        > DATA tsn=7
        > DATA tsn=8
        ",
    );
}

/// §6.1: messages leave in the order of their stream, small ones together.
#[test]
fn small_messages_share_a_packet() {
    play(
        "
        accepted
        call send len=1452
        > DATA tsn=1
        call send len=1452
        > DATA tsn=2
        call send len=1452
        > DATA tsn=3
        call send len=100
        call send len=200 stream=1
        < SACK cum=1
        > DATA tsn=4 len=100 | DATA tsn=5 len=200 stream=1 ssn=0
        ",
    );
}
