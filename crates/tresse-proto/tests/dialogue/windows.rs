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

/// §1.3, §7.2.1: outstanding data is the size of DATA chunks, so that tiny messages do not multiply the first window.
#[test]
fn the_first_window_lets_few_packets_of_tiny_messages_out() {
    play(
        "
        with max_burst = 0
        accepted
        call send len=1 times=2000
        > DATA tsn=1-73 len=1
        > DATA tsn=74-146 len=1
        > DATA tsn=147-219 len=1        # 219 chunks of 17 bytes are less than 4404
        > DATA tsn=220-292 len=1
        nothing within 900 ms
        ",
    );
}

/// §1.3, §6.2.1: the same holds for the window that the peer announces.
#[test]
fn chunks_of_tiny_messages_count_against_the_announced_window() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        < SACK cum=1 rwnd=2600
        call send len=1 times=500
        > DATA tsn=2-74 len=1           # 73 chunks of 17 bytes, which leave less than a full chunk
        nothing within 900 ms
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

/// §3.3.10.13: whoever acknowledges everything up to what was never sent breaks the protocol.
#[test]
fn an_acknowledgement_of_what_was_never_sent_ends_the_association() {
    for chunk in ["SACK cum=2", "SACK cum=2 gaps=3-3", "SHUTDOWN cum=2"] {
        play(&format!(
            "
            accepted
            call send
            > DATA tsn=1
            < {chunk}
            > ABORT causes=13
            event Closed(PeerFault(
            state CLOSED
            "
        ));
    }
}

/// §6.2.1: a gap block that ends before it starts, or names what was never sent, says nothing; the rest of its SACK does.
#[test]
fn gap_blocks_that_cannot_be_true_are_left_out() {
    play(
        "
        accepted
        call send
        > DATA tsn=1
        call send
        > DATA tsn=2
        call send
        > DATA tsn=3
        < SACK cum=1 gaps=4-2,5-9,3-65535
        discards impossible_sack = 1
        > DATA tsn=2 after 1 s
        < SACK cum=3
        nothing within 20 s
        ",
    );
}

/// §3.3.1: what is not ordered has no number; 0 stands for none.
#[test]
fn unordered_messages_leave_without_a_number() {
    play(
        "
        accepted
        call send unordered
        > DATA tsn=1 ssn=0 flags=UBE
        call send
        > DATA tsn=2 ssn=0 flags=BE
        call send unordered
        > DATA tsn=3 ssn=0 flags=UBE
        call send
        > DATA tsn=4 ssn=1 flags=BE
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
        > SACK cum=3 rwnd=968
        ",
    );
}

/// §6.2: the receive buffer counts chunks with their headers, and tiny ones for what surrounds them here.
#[test]
fn tiny_messages_take_more_of_the_receive_buffer_than_their_bytes() {
    play(
        "
        with receive_buffer = 8000B
        accepted
        < DATA tsn=1 len=1000
        > SACK cum=1 rwnd=6984
        < DATA tsn=2-52 flags=UBE len=1
        > SACK cum=52 rwnd=4672 within 200 ms
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
        > SACK cum=2 rwnd=5968
        read len=1000
        nothing within 1 s
        read len=1000
        > SACK cum=2 rwnd=8000
        ",
    );
}

/// §6.1 D: Max.Burst bounds what leaves at one instant, however many SACKs arrive at it and whatever the application
/// adds.
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
        < SACK cum=1
        < SACK cum=2
        call send len=10
        nothing within 20 ms
        < SACK cum=3
        > DATA tsn=5
        > DATA tsn=6
        > DATA tsn=7
        > DATA tsn=8
        < SACK cum=4
        nothing within 20 ms
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
