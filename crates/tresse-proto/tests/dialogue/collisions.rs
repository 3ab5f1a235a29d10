//! INIT and COOKIE ECHO where there is an association already (RFC 9260 §5.2).

use crate::play;

/// §5.2.1: in COOKIE-WAIT the answer repeats the own INIT, tag and all; §5.2.4 B: the peer's cookie then makes the
/// association.
#[test]
fn in_cookie_wait_an_init_is_answered_with_the_own_tag() {
    play(
        "
        call connect
        > INIT
        < INIT itag=0x77
        > tag=init INIT-ACK itag=E
        state COOKIE-WAIT
        < COOKIE-ECHO
        > tag=0x77 COOKIE-ACK
        event Established
        nothing within 20 s
        ",
    );
}

/// §5.2.1: in COOKIE-ECHOED too, and the peer's later tag counts (B).
#[test]
fn in_cookie_echoed_the_peer_may_choose_its_tag_anew() {
    play(
        "
        call connect
        > INIT
        < INIT-ACK itag=0x70
        > tag=0x70 COOKIE-ECHO
        < INIT itag=0x71
        > tag=init INIT-ACK itag=E
        state COOKIE-ECHOED
        < COOKIE-ECHO
        > tag=0x71 COOKIE-ACK
        event Established
        < DATA tsn=1
        > tag=0x71 SACK cum=1
        ",
    );
}

/// §5.2.2: later an INIT fetches a cookie under a new tag, and changes nothing by itself.
#[test]
fn an_init_of_a_restarting_peer_leaves_the_association_as_it_is() {
    play(
        "
        accepted
        < DATA tsn=1
        > SACK cum=1
        < INIT itag=0x99 tsn=500
        > tag=0x99 INIT-ACK itag=new
        < DATA tsn=2 | DATA tsn=3
        > SACK cum=3 within 200 ms
        ",
    );
}

/// §5.2.2: an INIT that would bring a new address into the association is refused, and the address named.
#[test]
fn an_init_that_brings_an_address_along_is_refused() {
    play(
        "
        accepted
        < INIT itag=0x99 addresses=10.0.0.2,10.0.7.2
        > tag=0x99 ABORT causes=11
        < DATA tsn=1
        > SACK cum=1
        ",
    );
}

/// §5.2.4 A: the cookie of a peer that has restarted begins everything anew: tags, TSNs, streams, windows.
#[test]
fn a_restart_begins_everything_anew() {
    play(
        "
        accepted
        < DATA tsn=1 | DATA tsn=2
        > SACK cum=2
        call send
        > DATA tsn=1 ssn=0
        < INIT itag=0x99 tsn=500
        > tag=0x99 INIT-ACK itag=new
        < COOKIE-ECHO
        > tag=0x99 COOKIE-ACK
        event Restarted
        nothing within 15 s
        < DATA tsn=1
        > tag=0x99 SACK cum=1
        call send
        > tag=0x99 DATA tsn=1 ssn=0
        ",
    );
}

/// §5.2.4 A: but not while the association is about to end.
#[test]
fn a_restart_does_not_stop_a_shutdown_that_is_nearly_over() {
    play(
        "
        accepted
        < SHUTDOWN cum=0
        > SHUTDOWN-ACK
        < INIT itag=0x99 tsn=500
        > SHUTDOWN-ACK
        < SHUTDOWN-COMPLETE
        state CLOSED
        ",
    );
}

/// §5.2.4 C: a cookie whose INIT ACK was overtaken by the own INIT is of no use any more.
#[test]
fn a_cookie_that_the_own_init_has_overtaken_is_dropped() {
    play(
        "
        < INIT itag=0x77
        > tag=init INIT-ACK
        call connect
        > INIT
        < INIT-ACK itag=0x77
        > tag=0x77 COOKIE-ECHO cookie=P
        < COOKIE-ECHO cookie=1 late
        discards late_cookie = 1
        state COOKIE-ECHOED
        < COOKIE-ACK
        event Established
        ",
    );
}

/// §5.2.4 D: both tags are known: the COOKIE ACK was lost. However old the cookie is (§5.2.4, step 3).
#[test]
fn a_cookie_that_comes_again_is_acknowledged_again_however_old() {
    play(
        "
        accepted
        < COOKIE-ECHO
        > COOKIE-ACK
        pass 70 s
        < COOKIE-ECHO
        > COOKIE-ACK
        state ESTABLISHED
        ",
    );
}

/// §5.2.4 D: for the side that waits for a COOKIE ACK the peer's cookie is as good as one.
#[test]
fn a_cookie_with_both_tags_completes_the_own_set_up() {
    play(
        "
        call connect
        > INIT
        < INIT itag=0x77
        > tag=init INIT-ACK itag=E
        < INIT-ACK itag=0x77
        > tag=0x77 COOKIE-ECHO cookie=P
        < COOKIE-ECHO cookie=1
        > tag=0x77 COOKIE-ACK
        event Established
        nothing within 10 s
        ",
    );
}

/// §5.2.4, the rest of the table: neither tag fits and no tie-tag explains it.
#[test]
fn a_cookie_of_another_set_up_is_dropped_silently() {
    play(
        "
        < INIT itag=0x77
        > tag=init INIT-ACK
        < INIT itag=0x78
        > tag=init INIT-ACK
        < COOKIE-ECHO cookie=2
        > tag=0x78 COOKIE-ACK
        < COOKIE-ECHO cookie=1 late
        nothing within 1 s
        discards late_cookie = 1
        < DATA tsn=1
        > tag=0x78 SACK cum=1
        ",
    );
}

/// §5.2.4 B, for a peer that began anew while E set up: all its cookies name E's own tag, and the one that was made last is of
/// its present life. One of the life before, which the network held back, changes nothing, neither before P is heard nor later.
#[test]
fn a_cookie_older_than_the_one_that_made_the_association_is_dropped() {
    play(
        "
        call connect
        > INIT
        < INIT itag=0x70
        > tag=init INIT-ACK itag=E
        pass 100 ms
        < INIT itag=0x71
        > tag=init INIT-ACK itag=E
        < COOKIE-ECHO cookie=2
        > tag=0x71 COOKIE-ACK
        event Established
        < COOKIE-ECHO cookie=1 late
        nothing within 1 s
        discards late_cookie = 1
        call send
        > tag=0x71 DATA tsn=1
        < DATA tsn=1 | SACK cum=1
        > tag=0x71 SACK cum=1 within 200 ms
        < COOKIE-ECHO cookie=1 late
        < COOKIE-ECHO cookie=2
        > tag=0x71 COOKIE-ACK
        discards late_cookie = 2
        < DATA tsn=2
        > tag=0x71 SACK cum=2 within 200 ms
        ",
    );
}

/// The same where the COOKIE ACK came: the peer goes by the tag of its INIT ACK, and had another one before.
#[test]
fn a_cookie_of_the_life_before_the_last_is_dropped_too() {
    play(
        "
        call connect
        > INIT
        < INIT itag=0x70
        > tag=init INIT-ACK itag=E
        < INIT itag=0x71
        > tag=init INIT-ACK itag=E
        < INIT-ACK itag=0x71
        > tag=0x71 COOKIE-ECHO cookie=P
        < COOKIE-ACK
        event Established
        < DATA tsn=1
        > tag=0x71 SACK cum=1
        < COOKIE-ECHO cookie=1 late
        nothing within 1 s
        discards late_cookie = 1
        < DATA tsn=2
        < DATA tsn=3
        > tag=0x71 SACK cum=3
        ",
    );
}

#[test]
fn a_cookie_of_before_the_life_that_answered_the_own_init_is_dropped() {
    play(
        "
        call connect
        > INIT
        < INIT itag=0x70
        > tag=init INIT-ACK itag=E
        < INIT-ACK itag=0x71
        > tag=0x71 COOKIE-ECHO cookie=P
        < COOKIE-ACK
        event Established
        < COOKIE-ECHO cookie=1 late
        nothing within 1 s
        discards late_cookie = 1
        < DATA tsn=1
        > tag=0x71 SACK cum=1
        ",
    );
}

/// §5.2.4 B with §5.1.1: the streams and the window are those of the INIT in the cookie, also where messages waited for the
/// INIT ACK to another tag.
#[test]
fn the_cookie_of_a_peer_with_another_tag_brings_its_streams_and_its_window() {
    play(
        "
        with data_with_cookie = true
        call connect
        > INIT
        call send stream=0 len=10
        call send stream=3 len=600
        call send stream=0 len=1400
        < INIT-ACK itag=0x70 streams=4,1
        > tag=0x70 COOKIE-ECHO | DATA tsn=1 stream=0
        < INIT itag=0x71 streams=1,4 rwnd=2000
        > tag=init INIT-ACK itag=E
        < COOKIE-ECHO
        > tag=0x71 COOKIE-ACK | DATA tsn=1 stream=0 | DATA tsn=2 stream=3
        event Established { outbound_streams: 4, inbound_streams: 1 }
        < SACK cum=2 rwnd=2000
        > tag=0x71 DATA tsn=3 stream=0
        < SACK cum=3 rwnd=2000
        < DATA tsn=1 stream=1
        > tag=0x71 ERROR causes=1 | SACK cum=1
        ",
    );
}

/// The same where the COOKIE ACK to the earlier tag came in time: nothing was heard of that life of the peer, and with the
/// terms of both the same the association goes on.
#[test]
fn a_peer_that_chose_another_tag_on_the_same_terms_brings_its_window() {
    play(
        "
        call connect
        > INIT
        < INIT-ACK itag=0x70
        > tag=0x70 COOKIE-ECHO
        < INIT itag=0x71 rwnd=2000
        > tag=init INIT-ACK itag=E
        < COOKIE-ACK
        event Established
        < COOKIE-ECHO
        > tag=0x71 COOKIE-ACK
        call send len=1400 times=3
        > tag=0x71 DATA tsn=1
        < SACK cum=1 rwnd=2000
        > tag=0x71 DATA tsn=2
        ",
    );
}

/// On other terms it is a new association: the application has been told of streams that are not there any more.
#[test]
fn a_peer_that_chose_another_tag_on_other_terms_has_restarted() {
    for other in ["streams=10,2", "streams=2,10", "params=c0000004"] {
        play(&format!(
            "
            with partial_reliability = true
            call connect
            > INIT
            < INIT-ACK itag=0x70
            > tag=0x70 COOKIE-ECHO
            < INIT itag=0x71 {other}
            > tag=init INIT-ACK itag=E
            < COOKIE-ACK
            event Established
            < COOKIE-ECHO
            > tag=0x71 COOKIE-ACK
            event Restarted
            state ESTABLISHED
            "
        ));
    }
}
