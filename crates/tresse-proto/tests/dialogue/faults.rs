//! Chunks of user data that contradict each other or the association: what ends it, by which cause (RFC 9260 §3.3.10), and
//! what does not.

use crate::play;

/// Chunks, and why the last of them ends the association.
type Case<'a> = (&'a [&'a str], &'a str);

/// P opens the association by an INIT with `params`, and its chunks come each in a packet, or all in one. The last breaks the
/// protocol: E sends an ABORT that says how, tells its application the same, and is silent from then on.
fn ends_with_a_violation(settings: &str, params: &str, (chunks, why): Case<'_>) {
    for between in ["\npass 300 ms\n< ", " | "] {
        play(&format!(
            "
            {settings}
            < INIT params={params}
            > tag=init INIT-ACK
            < COOKIE-ECHO
            > COOKIE-ACK
            < {chunks}
            > ABORT causes=13 why={words}
            event Closed(PeerFault(\"{why}\"))
            state CLOSED
            nothing within 100 s
            ",
            chunks = chunks.join(between),
            words = why.replace(' ', "-"),
        ));
    }
}

/// What does not begin a message goes on with one, in the TSN before it; what does not end one is followed by the rest.
const NO_BEGINNING: &str = "a fragment without the first of its message before it";
const NO_ENDING: &str = "a fragment without the last of its message behind it";
const DIFFER: &str = "fragments of one message differ in stream, SSN or U bit";
const OUT_OF_SEQUENCE: &str = "number of a message that was delivered before, or too far ahead for its TSN";

/// §3.3.1, §6.9: the fragments of a message have consecutive TSNs from one with B to one with E; none of it is missing and
/// nothing lies between them.
#[test]
fn fragments_that_contradict_their_neighbours_end_the_association() {
    let cases: [Case<'_>; 12] = [
        // The first of all.
        (&["DATA tsn=1 ssn=0 flags=E"], NO_BEGINNING),
        (&["DATA tsn=1 ssn=0 flags="], NO_BEGINNING),
        // After a whole message, and after the last fragment of one.
        (&["DATA tsn=1 ssn=0", "DATA tsn=2 ssn=1 flags=E"], NO_BEGINNING),
        (&["DATA tsn=1 ssn=0", "DATA tsn=2 ssn=1 flags="], NO_BEGINNING),
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 ssn=0 flags=E", "DATA tsn=3 ssn=1 flags=E"], NO_BEGINNING),
        // Another message in place of the rest.
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 ssn=0 flags=B"], NO_ENDING),
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 ssn=1"], NO_ENDING),
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 ssn=0 flags=", "DATA tsn=3 ssn=1 flags=B"], NO_ENDING),
        // The later one first.
        (&["DATA tsn=2 ssn=0 flags=E", "DATA tsn=1 ssn=0"], NO_BEGINNING),
        (&["DATA tsn=3 ssn=1 flags=B", "DATA tsn=2 ssn=0 flags="], NO_ENDING),
        // Between messages that are no longer held.
        (&["DATA tsn=3 flags=UBE", "DATA tsn=1 ssn=0", "DATA tsn=2 ssn=1 flags=B"], NO_ENDING),
        (&["DATA tsn=3 flags=UBE", "DATA tsn=1 ssn=0", "DATA tsn=2 ssn=1 flags=E"], NO_BEGINNING),
    ];
    for case in cases {
        ends_with_a_violation("", "", case);
    }
}

/// §3.3.1, §6.9: and all of them have its stream, its U bit, and its SSN if it is ordered.
#[test]
fn fragments_of_one_message_that_differ_end_the_association() {
    let cases: [Case<'_>; 6] = [
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 stream=1 ssn=0 flags=E"], DIFFER),
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 ssn=1 flags=E"], DIFFER),
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 ssn=0 flags=UE"], DIFFER),
        (&["DATA tsn=1 ssn=0 flags=UB", "DATA tsn=2 ssn=0 flags="], DIFFER),
        (&["DATA tsn=2 stream=1 ssn=0 flags=", "DATA tsn=1 ssn=0 flags=B"], DIFFER),
        // The rest of it on a stream that does not exist is acknowledged and thrown away, and then it is missing.
        (&["DATA tsn=1 ssn=0 flags=B", "DATA tsn=2 stream=10 ssn=0 flags=E"], NO_ENDING),
    ];
    for case in cases {
        ends_with_a_violation("with inbound_streams = 10", "", case);
    }
}

/// §6.6: an unordered message has no SSN, so its fragments may say there what they like.
#[test]
fn fragments_of_an_unordered_message_may_differ_in_their_ssn() {
    play(
        "
        accepted
        < DATA tsn=1 ssn=3 flags=UB len=7 | DATA tsn=2 ssn=4 flags=UE len=5
        > SACK cum=2
        read len=12
        ",
    );
}

/// §6.5: each message of a stream has the next SSN.
#[test]
fn numbers_that_contradict_each_other_end_the_association() {
    let cases: [Case<'_>; 4] = [
        (&["DATA tsn=1 ssn=0", "DATA tsn=2 ssn=0"], OUT_OF_SEQUENCE),
        (&["DATA tsn=1 ssn=0", "DATA tsn=2 ssn=3"], OUT_OF_SEQUENCE),
        (&["DATA tsn=3 ssn=1", "DATA tsn=4 ssn=1"], "two messages with the same number"),
        (
            &["DATA tsn=3 ssn=1", "DATA tsn=4 ssn=1 flags=B", "DATA tsn=5 ssn=1 flags=E"],
            "two messages with the same number",
        ),
    ];
    for case in cases {
        ends_with_a_violation("", "", case);
    }
}

/// RFC 8260 §2.1, §2.2.3: a message is known by stream, U bit and MID; its fragments count from 0, which only the first has,
/// to that with E, and each number comes once.
#[test]
fn fragments_in_i_data_that_contradict_each_other_end_the_association() {
    let (same_fsn, same_mid) = ("two fragments with the same FSN", "two messages with the same MID");
    let beyond = "a fragment beyond the end of its message";
    let cases: [Case<'_>; 13] = [
        (&["I-DATA tsn=1 flags=E fsn=0"], "FSN 0 in a fragment that begins no message"),
        (&["I-DATA tsn=1 flags=B", "I-DATA tsn=2 flags=B"], same_fsn),
        (&["I-DATA tsn=1 flags=B", "I-DATA tsn=2 flags= fsn=1", "I-DATA tsn=3 flags=E fsn=1"], same_fsn),
        (&["I-DATA tsn=1 flags= fsn=2", "I-DATA tsn=2 flags= fsn=2"], same_fsn),
        (&["I-DATA tsn=1 flags=E fsn=2", "I-DATA tsn=2 flags= fsn=3"], beyond),
        (&["I-DATA tsn=1 flags=E fsn=2", "I-DATA tsn=2 flags=E fsn=1"], beyond),
        (&["I-DATA tsn=1 flags= fsn=3", "I-DATA tsn=2 flags=E fsn=2"], beyond),
        (&["I-DATA tsn=1 flags=B", "I-DATA tsn=2"], same_mid),
        (&["I-DATA tsn=1 flags=UB mid=7", "I-DATA tsn=2 flags=UBE mid=7"], same_mid),
        // One that waits, complete, for the message before it.
        (&["I-DATA tsn=1 mid=1", "I-DATA tsn=2 mid=1"], "two messages with the same number"),
        (&["I-DATA tsn=1 mid=1", "I-DATA tsn=2 mid=1 flags=B"], same_mid),
        (&["I-DATA tsn=1", "I-DATA tsn=2"], "MID of a message that was delivered"),
        (&["I-DATA tsn=1", "I-DATA tsn=2 flags=E fsn=1"], "MID of a message that was delivered"),
    ];
    for case in cases {
        ends_with_a_violation(INTERLEAVING, SUPPORTS_I_DATA, case);
    }
}

/// E offers I-DATA, and so does P in its Supported Extensions.
const INTERLEAVING: &str = "with interleaving = true";
const SUPPORTS_I_DATA: &str = "8008000540000000";

/// RFC 8260 §2.1: TSNs say nothing of what belongs together, and ordered and unordered messages are numbered apart.
#[test]
fn fragments_in_i_data_may_stand_apart() {
    play(&format!(
        "
        {INTERLEAVING}
        < INIT params={SUPPORTS_I_DATA}
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        < I-DATA tsn=1 flags=B len=1 | I-DATA tsn=2 stream=1 flags=B len=2 | I-DATA tsn=3 flags=UBE len=3
        > SACK cum=3
        read stream=0 len=3
        < I-DATA tsn=4 stream=1 flags=E fsn=1 len=20 | I-DATA tsn=5 flags=E fsn=1 len=10
        > SACK cum=5 within 200 ms
        read stream=1 len=22
        read stream=0 len=11
        "
    ));
}

/// RFC 8260 §2.2.1, §2.3.1: whoever agreed on I-DATA sends neither DATA nor FORWARD TSN, and the other way round.
#[test]
fn chunks_that_were_not_agreed_on_end_the_association() {
    let both = "8008000640c20000c0000004";
    let both_here = "with interleaving = true\nwith partial_reliability = true";
    ends_with_a_violation(INTERLEAVING, SUPPORTS_I_DATA, (&["DATA"], "DATA although I-DATA was agreed on"));
    ends_with_a_violation("", "", (&["I-DATA"], "I-DATA although it was not agreed on"));
    ends_with_a_violation(both_here, both, (&["FORWARD-TSN"], "FORWARD TSN although I-DATA was agreed on"));
    ends_with_a_violation(
        "with partial_reliability = true",
        "c0000004",
        (&["BYTES c200000800000001"], "I-FORWARD-TSN although I-DATA was not agreed on"),
    );
}

/// §6.2, §3.3.10.9: DATA without user data ends the association with the cause that is made for it and names its TSN, be it new,
/// a copy, a fragment, or behind others.
#[test]
fn data_of_nothing_ends_the_association_with_its_own_cause() {
    for (chunks, tsn) in [
        ("DATA tsn=1 len=0", 1),
        ("DATA tsn=9 len=0", 9),
        ("DATA tsn=1 | DATA tsn=1 len=0", 1),
        ("DATA tsn=1 | DATA tsn=2 len=0 | DATA tsn=3", 2),
        ("DATA tsn=1 ssn=0 flags=B | DATA tsn=2 ssn=0 flags=E len=0", 2),
    ] {
        for (set_up, between) in
            [("accepted", ""), ("< INIT\n> tag=init INIT-ACK", "COOKIE-ECHO | "), (CLOSING, "")]
        {
            play(&format!(
                "
                {set_up}
                < {between}{chunks}
                > ABORT causes=9 tsn={tsn}
                event Closed(PeerFault(\"DATA without user data\"))
                state CLOSED
                nothing within 100 s
                "
            ));
        }
    }
}

/// Data still comes from a peer that was told to shut down.
const CLOSING: &str = "accepted\ncall shutdown\n> SHUTDOWN";

/// The same of I-DATA, which RFC 8260 §2.1 treats alike.
#[test]
fn i_data_of_nothing_ends_the_association_with_the_same_cause() {
    play(&format!(
        "
        {INTERLEAVING}
        < INIT params={SUPPORTS_I_DATA}
        > tag=init INIT-ACK
        < COOKIE-ECHO
        > COOKIE-ACK
        < I-DATA tsn=1 len=0
        > ABORT causes=9 tsn=1
        event Closed(PeerFault(\"DATA without user data\"))
        "
    ));
}

/// §6.5, §3.3.10.1: a stream that does not exist is no reason to end: the TSN is acknowledged, an ERROR names the stream, and
/// the association goes on.
#[test]
fn a_stream_that_does_not_exist_is_reported_and_ends_nothing() {
    play(
        "
        with inbound_streams = 10
        accepted
        < DATA tsn=1 stream=10 ssn=7
        > ERROR causes=1 stream=10 | SACK cum=1
        < DATA tsn=2 stream=65535 ssn=0 flags=B | DATA tsn=3 stream=65535 ssn=0 flags=E
        > ERROR causes=1 stream=65535 | ERROR causes=1 stream=65535
        > SACK cum=3 after 200 ms
        discards no_such_stream = 3
        < DATA tsn=4 stream=9 ssn=0
        > SACK cum=4 within 200 ms
        read stream=9 len=10
        state ESTABLISHED
        ",
    );
}
