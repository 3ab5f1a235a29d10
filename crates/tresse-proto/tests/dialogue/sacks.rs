//! Acknowledgement of DATA: when and how (RFC 9260 §6.2, §6.7; RFC 7053).

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

/// §6.7: one path brings data in the order in which it was sent, so that a gap is a loss.
#[test]
fn with_one_path_a_gap_is_reported_at_once_whatever_both_sides_know() {
    play(
        "
        with delayed_ack = true
        with nr_sack = everything
        < INIT params=8008000510000000
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        < DATA tsn=1
        > NR-SACK cum=1
        < DATA tsn=3
        > NR-SACK cum=1 nr-gaps=3-3
        < DATA tsn=4
        > NR-SACK cum=1 nr-gaps=3-4
        ",
    );
}

/// §6.7: a peer that declined NR-SACK knows nothing of CMT, and no count in the flags of its SACKs.
#[test]
fn a_peer_without_extensions_is_told_of_a_gap_at_once_on_any_path() {
    play(
        "
        paths 2
        with delayed_ack = true
        with nr_sack = everything
        < INIT addresses=10.0.0.2,10.0.1.2
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        > @2 HEARTBEAT
        < @2 HEARTBEAT-ACK
        < @1 DATA tsn=1
        > @1 SACK cum=1
        < @2 DATA tsn=3
        > @2 SACK cum=1 gaps=3-3 flags=0x00
        < @1 DATA tsn=5
        > @1 SACK cum=1 gaps=3-3,5-5 flags=0x00
        ",
    );
}

/// CMT's delayed acknowledgement (DAC): data of two paths overtakes data, and a SACK says for how many packets it
/// stands; once one path alone brings data, §6.7 holds again.
#[test]
fn gaps_between_paths_wait_for_their_report_and_those_of_one_path_do_not() {
    play(
        "
        paths 2
        with delayed_ack = true
        with nr_sack = everything
        < INIT addresses=10.0.0.2,10.0.1.2 params=8008000510000000
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        > @2 HEARTBEAT
        < @2 HEARTBEAT-ACK
        < @1 DATA tsn=1
        > @1 NR-SACK cum=1 flags=0x00
        < @2 DATA tsn=3
        nothing within 150 ms
        < @1 DATA tsn=5
        > @1 NR-SACK cum=1 nr-gaps=3-3,5-5 flags=0x80
        < @1 DATA tsn=7
        > @1 NR-SACK cum=1 nr-gaps=3-3,5-5,7-7 flags=0x40 after 200 ms
        pass 1 s
        < @1 DATA tsn=9
        > @1 NR-SACK cum=1 nr-gaps=3-3,5-5,7-7,9-9 flags=0x00
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

/// RFC 3758 §3.6: what was given up and comes all the same is acknowledged, and takes no room; whole or in fragments.
#[test]
fn what_was_given_up_takes_no_room_when_it_comes_late() {
    for flags in ["BE", "B", "", "E"] {
        play(&format!(
            "
            with partial_reliability = true
            with receive_buffer = 100000B
            < INIT params=c0000004
            > tag=init INIT-ACK
            < COOKIE-ECHO
            > COOKIE-ACK
            < DATA tsn=1 ssn=0 len=1000
            > SACK cum=1 rwnd=98984
            read len=1000
            < FORWARD-TSN cum=2 skip=0:1
            > SACK cum=2 rwnd=100000 within 200 ms
            < DATA tsn=4 ssn=1 flags={flags} len=1000
            > SACK cum=2 gaps=4-4 rwnd=100000
            discards given_up = 1
            < DATA tsn=3 ssn=2 len=10
            > SACK cum=4 rwnd=99936
            read len=10
            read nothing
            "
        ));
    }
}

/// The same where it came before it was given up, and its rest has not.
#[test]
fn what_is_given_up_leaves_the_buffer_though_its_end_may_still_come() {
    play(
        "
        with partial_reliability = true
        with receive_buffer = 100000B
        < INIT params=c0000004
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        < DATA tsn=2 ssn=0 flags=B len=1000
        > SACK cum=0 gaps=2-2 rwnd=98984
        < DATA tsn=4 ssn=1 flags=B len=500
        > SACK cum=0 gaps=2-2,4-4 rwnd=98468
        < FORWARD-TSN cum=1 skip=0:0
        > SACK cum=2 gaps=4-4 rwnd=99484
        < DATA tsn=3 ssn=0 flags=E len=1000
        > SACK cum=4 rwnd=99484
        < DATA tsn=5 ssn=1 flags=E len=500
        > SACK cum=5 rwnd=98968 within 200 ms
        read len=1000
        discards given_up = 2
        ",
    );
}

/// §6.5: SSNs count on, so that one that was delivered cannot come again under another TSN: its message would be
/// acknowledged and lost.
#[test]
fn a_number_that_was_delivered_and_comes_again_ends_the_association() {
    for flags in ["BE", "B"] {
        play(&format!(
            "
            accepted
            < DATA tsn=1 ssn=0
            > SACK cum=1
            < DATA tsn=2 ssn=0 flags={flags}
            > ABORT causes=13
            state CLOSED
            read len=10
            read nothing
            "
        ));
    }
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
