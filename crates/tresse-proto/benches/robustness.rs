//! Cost of attacks on an endpoint, in CPU time and memory, beside that of honest peers in the same run. Prints a page,
//! and with `UPDATE_DOCS` set writes it to docs/robustness.md. The attacks, and tests of their bounds, are in
//! tests/robustness.

#[path = "../tests/robustness/asconf.rs"]
mod asconf;
#[allow(dead_code, reason = "the tests look at more of it")]
#[path = "../tests/robustness/attacks.rs"]
mod attacks;
#[allow(dead_code, unreachable_pub, reason = "tests use more of it")]
#[path = "../tests/common/keys.rs"]
mod keys;
#[path = "../tests/robustness/protected.rs"]
mod protected;
#[path = "../tests/common/signer.rs"]
#[allow(unreachable_pub, reason = "tests sign with it too")]
mod signer;
#[allow(dead_code, reason = "the tests look at more of it")]
#[path = "../tests/robustness/victim.rs"]
mod victim;

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use allocation_counter::measure;
use rustix::time::{ClockId, clock_gettime};

use attacks::{Attack, Honest, Packets, all};
use victim::{BUFFER, Victim};

/// Packets of each attack.
const PACKETS: usize = 10_000;
/// Bytes of an Ethernet that a packet takes beside its own: preamble, frame, gap and IPv4 header.
const AROUND: usize = 58;
/// Turns that everything takes; the fastest counts.
const TURNS: usize = 5;

const HEAD: &str = "# What attacks cost

Written by `make robustness`: an endpoint under attack, beside what honest peers cost it in the same run. The attacks are in
`crates/tresse-proto/tests/robustness`; the tests beside them hold the bounds on memory and on answers in every `make
test`, and that memory does not grow with the length of an attack. Each attack is PACKETS packets, with no more in them than a
path of 1500 bytes carries; buffers have BUFFER KiB.

- **CPU for a packet**: time that the endpoint takes for a packet of the attack, divided by that for an honest one.
- **CPU for a byte**: the same for the bytes that each takes of an Ethernet, headers and gaps included. A flood is limited by the
  attacker's line, so this is what counts.
- **Memory**: the most that the endpoint held at any moment beyond what it held before, and that divided by what honest peers
  make it hold: as many packets of set-ups, or a receive buffer that nobody reads.
- **Answers**: bytes that it sent for each byte received. An INIT may have a forged source, and
  its answer is longer than the smallest INIT: that lies in the handshake. A request about addresses that nobody knows is
  repeated in the answer, to a peer that has proved who it is (RFC 5061 section 4.2.3). Nothing else says more than it heard, but the SACK that answers a short FORWARD TSN.

| attack | beside | CPU for a packet | CPU for a byte | memory | / honest | answers |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
";

const FOOT: &str = "
What bounds it:

- An INIT leaves nothing behind, and a cookie is signed: strangers cost what computing one HMAC does. A cookie makes one association,
  however often it comes; the tags of associations that have ended are kept, 16,384 at most.
- Every chunk counts at least 64 bytes of the receive buffer, and when a sixteenth of it is in use small pieces of large packets
  are kept as copies: one byte in a packet of padding costs little more than its charge.
- Ranges of TSNs that have arrived, duplicates to report, answers that wait and control chunks that wait have limits of their
  own; what exceeds them is dropped and counted (`Discards`).
- Addresses of the peer make `max_paths` paths at the most; each of its requests is done once, the answers that are kept are few,
  and an answer fits a packet. Whoever has no key costs one HMAC a packet. The expensive thing is a path, with all that it measures:
  a peer that has the key can have one made, and ended again, for 16 bytes each.
- Streams cost memory when they are first used: 65,535 of them, if the peer may have as many. `inbound_streams` says how many.
";

fn main() -> Result<(), Box<dyn Error>> {
    let head = HEAD.replace("PACKETS", &PACKETS.to_string()).replace("BUFFER", &(BUFFER / 1024).to_string());
    let mut page = head;
    for attack in all() {
        row(attack, &mut page)?;
    }
    page.push_str(FOOT);
    println!("{page}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/robustness.md"), page)?;
    }
    Ok(())
}

fn row(attack: &Attack, page: &mut String) -> Result<(), Box<dyn Error>> {
    let (mut honest, mut hostile) = (Cost::WORST, Cost::WORST);
    for _ in 0..TURNS {
        honest = honest.or_less(cost(|| attack.beside.make(PACKETS)));
        hostile = hostile.or_less(cost(|| (attack.make)(PACKETS)));
    }
    let (mut victim, packets) = (attack.make)(PACKETS);
    let mut count = victim::Count::default();
    let held = measure(|| count = victim.suffer(&packets)).bytes_max;
    writeln!(
        page,
        "| {} | {} | {:.1} | {:.1} | {:.0} KiB | {:.2} | {:.1} |",
        attack.name,
        words(attack.beside),
        hostile.packet / honest.packet,
        hostile.byte / honest.byte,
        held as f64 / 1024.0,
        held as f64 / honestly_held(attack.beside) as f64,
        count.answered as f64 / count.bytes as f64,
    )?;
    Ok(())
}

fn words(honest: Honest) -> &'static str {
    match honest {
        Honest::SetUps => "set-ups",
        Honest::Messages => "messages of 1000 bytes",
        Honest::Reports => "acknowledgements",
    }
}

/// What peers that behave make an endpoint hold: so many packets of set-ups, or a full receive buffer.
fn honestly_held(beside: Honest) -> u64 {
    let (mut victim, packets) = match beside {
        Honest::SetUps => Honest::SetUps.make(PACKETS),
        Honest::Messages | Honest::Reports => Honest::Messages.make(PACKETS),
    };
    victim.reads = false;
    measure(|| {
        victim.suffer(&packets);
    })
    .bytes_max
}

/// CPU time in seconds.
#[derive(Copy, Clone)]
struct Cost {
    packet: f64,
    byte: f64,
}

impl Cost {
    const WORST: Cost = Cost { packet: f64::INFINITY, byte: f64::INFINITY };

    fn or_less(self, other: Cost) -> Cost {
        Cost { packet: self.packet.min(other.packet), byte: self.byte.min(other.byte) }
    }
}

fn cost(make: impl Fn() -> (Victim, Packets)) -> Cost {
    let (mut victim, packets) = make();
    let before = cpu_time();
    let count = victim.suffer(&packets);
    let spent = (cpu_time() - before).as_secs_f64();
    Cost { packet: spent / count.packets as f64, byte: spent / (count.bytes + count.packets * AROUND) as f64 }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
