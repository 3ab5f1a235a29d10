//! When DATA is acknowledged, and how (RFC 9260 §6.2, §6.7; RFC 7053).

use crate::play;

/// §5.1, §6.2: the first packet at once, then every second, and a lone one after 200 ms.
#[test]
fn the_first_packet_then_every_second_then_after_the_delay() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < DATA tsn=2
        nothing within 150 ms
        < DATA tsn=3
        > SACK cum=3
        < DATA tsn=4 | DATA tsn=5 | DATA tsn=6
        > SACK cum=6 after 200 ms
        nothing within 1 s
        ",
    );
}

/// §6.7: while something is missing every packet is reported, and the one that fills the gap.
#[test]
fn a_gap_is_reported_until_it_is_filled() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < DATA tsn=3
        > SACK cum=1 gaps=3-3
        < DATA tsn=6
        > SACK cum=1 gaps=3-3,6-6
        < DATA tsn=4
        > SACK cum=1 gaps=3-4,6-6
        < DATA tsn=2
        > SACK cum=4 gaps=6-6
        < DATA tsn=5
        > SACK cum=6
        < DATA tsn=7
        > SACK cum=7 after 200 ms
        ",
    );
}

/// §6.2: duplicates are reported at once, each copy once, whether alone or not.
#[test]
fn a_packet_of_duplicates_is_reported_at_once() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < DATA tsn=1
        > SACK cum=1 dups=1
        < DATA tsn=2 | DATA tsn=2
        > SACK cum=2 dups=2 within 200 ms
        < DATA tsn=3
        > SACK cum=3 after 200 ms
        ",
    );
}

/// RFC 7053: the I bit asks for an answer at once.
#[test]
fn the_i_bit_hurries_a_report() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < DATA tsn=2 flags=IBE
        > SACK cum=2
        ",
    );
}

/// §6.2: one SACK for a packet, however much is in it.
#[test]
fn a_packet_is_never_reported_twice() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < DATA tsn=3 flags=IBE | DATA tsn=3 | DATA tsn=5 flags=IBE
        > SACK cum=1 gaps=3-3,5-5 dups=3
        nothing within 1 s
        ",
    );
}

/// §6.4: the report goes where the last DATA came from.
#[test]
fn a_report_goes_back_where_the_data_came_from() {
    play(
        "
        paths 2
        < INIT addresses=10.0.0.2,10.0.1.2
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        > @2 HEARTBEAT
        < @2 HEARTBEAT-ACK
        < @2 DATA tsn=1
        > @2 SACK cum=1
        < @2 DATA tsn=2
        < @1 DATA tsn=3
        > @1 SACK cum=3
        ",
    );
}

/// §6.2: a report that is pending rides with DATA that leaves.
#[test]
fn a_pending_report_leaves_with_data() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < DATA tsn=2
        call send
        > SACK cum=2 | DATA tsn=1
        nothing within 300 ms
        ",
    );
}

/// §6.5: DATA for a stream that does not exist is acknowledged, thrown away, and complained of.
#[test]
fn data_of_no_stream_is_acknowledged_and_reported() {
    play(
        "
        < INIT streams=2,2
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        < DATA tsn=1 stream=2
        > ERROR causes=1 | SACK cum=1
        read nothing
        discards no_such_stream = 1
        < DATA tsn=2 stream=1 ssn=0
        > SACK cum=2 after 200 ms
        ",
    );
}

/// §6.2, §3.3.10.9: DATA without user data ends the association.
#[test]
fn data_of_nothing_ends_the_association() {
    play(
        "
        accepted
        < DATA tsn=1 len=0
        > ABORT causes=9
        state CLOSED
        ",
    );
}

/// §6.6: unordered messages wait for nothing.
#[test]
fn unordered_messages_are_read_before_what_is_missing() {
    play(
        "
        accepted
        < DATA tsn=2 ssn=1 len=20
        > SACK cum=0 gaps=2-2
        < DATA tsn=3 flags=UBE len=30
        > SACK cum=0 gaps=2-3
        read len=30
        read nothing
        < DATA tsn=1 ssn=0 len=10
        > SACK cum=3
        read len=10
        read len=20
        ",
    );
}

/// §6.5: stream sequence numbers wrap, as TSNs do.
#[test]
fn tsns_wrap_in_mid_report() {
    // P's third TSN is 0.
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < DATA tsn=4
        > SACK cum=1 gaps=4-4
        < DATA tsn=2 | DATA tsn=3
        > SACK cum=4
        ",
    );
}
