//! Congestion marks: told until they are answered, answered every time, paid for once in a window (ECN, RFC 4960
//! appendix A; RFC 3168 §6.1).

use crate::play;

/// Plays `dialogue` in an association that agreed on ECN, with a window of ten packets.
fn play_marked(dialogue: &str) {
    let set_up = "
        with ecn = true
        with initial_window = 14680B
        with max_burst = 0
        < INIT params=80000004
        > tag=init INIT-ACK ecn
        < COOKIE-ECHO
        > COOKIE-ACK
        ";
    play(&format!("{set_up}{dialogue}"));
}

/// RFC 4960 appendix A: both sides say so in INIT and INIT ACK; otherwise nothing may be marked, marks mean nothing, and
/// neither do their chunks.
#[test]
fn nothing_is_marked_unless_both_sides_agree() {
    play("with ecn = true\ncall connect\n> INIT ecn");
    play("call connect\n> INIT");
    for offer in ["with ecn = true\n", ""] {
        play(&format!(
            "{offer}
            < INIT{}
            > tag=init INIT-ACK
            < COOKIE-ECHO
            > COOKIE-ACK
            call send
            > DATA tsn=1
            < ECNE tsn=1 | SACK cum=1
            < CWR tsn=1
            discards unexpected_chunk = 2
            < ce DATA tsn=1
            > SACK cum=1
            ",
            if offer.is_empty() { " params=80000004" } else { "" }
        ));
    }
}

/// RFC 3168 §6.1.3: the receiver repeats itself with every report until the sender says that it has cut its window.
#[test]
fn a_mark_is_told_with_every_report_until_it_is_answered() {
    play_marked(
        "
        < ce DATA tsn=1
        > ECNE tsn=1 | SACK cum=1
        < DATA tsn=2
        < DATA tsn=3
        > ECNE tsn=1 | SACK cum=3
        < CWR tsn=1 | DATA tsn=4
        < DATA tsn=5
        > SACK cum=5
        ",
    );
}

/// The lowest TSN of the marked packet is named; of several marks the latest, so that an answer that was given before it
/// does not pass for its own.
#[test]
fn the_latest_marked_packet_is_told_by_its_lowest_tsn() {
    play_marked(
        "
        < DATA tsn=1
        > SACK cum=1
        < ce DATA tsn=2
        < ce DATA tsn=3 | DATA tsn=4
        > ECNE tsn=3 packets=2 | SACK cum=4
        < CWR tsn=2 | DATA tsn=5
        < DATA tsn=6
        > ECNE tsn=3 | SACK cum=6
        < CWR tsn=3 | DATA tsn=7
        < DATA tsn=8
        > SACK cum=8
        ",
    );
}

/// A mark does not hurry a report; data that comes again is told all the same.
#[test]
fn a_marked_duplicate_is_told_and_a_marked_packet_without_data_is_not() {
    play_marked(
        "
        < DATA tsn=1
        > SACK cum=1
        < ce DATA tsn=1
        > ECNE tsn=1 | SACK cum=1 dups=1
        < CWR tsn=1 | DATA tsn=2
        < DATA tsn=3
        > SACK cum=3
        < ce HEARTBEAT info=hello
        > HEARTBEAT-ACK info=hello
        < DATA tsn=4
        < DATA tsn=5
        > SACK cum=5
        ",
    );
}

/// RFC 3168 §6.1.2: the window is halved as for a loss, once for all that was sent before; every ECNE is answered.
#[test]
fn a_window_is_cut_once_for_all_marks_on_what_was_sent_before() {
    play_marked(
        "
        call send len=29040
        > ect0 DATA tsn=1
        > ect0 DATA tsn=2
        > ect0 DATA tsn=3
        > ect0 DATA tsn=4
        > ect0 DATA tsn=5
        > ect0 DATA tsn=6
        > ect0 DATA tsn=7
        > ect0 DATA tsn=8
        > ect0 DATA tsn=9
        > ect0 DATA tsn=10
        < ECNE tsn=1 | SACK cum=2       # ten become five
        > CWR tsn=1
        < ECNE tsn=1 | SACK cum=4       # the answer was lost
        > CWR tsn=1
        < ECNE tsn=8 | SACK cum=6
        > ect0 CWR tsn=8 | DATA tsn=11
        > ect0 DATA tsn=12
        < SACK cum=10
        > ect0 DATA tsn=13
        > ect0 DATA tsn=14
        > ect0 DATA tsn=15
        > ect0 DATA tsn=16
        < ECNE tsn=12 | SACK cum=12     # sent after the cut: five become four, the least
        > CWR tsn=12
        < SACK cum=13
        > ect0 DATA tsn=17
        nothing within 100 ms
        ",
    );
}

/// RFC 3168 §6.1.5 and §6.1.6: what is sent again and what probes a closed window must not be marked.
#[test]
fn retransmissions_and_window_probes_may_not_be_marked() {
    play_marked(
        "
        call send
        > ect0 DATA tsn=1
        < SACK cum=1
        call send
        > ect0 DATA tsn=2
        > DATA tsn=2 after 1 s
        < SACK cum=2
        call send
        > ect0 DATA tsn=3
        < SACK cum=3 rwnd=0
        call send
        > DATA tsn=4
        ",
    );
}

/// RFC 9000 §13.4.2, for SCTP: where nothing has got through yet, the network may swallow what may be marked.
#[test]
fn a_timeout_before_anything_got_through_ends_marks_on_the_path() {
    play_marked(
        "
        call send
        > ect0 DATA tsn=1
        > DATA tsn=1 after 1 s
        < SACK cum=1
        call send
        > DATA tsn=2
        ",
    );
}

/// What was never sent met no congestion, and what was declared lost has been paid for.
#[test]
fn marks_on_what_was_never_sent_ask_for_nothing() {
    play_marked(
        "
        call send
        > ect0 DATA tsn=1
        < ECNE tsn=2
        < ECNE tsn=0
        discards stray_ecne = 2
        < ECNE tsn=1
        > CWR tsn=1
        ",
    );
}

/// However many come in one packet, one answer leaves.
#[test]
fn many_echoes_in_one_packet_get_one_answer() {
    play_marked(
        "
        call send len=4356
        > ect0 DATA tsn=1
        > ect0 DATA tsn=2
        > ect0 DATA tsn=3
        < ECNE tsn=1 | ECNE tsn=2 | ECNE tsn=3 | ECNE tsn=3
        > CWR tsn=3
        ",
    );
}
