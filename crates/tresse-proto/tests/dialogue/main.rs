//! Scripted dialogues: one endpoint, called E, and a peer, called P, whose every packet is written down.
//!
//! A dialogue is text, a step a line, so that a test reads like the rule that it checks:
//!
//! ```text
//! established                       E has set up the association; P listens
//! < DATA tsn=1 len=10               P sends; it arrives at once
//! > SACK cum=1                      E has answered at this very instant
//! < DATA tsn=2 | DATA tsn=3         two chunks in one packet
//! > SACK cum=3 after 200 ms         and nothing before
//! nothing within 1 s                E sends nothing meanwhile
//! ```
//!
//! **Strict.** What E sends has to be expected: a packet that no `>` line takes is an error, and so are a chunk too
//! many in a packet, a tag that is not P's, and gaps, duplicates, causes or a T bit that are not mentioned. Other fields
//! that a line does not mention are free.
//!
//! | line | meaning |
//! | --- | --- |
//! | `with NAME = VALUE` | a setting of E, on top of the preset `rfc9260`; before everything else |
//! | `endpoint NAME = VALUE` | a setting of E's endpoint |
//! | `paths 2` | how many pairs of addresses there are (1) |
//! | `established`, `accepted` | the set-up, begun by E or by P |
//! | `call connect`, `call send stream=0 len=10 times=1`, `call shutdown`, `call abort`, `call release` | what E's application does |
//! | `read stream=0 len=10`, `read nothing` | what E's application finds |
//! | `< @2 tag=0 CHUNK \| CHUNK` | a packet of P, here over the second path and with another tag than E's |
//! | `< ce CHUNK`, `> ect0 CHUNK` | the codepoint of the packet, where congestion may be marked, or is (ECN) |
//! | `> @2 tag=0 CHUNK \| CHUNK` | a packet of E; `within 1 s`, `after 1 s` or `after 500 ms to 1500 ms` say when |
//! | `nothing within 1 s` | silence |
//! | `pass 1 s` | time in which E may send whatever it likes, this instant included |
//! | `event NAME` | E's application has been told, since the last such line |
//! | `state NAME`, `discards NAME = 1` | what can be seen of E |
//!
//! **Numbers.** TSNs count from 1, the first of their direction, wherever they really begin; `DATA tsn=1-9` is nine chunks. Tags are `E` and `P`, after
//! whom they belong to, `init` for the one in P's last INIT, or numbers. Cookies count from 1 in the order in which E
//! gave them; P echoes the last one, or `cookie=1`, and takes the names of that set-up for its own unless it is `late`. What an
//! error cause has in it is `tsn` or `stream`, or `why`: the text of a Protocol Violation with `-` for each blank.

mod notation;
mod packet;
mod stage;

mod collisions;
mod ecn;
mod engine;
mod errors;
mod faults;
mod loss;
mod paths;
mod probes;
mod sacks;
mod setup;
mod shutdown;
mod tags;
mod windows;

/// Plays a dialogue.
///
/// # Panics
/// At the first step that does not go as written, with all that happened before.
fn play(dialogue: &str) {
    if let Err(failure) = stage::perform(dialogue) {
        panic!("\n{failure}");
    }
}
