//! Probes of the packet size (RFC 8899 §6.2): HEARTBEAT and PAD in a packet of their own, and peers that know no PAD. They are
//! to skip it (RFC 9260 §3.2, RFC 4820 §3); whatever they do instead costs no data and no path.

use crate::play;

/// E has sent three packets, two of them full at the size to begin with, 1220 bytes. P has acknowledged nothing yet. A single
/// error would end the association.
const BULK: &str = "
    with mtu_discovery = true
    with association_max_retrans = 0
    with path_max_retrans = 0
    with heartbeat_interval = 0s
    established
    call send len=3000
    > DATA tsn=1 len=1172
    > DATA tsn=2 len=1172
    > DATA tsn=3 len=656
    nothing within 10 ms
";

/// The first probe is of 1500 bytes, IP header included.
const PROBED: &str = "
    < SACK cum=3
    > HEARTBEAT | PAD len=1440
";

/// Before data was acknowledged P may not be established, or not be there at all.
#[test]
fn probes_wait_until_data_was_acknowledged() {
    play(&format!("{BULK}\nnothing within 900 ms\n{PROBED}"));
    // Nor does a set-up that takes data along begin with one.
    play(
        "
        with mtu_discovery = true
        with data_with_cookie = true
        call connect
        > INIT
        call send len=3000
        < INIT-ACK
        > COOKIE-ECHO | DATA tsn=1
        < COOKIE-ACK
        > DATA tsn=2
        > DATA tsn=3
        nothing within 900 ms
        < SACK cum=3
        > HEARTBEAT | PAD len=1440
        ",
    );
}

/// What P drops with a probe is nothing but a probe.
#[test]
fn nothing_travels_with_a_probe() {
    play(&format!(
        "
        {BULK}
        call send len=6000
        > DATA tsn=4 len=1172
        > DATA tsn=5 len=1172
        < HEARTBEAT | SACK cum=3 | DATA tsn=1
        > HEARTBEAT-ACK | SACK cum=1 | DATA tsn=6
        > DATA tsn=7
        > HEARTBEAT | PAD len=1440
        "
    ));
}

/// RFC 4820 §3: P skips PAD. Its answer shows that packets of this size pass.
#[test]
fn an_answered_probe_makes_packets_larger() {
    play(&format!(
        "{BULK}{PROBED}< HEARTBEAT-ACK\ncall send len=3000\n> DATA tsn=4 len=1452\n> DATA tsn=5 len=1452\n> DATA"
    ));
}

/// P knows no PAD and says so, which it should not: it is not asked again, and data goes on as it did.
#[test]
fn a_peer_that_reports_padding_is_not_probed_again() {
    for report in ["", "HEARTBEAT-ACK | "] {
        let size = if report.is_empty() { 1172 } else { 1452 };
        play(&format!(
            "
            {BULK}{PROBED}
            < {report}BYTES 09000010 0006000c 84000008 00000000
            nothing within 2000 s
            call send len=3000
            > DATA tsn=4 len={size}
            > DATA tsn=5 len={size}
            > DATA tsn=6
            < SACK cum=6
            nothing within 2000 s
            state ESTABLISHED
            "
        ));
    }
    // Also where all that is known of the chunk is its type, and other causes stand before it.
    play(&format!(
        "{BULK}{PROBED}< BYTES 09000014 00060008 fe000004 00060008 84000004\nnothing within 2000 s\nstate ESTABLISHED"
    ));
    // What the ERROR names is another chunk.
    play(&format!(
        "{BULK}{PROBED}< BYTES 0900000c 00060008 fe000004\n> HEARTBEAT | PAD len=1440 after 1 s\nstate ESTABLISHED"
    ));
}

/// A peer that ends the association for a chunk that it is to skip cannot be kept from it; the application learns what it said.
#[test]
fn a_peer_that_aborts_for_padding_is_believed() {
    play(&format!(
        "
        {BULK}{PROBED}
        < BYTES 06000010 0006000c 84000008 00000000
        state CLOSED
        event Closed(AbortedByPeer {{ cause: \"Unrecognised Chunk Type
        "
    ));
}

/// P drops packets with PAD as a whole, or the path drops all that is larger: the search ends where it began, and it was no error
/// of the path or of the association, of which a single one would have been the end.
#[test]
fn a_search_without_any_answer_ends_at_the_size_it_began_with() {
    let sizes = [1500, 1492, 1472, 1440, 1400, 1280, 1250];
    // What IP, SCTP and HEARTBEAT leave of the largest packet of whole words.
    let padding = |size: &i32| (size - 20) / 4 * 4 - 12 - 28;
    let mut probes: Vec<String> = sizes
        .iter()
        .flat_map(|size| vec![format!("> HEARTBEAT | PAD len={} after 1 s", padding(size)); 3])
        .collect();
    probes[0] = "< SACK cum=3\n> HEARTBEAT | PAD len=1440".to_owned();
    play(&format!(
        "
        {BULK}
        {}
        nothing within 590 s
        call send len=3000
        > DATA tsn=4 len=1172
        > DATA tsn=5 len=1172
        > DATA tsn=6 len=656
        < SACK cum=6
        state ESTABLISHED
        > HEARTBEAT | PAD len=1440 within 20 s
        ",
        probes.join("\n")
    ));
}

/// Data that arrives while probes do not, and heartbeats that are answered while probes are not.
#[test]
fn probes_that_are_lost_change_nothing_for_data_and_heartbeats() {
    play(&format!(
        "
        {bulk}{PROBED}
        call send len=1172
        > DATA tsn=4 len=1172
        < SACK cum=4
        > HEARTBEAT | PAD len=1440 after 1 s
        call send len=1172
        > DATA tsn=5 len=1172
        < SACK cum=5
        > HEARTBEAT | PAD len=1440 after 1 s
        pass 25 s
        > HEARTBEAT within 6 s
        < HEARTBEAT-ACK
        state ESTABLISHED
        ",
        bulk = BULK.replace("heartbeat_interval = 0s", "heartbeat_interval = 29s"),
    ));
}

/// §5.4: an address is confirmed by a HEARTBEAT without PAD, and no probe goes there before.
#[test]
fn a_path_is_confirmed_by_a_plain_heartbeat() {
    let set_up = "
        paths 2
        with mtu_discovery = true
        with path_max_retrans = 0
        < INIT addresses=10.0.0.2,10.0.1.2
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        > @2 HEARTBEAT
        ";
    let bulk = "
        call send len=3000
        > DATA tsn=1 len=1172
        > DATA tsn=2 len=1172
        > DATA tsn=3 len=656
        < SACK cum=3
        ";
    play(&format!(
        "
        {set_up}
        < @2 HEARTBEAT-ACK
        event PathChanged {{ path: PathId(1), state: Active }}
        {bulk}
        > HEARTBEAT | PAD len=1440
        > @2 HEARTBEAT | PAD len=1440
        pass 21 s
        call send len=1000
        > DATA tsn=4
        < SACK cum=4
        state ESTABLISHED
        "
    ));
    play(&format!("{set_up}{bulk}> HEARTBEAT | PAD len=1440\nnothing within 900 ms"));
}
