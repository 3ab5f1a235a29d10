//! The set-up (RFC 9260 §5.1, §5.4).

use crate::play;

/// §5.1 B, §5.1.3: the answer goes where the INIT came from, under its tag, and nothing is kept.
#[test]
fn an_init_is_answered_where_it_came_from_and_forgotten() {
    play(
        "
        paths 2
        < INIT itag=0x77 addresses=10.0.0.2,10.0.1.2
        > tag=0x77 INIT-ACK
        < @2 INIT itag=0x78
        > @2 tag=0x78 INIT-ACK
        nothing within 100 s
        ",
    );
}

/// §5.1.1, §3.3.3: fewer streams than offered are no error, and no more are offered than the peer takes.
#[test]
fn an_init_ack_offers_no_more_streams_than_the_init_takes() {
    play(
        "
        < INIT streams=5,3
        > tag=init INIT-ACK streams=3,65535
        < COOKIE-ECHO
        > COOKIE-ACK
        event Established { outbound_streams: 3, inbound_streams: 5 }
        ",
    );
}

/// §3.3.2, §5.1: an INIT without a tag asks for nothing; one whose numbers cannot work is refused under its tag.
#[test]
fn an_init_that_cannot_work_is_refused() {
    play(
        "
        < INIT itag=0
        nothing within 1 s
        < INIT streams=0,10
        > tag=init ABORT causes=7
        < INIT streams=10,0
        > tag=init ABORT causes=7
        < INIT rwnd=1499
        > tag=init ABORT causes=7
        < INIT rwnd=1500
        > tag=init INIT-ACK
        ",
    );
}

/// §5.1.2: the name of a host is no address any more.
#[test]
fn a_host_name_in_an_init_is_refused() {
    play(
        "
        < INIT params=000b000861626300
        > tag=init ABORT causes=5
        ",
    );
}

/// §5.4: who is set up by a peer knows only that the cookie came back from where it went; the rest is probed.
#[test]
fn the_responder_probes_all_addresses_but_that_of_the_init() {
    play(
        "
        paths 2
        < @2 INIT addresses=10.0.0.2,10.0.1.2
        > @2 tag=init INIT-ACK
        < @2 COOKIE-ECHO
        > @2 COOKIE-ACK
        > @1 HEARTBEAT
        call send
        > @2 DATA tsn=1
        < @2 SACK cum=1
        < @1 HEARTBEAT-ACK
        event PathChanged { path: PathId(1), state: Active }
        ",
    );
}

/// §5.4: addresses that the application gave need no proof.
#[test]
fn the_initiator_trusts_the_addresses_that_it_was_given() {
    play(
        "
        paths 2
        call connect
        > INIT addresses=10.0.0.1,10.0.1.1
        < INIT-ACK addresses=10.0.0.2,10.0.1.2
        > COOKIE-ECHO
        < COOKIE-ACK
        nothing within 15 s
        ",
    );
}

/// §5.1.3, §6.4: what is not answered goes again to the next address, after twice the time.
#[test]
fn init_and_cookie_echo_go_again_over_the_other_addresses() {
    play(
        "
        paths 2
        call connect
        > @1 INIT
        > @2 INIT after 1 s
        > @1 INIT after 2 s
        < @1 INIT-ACK addresses=10.0.0.2,10.0.1.2
        > @1 COOKIE-ECHO
        > @2 COOKIE-ECHO after 1 s
        > @1 COOKIE-ECHO after 2 s
        < @1 COOKIE-ACK
        state ESTABLISHED
        ",
    );
}

/// §3.3.3: an INIT ACK may be longer than a packet of the path.
#[test]
fn a_cookie_longer_than_any_packet_is_echoed() {
    play(
        "
        call connect
        > INIT
        < INIT-ACK cookie-len=4000
        > COOKIE-ECHO cookie=P
        ",
    );
}

/// §5.1: the first DATA of all is acknowledged at once, bundled with the cookie or not.
#[test]
fn data_behind_the_cookie_is_acknowledged_with_it() {
    play(
        "
        < INIT
        > tag=init INIT-ACK
        < COOKIE-ECHO | DATA tsn=1 | DATA tsn=2
        > COOKIE-ACK | SACK cum=2
        read stream=0 ssn=0
        read stream=0 ssn=1
        ",
    );
}

/// §5.1.5: a cookie that E has not signed, or that another packet brings than it is for, is not worth an answer.
#[test]
fn a_cookie_that_does_not_fit_is_dropped_silently() {
    play(
        "
        < INIT
        > tag=init INIT-ACK
        < COOKIE-ECHO changed late
        < tag=0x1234 COOKIE-ECHO late
        nothing within 1 s
        discards bad_cookie = 2
        < COOKIE-ECHO
        > COOKIE-ACK
        ",
    );
}

/// §5.1.5: a cookie that comes too late makes no association, and the DATA with it goes with it.
#[test]
fn a_stale_cookie_takes_its_data_along() {
    play(
        "
        < INIT
        > tag=init INIT-ACK
        nothing within 61 s
        < COOKIE-ECHO | DATA tsn=1
        > ERROR causes=3
        < DATA tsn=1
        > tag=E ABORT T
        ",
    );
}

/// §5.2.6: who is told that its cookie is stale asks for another that lives a round trip and a second longer.
#[test]
fn after_a_stale_cookie_another_is_fetched() {
    play(
        "
        call connect
        > INIT
        pass 40 ms
        < INIT-ACK
        > COOKIE-ECHO
        pass 40 ms
        < ERROR stale=1000
        > INIT preservative=1040 itag=E
        state COOKIE-WAIT
        < INIT-ACK
        > COOKIE-ECHO
        < COOKIE-ACK
        event Established
        ",
    );
}

/// §3.2.1: what of an INIT is not understood is named in the answer, if its type asks for that.
#[test]
fn unknown_parameters_are_reported_by_the_bits_of_their_type() {
    play(
        "
        < INIT params=c0aa000401010101
        > tag=init INIT-ACK unrecognised=c0aa
        < INIT params=80aa0004
        > tag=init INIT-ACK
        < INIT params=40aa0004c0ab0004
        > tag=init INIT-ACK unrecognised=40aa
        ",
    );
}

/// §5.1 C: until the COOKIE ACK has come the initiator sends nothing but its cookie, and takes no DATA.
#[test]
fn until_the_cookie_ack_only_the_cookie_leaves() {
    play(
        "
        call connect
        > INIT
        < INIT-ACK
        > COOKIE-ECHO
        < DATA tsn=1
        < SACK cum=0
        < SHUTDOWN cum=0
        > COOKIE-ECHO after 1 s
        < COOKIE-ACK | DATA tsn=1
        > SACK cum=1
        read len=10
        ",
    );
}

/// §5.1 C: DATA may follow the cookie in its packet, but no other; it goes again with the cookie.
#[test]
fn data_given_before_leaves_behind_the_cookie_and_with_no_other_packet() {
    play(
        "
        with data_with_cookie = true
        call connect
        > INIT
        call send stream=0 len=10
        < INIT-ACK
        > COOKIE-ECHO | DATA tsn=1 stream=0 len=10
        call send stream=3 len=20
        < SACK cum=1
        > COOKIE-ECHO | DATA tsn=1 | DATA tsn=2 stream=3 after 1 s
        < COOKIE-ACK | SACK cum=2
        nothing within 5 s
        state ESTABLISHED
        ",
    );
}

/// §5.1.5, §5.2.6: with a stale cookie its DATA is dropped; both begin anew.
#[test]
fn data_behind_a_stale_cookie_goes_again_behind_the_next() {
    play(
        "
        with data_with_cookie = true
        call connect
        > INIT
        call send len=10
        < INIT-ACK
        > COOKIE-ECHO | DATA tsn=1
        < ERROR stale=1000
        > INIT
        < INIT-ACK
        > COOKIE-ECHO | DATA tsn=1
        < COOKIE-ACK | SACK cum=1
        nothing within 5 s
        ",
    );
}
