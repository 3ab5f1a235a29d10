//! Chunks that are unknown, broken or out of place (RFC 9260 §3.2, §6.10).

use crate::play;

/// §3.2: the two highest bits of an unknown type say whether to report it, and whether to read on.
#[test]
fn unknown_chunks_are_treated_by_their_highest_bits() {
    play(
        "
        accepted
        < BYTES 3e000004 | HEARTBEAT
        < BYTES 7e000004 | HEARTBEAT
        > ERROR causes=6
        < BYTES be000004 | HEARTBEAT
        > HEARTBEAT-ACK
        < BYTES fe000004 | HEARTBEAT
        > ERROR causes=6 | HEARTBEAT-ACK
        discards unrecognised_chunk = 4
        ",
    );
}

/// §3.2 with §5.1: so they are during the set-up, but the report waits until other packets than COOKIE ECHO may leave.
#[test]
fn unknown_chunks_during_the_set_up_are_reported_at_its_end() {
    play(
        "
        call connect
        > INIT
        < BYTES 3e000004 | INIT-ACK itag=0x70
        nothing within 500 ms
        state COOKIE-WAIT
        < INIT-ACK itag=0x70
        > tag=0x70 COOKIE-ECHO
        < BYTES 7e000004 | COOKIE-ACK
        < BYTES be000004
        < BYTES fe000004
        nothing within 500 ms
        state COOKIE-ECHOED
        discards unrecognised_chunk = 4
        < COOKIE-ACK
        > tag=0x70 ERROR causes=6 | ERROR causes=6
        event Established
        < DATA tsn=1
        > tag=0x70 SACK cum=1
        ",
    );
}

/// §3.2: no length counts the padding of the last parameter or cause, and what is reported keeps its own.
#[test]
fn what_is_reported_is_as_long_as_it_was() {
    for (params, error) in [
        ("c00c000501000000", "ERROR causes=8 len=13"),
        ("c00c000501000000c00d000601020000", "ERROR causes=8 len=22"),
    ] {
        play(&format!(
            "
            call connect
            > INIT
            < INIT-ACK params={params}
            > COOKIE-ECHO cookie=P | {error}
            < COOKIE-ACK
            < BYTES fe00000501
            > ERROR causes=6 len=13
            "
        ));
    }
}

/// §6.10: control chunks belong before DATA; where a peer has it otherwise both are taken.
#[test]
fn control_chunks_behind_data_are_taken_all_the_same() {
    play(
        "
        accepted
        < DATA tsn=1 | HEARTBEAT | DATA tsn=2
        > HEARTBEAT-ACK | SACK cum=2
        ",
    );
}

/// §3.2: a chunk whose length cannot be true ends the packet; what stood before it counts.
#[test]
fn a_chunk_with_an_impossible_length_ends_its_packet() {
    play(
        "
        accepted
        < HEARTBEAT | BYTES 04000003 | HEARTBEAT
        > HEARTBEAT-ACK
        < HEARTBEAT | BYTES 04ff0404 | HEARTBEAT
        > HEARTBEAT-ACK
        < BYTES 00
        nothing within 1 s
        state ESTABLISHED
        ",
    );
}

/// RFC 4820: padding means nothing. §3.3.10: an ERROR asks for nothing.
#[test]
fn padding_and_errors_are_read_over() {
    play(
        "
        accepted
        < BYTES 84000008 00000000 | HEARTBEAT
        > HEARTBEAT-ACK
        < ERROR | HEARTBEAT
        > HEARTBEAT-ACK
        ",
    );
}

/// RFC 3758 §3.3, RFC 6525 §3.1, RFC 5061 §4.1: extensions that were not agreed on are chunks like any unknown ones.
#[test]
fn extensions_that_were_not_agreed_on_are_not_obeyed() {
    play(
        "
        accepted
        < DATA tsn=2
        > SACK cum=0 gaps=2-2
        < FORWARD-TSN cum=1 | HEARTBEAT
        > ERROR causes=6 | HEARTBEAT-ACK
        < DATA tsn=1
        > SACK cum=2
        ",
    );
}

/// §6.9: fragments are joined whatever order they come in.
#[test]
fn fragments_are_joined_whatever_their_order() {
    play(
        "
        accepted
        < DATA tsn=3 ssn=0 flags=E len=5
        > SACK cum=0 gaps=3-3
        < DATA tsn=1 ssn=0 flags=B len=7
        > SACK cum=1 gaps=3-3
        read nothing
        < DATA tsn=2 ssn=0 flags= len=11
        > SACK cum=3
        read len=23
        ",
    );
}

/// §3.2: a packet full of what is to be reported is reported in part, and what asks for an answer behind it gets one.
#[test]
fn a_flood_of_unknown_chunks_is_reported_in_part() {
    play(
        "
        accepted
        < BYTES fe000004 fe000004 fe000004 fe000004 fe000004 fe000004 fe000004 fe000004 fe000004 fe000004 | HEARTBEAT
        > ERROR causes=6 | ERROR causes=6 | ERROR causes=6 | ERROR causes=6 | ERROR causes=6 | ERROR causes=6 | ERROR causes=6 | ERROR causes=6 | HEARTBEAT-ACK
        discards unrecognised_chunk = 10
        ",
    );
}
