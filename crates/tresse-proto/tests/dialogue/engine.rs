//! The engine itself: what does not go as written is noticed, and said so that it can be mended.

use crate::stage::perform;

/// The words of a dialogue's failure that say why.
fn failure(dialogue: &str) -> String {
    let failure = perform(dialogue).expect_err("it must fail");
    failure.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn what_goes_as_written_passes() {
    perform("accepted\n< DATA tsn=1\n> SACK cum=1\nread stream=0 len=10\nread nothing\nstate ESTABLISHED")
        .expect("as written");
}

#[test]
fn a_packet_that_is_missing_late_or_early_is_noticed() {
    let missing = failure("accepted\n< DATA tsn=1\n> SACK cum=1\n> SACK cum=1");
    assert_eq!(missing, "line 4, `> SACK cum=1`: E has sent nothing");
    let late = failure("accepted\n< DATA tsn=1\n> SACK\n< DATA tsn=2\n> SACK cum=2 within 199 ms");
    assert!(late.ends_with("E has sent nothing"), "{late}");
    let early = failure("accepted\n< DATA tsn=1\n> SACK\n< DATA tsn=2\n> SACK cum=2 after 201 ms");
    assert!(early.contains("after 200ms came SACK cum=2"), "{early}");
}

#[test]
fn a_packet_that_nobody_expects_is_noticed() {
    let next = failure("accepted\n< DATA tsn=1\ncall shutdown");
    assert!(next.contains("E has sent what was not expected: SACK cum=1"), "{next}");
    let silence = failure("accepted\n< DATA tsn=1\n> SACK\n< DATA tsn=2\nnothing within 1 s");
    assert!(silence.contains("E has sent what was not expected: SACK cum=2"), "{silence}");
    let end = failure("accepted\n< DATA tsn=1");
    assert!(end.starts_with("at the end: E has sent what was not expected"), "{end}");
}

#[test]
fn every_part_of_a_packet_counts() {
    let sack =
        |expected: &str| failure(&format!("accepted\n< DATA tsn=1 | DATA tsn=3 | DATA tsn=3\n{expected}"));
    assert!(sack("> SACK cum=2 gaps=3-3 dups=3").ends_with("dups=3"));
    assert!(sack("> SACK cum=1 gaps=3-3").contains("came SACK cum=1"), "a duplicate is not mentioned");
    assert!(sack("> SACK cum=1 dups=3").contains("came SACK cum=1"), "a gap is not mentioned");
    assert!(sack("> DATA tsn=1").contains("came SACK cum=1"));
    assert!(sack("> SACK cum=1 gaps=3-3 dups=3 | DATA tsn=1").contains("came SACK cum=1"));
    assert!(sack("> tag=E SACK cum=1 gaps=3-3 dups=3").contains("its tag is 0x50000001"));
    assert!(sack("> @2 SACK cum=1 gaps=3-3 dups=3").contains("it went from 10.0.0.1 to 10.0.0.2"));
}

#[test]
fn events_states_counters_and_messages_count_too() {
    assert!(failure("accepted\nevent Closed").contains("told was []"));
    assert!(failure("accepted\nstate CLOSED").contains("the state is ESTABLISHED"));
    assert!(failure("accepted\ndiscards wrong_tag = 1").contains("it is 0"));
    assert!(failure("accepted\ndiscards wrong_word = 1").contains("no such counter"));
    assert!(failure("accepted\nread stream=0 len=10").contains("nothing to read"));
    assert!(
        failure("accepted\n< DATA tsn=1\n> SACK\nread stream=1 len=10").contains("stream=0 ssn=0 len=10")
    );
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    for (dialogue, why) in [
        ("accepted\nsay hello", "line 2, `say hello`: no line begins like this"),
        (
            "> SACK within 3 apples",
            "line 1, `> SACK within 3 apples`: `apples` is no unit of time: us, ms or s",
        ),
        ("accepted\n< BISCUIT", "line 2, `< BISCUIT`: P cannot send a `BISCUIT`"),
        ("accepted\n< COOKIE-ECHO cookie=2", "line 2, `< COOKIE-ECHO cookie=2`: no such cookie"),
        ("accepted\ncall sing", "line 2, `call sing`: E's application cannot sing"),
        ("with rto_min = 1\naccepted", "line 1: "),
    ] {
        let found = failure(dialogue);
        assert!(found.contains(why), "{found}");
    }
}
