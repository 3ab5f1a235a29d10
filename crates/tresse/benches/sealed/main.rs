//! Cost of encryption for two endpoints in one thread, over memory: goodput compared with unencrypted associations, the CPU time
//! that the cipher alone takes of it, and the key exchange.
//!
//! All take turns, so that the ratios survive a noisy machine. One stream, ordered; IP packets of 1,500 bytes; checksums on;
//! no loss. Time is the CPU time of the thread, of both ends together.

mod cipher;
mod pair;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tresse::security::{Identity, Peers, Security};

use cipher::seconds_per_packet;
use pair::Pair;

/// One that fills a packet, and one of many fragments.
const MESSAGE_SIZES: [usize; 2] = [1408, 65_536];
/// Bytes that are encrypted of a packet with one message of the first size: the header of its DATA chunk, the message, and the type of
/// the record.
const ENCRYPTED_LEN: usize = 16 + MESSAGE_SIZES[0] + 1;
/// Turns of each row.
const TURNS: usize = 9;
/// CPU time of the measured part of a turn, and of the part before it that opens the windows.
const MEASURE: Duration = Duration::from_millis(200);
const WARM_UP: Duration = Duration::from_millis(60);
/// Set-ups in a turn.
const SET_UPS: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::from_pem(Identity::generate_pem()?.as_bytes())?;
    let security = Arc::new(Security::pinned(&identity, &Peers::new([identity.fingerprint()]))?);
    println!("Encryption in memory: medians of {TURNS} turns; CPU of both ends on one thread.\n");
    for size in MESSAGE_SIZES {
        let (mut rates, mut ciphers) = ([Vec::new(), Vec::new()], Vec::new());
        for _ in 0..TURNS {
            for (security, row) in [None, Some(&security)].into_iter().zip(&mut rates) {
                let mut pair = Pair::connected(security)?;
                pair.carry(size, WARM_UP, cpu_time)?;
                let (bytes, spent) = pair.carry(size, MEASURE, cpu_time)?;
                row.push(bytes as f64 / spent.as_secs_f64());
            }
            ciphers.push(seconds_per_packet(ENCRYPTED_LEN, cpu_time)?);
        }
        let [clear, encrypted] = rates.map(|row| median(row) * 8.0 / 1e9);
        let ratio = encrypted / clear;
        println!(
            "{size:>6} B  clear {clear:.2} Gbit/s, encrypted {encrypted:.2}: {ratio:.2} of it (aim: at least 0.5)"
        );
        let cipher = median(ciphers);
        let clear_packet = MESSAGE_SIZES[0] as f64 * 8.0 / (clear * 1e9);
        println!(
            "          AES-128-GCM alone: {:.0} ns a packet beside {:.0} ns in the clear, so {:.2} at most",
            cipher * 1e9,
            clear_packet * 1e9,
            clear_packet / (clear_packet + cipher)
        );
    }
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (security, row) in [None, Some(&security)].into_iter().zip(&mut costs) {
            let begin = cpu_time();
            for _ in 0..SET_UPS {
                Pair::connected(security)?;
            }
            row.push((cpu_time() - begin).as_secs_f64() * 1e6 / f64::from(SET_UPS));
        }
    }
    let [clear, encrypted] = costs.map(median);
    println!(
        "\nset-up: clear {clear:.0} us, encrypted {encrypted:.0} us: {:.0} /s on one core;",
        1e6 / encrypted
    );
    println!("{:.0} us for the agreement on keys (aim: at most 1000)", encrypted - clear);
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time that this thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
