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

Measurements, for operators: the cost of attacks on an endpoint, compared with the cost of honest peers in the same run. `make robustness`
writes this page. The attacks are in `crates/tresse-proto/tests/robustness`. The tests there, which `make test` runs, check bounds on
memory and on answers, and that memory does not grow with the length of an attack. Each attack has PACKETS packets, each of at most
the length that a path of 1500 bytes carries; buffers have BUFFER KiB.

- **CPU for a packet**: time that the endpoint takes for a packet of the attack, divided by that for an honest one.
- **CPU for a byte**: the same for each byte on an Ethernet, headers and gaps included. This ratio matters for floods, which are limited
  by the attacker's line.
- **Memory**: the largest additional memory of the endpoint during the attack, and that divided by the additional memory for honest
  peers: for as many packets of set-ups, or for a receive buffer that the application does not read.
- **Answers**: bytes sent for each byte received. The source of an INIT may be forged, and the INIT ACK is longer than the smallest
  INIT: that is inherent in the handshake. An unknown parameter of an ASCONF is repeated in the answer, but only to a peer that is
  authenticated (RFC 5061 section 4.2.3). No other answer is longer than the packet that caused it, except the SACK for a short
  FORWARD TSN.

| attack | beside | CPU for a packet | CPU for a byte | memory | / honest | answers |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
";

const FOOT: &str = "
The bounds:

- An INIT leaves no state, and a cookie is authenticated: a packet of an unknown host costs one HMAC. A cookie makes one association,
  however often it comes; the tags of at most 16,384 ended associations are kept for this.
- Every chunk counts at least 64 bytes of the receive buffer. If a sixteenth of the buffer is in use, small pieces of large packets
  are copied: so one byte in a packet of padding takes little more memory than it is charged for.
- Ranges of received TSNs, duplicates to report, waiting answers and waiting control chunks have limits of their own; whatever exceeds
  them is dropped and counted (`Discards`).
- Addresses of the peer make at most `max_paths` paths. Each of its requests is carried out once, few answers are kept,
  and an answer fits a packet. A packet without a valid key costs one HMAC. The most expensive state is a path with its measurements:
  an authenticated peer can have one created, and removed again, for 16 bytes each.
- Streams take memory when they are first used, up to 65,535 streams. `inbound_streams` limits their number.
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
