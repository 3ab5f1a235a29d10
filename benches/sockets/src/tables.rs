//! The tables: which sides are started with what, and what is printed of their numbers.

use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::process::{Side, usrsctp};

type Table = fn() -> Result<(), Box<dyn Error>>;

/// Every table with its name.
pub(crate) const TABLES: [(&str, Table); 5] = [
    ("goodput", goodput),
    ("encrypted", encrypted),
    ("associations", associations),
    ("memory", memory),
    ("setups", setups),
];

/// Their names, for a message.
pub(crate) fn names() -> String {
    TABLES.map(|(name, _)| name).join(", ")
}

/// A small record, one that fills a packet, one of many fragments.
const MESSAGES: [usize; 3] = [64, 1436, 65_536];
/// Turns of each row; rows take turns with each other.
const TURNS: usize = 5;
/// Until windows are open, and then what is measured.
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURE: Duration = Duration::from_millis(600);
/// Associations, where many are asked for.
const MANY: usize = 1000;

/// One measurement.
struct Turn {
    bits_per_second: f64,
    cpu_per_gigabyte: f64,
    jain: f64,
}

/// Both sides' part of one measurement of `count` associations.
fn turn(stack: &str, workers: usize, message: usize, count: usize) -> Result<Turn, Box<dyn Error>> {
    let mut server = Side::serve(stack, workers)?;
    let mut client = Side::send(stack, workers, &server, (message, u64::MAX), count)?;
    sleep(WARM_UP);
    let before = [server.mark()?, client.mark()?];
    sleep(MEASURE);
    let after = [server.mark()?, client.mark()?];
    let bytes = (after[0].bytes - before[0].bytes) as f64;
    let cpu: f64 =
        after.iter().zip(&before).map(|(after, before)| (after.cpu - before.cpu).as_secs_f64()).sum();
    Ok(Turn {
        bits_per_second: bytes * 8.0 / (after[0].at - before[0].at).as_secs_f64(),
        cpu_per_gigabyte: cpu / (bytes / 1e9),
        jain: after[0].jain,
    })
}

/// Lowest, median and highest of what `of` says.
fn spread(turns: &[Turn], of: impl Fn(&Turn) -> f64) -> [f64; 3] {
    let mut values: Vec<f64> = turns.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

fn goodput() -> Result<(), Box<dyn Error>> {
    println!(
        "Goodput over UDP on loopback, one association, defaults, one thread a side: median (lowest to highest) of"
    );
    println!(
        "{TURNS} turns of {} ms; CPU seconds of both sides; ratio to plain UDP's median;\n\
         \"many\" is tresse with `send_many` and `recv_many`.\n",
        MEASURE.as_millis()
    );
    println!(
        "{:>8}  {:<8} {:>30} {:>13} {:>9} {:>6}",
        "message", "stack", "goodput", "messages", "CPU-s/GB", "ratio"
    );
    let stacks: Vec<&str> =
        ["udp", "tresse", "many", "quinn"].into_iter().chain(usrsctp().ok().map(|_| "usrsctp")).collect();
    for message in MESSAGES {
        let mut rows: Vec<Vec<Turn>> = stacks.iter().map(|_| Vec::new()).collect();
        for _ in 0..TURNS {
            for (stack, row) in stacks.iter().zip(&mut rows) {
                row.push(turn(stack, 0, message, 1)?);
            }
        }
        let plain = spread(&rows[0], |turn| turn.bits_per_second)[1];
        for (stack, row) in stacks.iter().zip(&rows) {
            let [lowest, median, highest] = spread(row, |turn| turn.bits_per_second / 1e9);
            let goodput = format!("{median:.2} ({lowest:.2} to {highest:.2}) Gbit/s");
            let messages = format!("{:.3} M/s", median * 1e3 / 8.0 / message as f64);
            let cpu = spread(row, |turn| turn.cpu_per_gigabyte)[1];
            let ratio = median * 1e9 / plain;
            println!("{message:>6} B  {stack:<8} {goodput:>30} {messages:>13} {cpu:>9.2} {ratio:>6.2}");
        }
    }
    if let Err(reason) = usrsctp() {
        println!("skipped usrsctp: {reason}");
    }
    println!();
    Ok(())
}

fn encrypted() -> Result<(), Box<dyn Error>> {
    println!(
        "Encryption over UDP on loopback, one association, one thread a side: medians of {TURNS} turns of"
    );
    println!("{} ms; CPU seconds of both sides.\n", MEASURE.as_millis());
    println!("{:>8}  {:<10} {:>16} {:>9}", "message", "stack", "goodput", "CPU-s/GB");
    for message in [1408, 65_536] {
        let stacks = ["tresse", "encrypted", "quinn"];
        let mut rows = stacks.map(|_| Vec::new());
        for _ in 0..TURNS {
            for (stack, row) in stacks.iter().zip(&mut rows) {
                row.push(turn(stack, 0, message, 1)?);
            }
        }
        let rates = rows.each_ref().map(|row| spread(row, |turn| turn.bits_per_second / 1e9)[1]);
        let costs = rows.each_ref().map(|row| spread(row, |turn| turn.cpu_per_gigabyte)[1]);
        for ((stack, rate), cost) in stacks.iter().zip(rates).zip(costs) {
            println!("{message:>6} B  {stack:<10} {rate:>9.2} Gbit/s {cost:>9.2}");
        }
        println!("          CPU of encrypted to clear {:.2} (aim: at most 1.6)", costs[1] / costs[0]);
        println!("          goodput to quinn's {:.2} (aim: at least 1.3)", rates[1] / rates[2]);
        println!("          CPU to quinn's {:.2} (aim: at most 0.8)", costs[1] / costs[2]);
    }
    let [clear, encrypted] = [setup("tresse")?, setup("encrypted")?];
    println!("\n{MANY} set-ups one after the other, an endpoint and a socket for each; CPU of both sides:");
    println!("clear {:.0} /s, {:.0} us each", clear.0, clear.1);
    println!(
        "encrypted {:.0} /s, {:.0} us each: {:.0} us for the handshake\n",
        encrypted.0,
        encrypted.1,
        encrypted.1 - clear.1
    );
    Ok(())
}

fn associations() -> Result<(), Box<dyn Error>> {
    println!(
        "Associations at work at a time, each of an endpoint of its own, to one endpoint; messages of 1,436 B;"
    );
    println!("threads of the runtime on each side (none: on the main thread), drivers of the one endpoint; Jain's index,");
    println!("lowest of {TURNS} turns.\n");
    println!(
        "{:>12} {:>7} {:>7} {:>30} {:>9} {:>6}",
        "associations", "threads", "drivers", "goodput", "CPU-s/GB", "Jain"
    );
    let variants = [("tresse", 0), ("tresse", 2), ("spread", 2)];
    let kinds: Vec<(usize, (&str, usize))> =
        [1, 10, MANY].into_iter().flat_map(|count| variants.map(|variant| (count, variant))).collect();
    let mut rows: Vec<Vec<Turn>> = kinds.iter().map(|_| Vec::new()).collect();
    for _ in 0..TURNS {
        for (&(count, (stack, workers)), row) in kinds.iter().zip(&mut rows) {
            row.push(turn(stack, workers, 1436, count)?);
        }
    }
    for ((count, (stack, workers)), row) in kinds.iter().zip(&rows) {
        let drivers = if *stack == "spread" { *workers } else { 1 };
        let [lowest, median, highest] = spread(row, |turn| turn.bits_per_second / 1e9);
        let goodput = format!("{median:.2} ({lowest:.2} to {highest:.2}) Gbit/s");
        let cpu = spread(row, |turn| turn.cpu_per_gigabyte)[1];
        println!(
            "{count:>12} {workers:>7} {drivers:>7} {goodput:>30} {cpu:>9.2} {:>6.3}",
            spread(row, |turn| turn.jain)[0]
        );
    }
    println!();
    Ok(())
}

fn memory() -> Result<(), Box<dyn Error>> {
    println!(
        "Resident memory of {MANY} endpoints with a socket and an association each, all to one endpoint, in KiB.\n"
    );
    println!("{:<36} {:>12} {:>28}", "", "an endpoint", "an association of the other");
    for (when, messages) in [("never used", 0), ("after 100 messages of 1,436 B", 100)] {
        let mut server = Side::serve("tresse", 0)?;
        let load = (1436, messages);
        let mut one = Side::send("tresse", 0, &server, load, 1)?;
        settle(&mut server, 1436 * messages)?;
        let (single, empty) = (one.mark()?.resident, server.mark()?.resident);
        let mut many = Side::send("tresse", 0, &server, load, MANY + 1)?;
        settle(&mut server, 1436 * messages * (MANY as u64 + 2))?;
        let kibibytes = |from: u64, to: u64| to.saturating_sub(from) as f64 / MANY as f64 / 1024.0;
        let own = kibibytes(single, many.mark()?.resident);
        println!("{when:<36} {own:>12.1} {:>28.1}", kibibytes(empty, server.mark()?.resident));
    }
    println!();
    Ok(())
}

/// Waits until `server` has received so many bytes in all.
fn settle(server: &mut Side, bytes: u64) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    while server.mark()?.bytes < bytes {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err("messages did not arrive within a minute".into());
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn setups() -> Result<(), Box<dyn Error>> {
    println!(
        "Set-ups over UDP on loopback, {MANY} one after the other, an endpoint and a socket for each.\n"
    );
    let (rate, cpu) = setup("tresse")?;
    println!("{rate:.0} /s, {cpu:.0} us of CPU each, both sides\n");
    Ok(())
}

/// Set-ups a second, and microseconds of CPU for each.
fn setup(stack: &str) -> Result<(f64, f64), Box<dyn Error>> {
    let mut rates = Vec::new();
    for _ in 0..TURNS {
        let mut server = Side::serve(stack, 0)?;
        let mut warm = Side::send(stack, 0, &server, (1, 0), 1)?;
        let (begin, before) = (Instant::now(), server.mark()?.cpu + warm.mark()?.cpu);
        let mut client = Side::send(stack, 0, &server, (1, 0), MANY)?;
        let spent = server.mark()?.cpu + client.mark()?.cpu - before;
        rates.push((MANY as f64 / begin.elapsed().as_secs_f64(), spent.as_secs_f64() * 1e6 / MANY as f64));
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    Ok(rates[rates.len() / 2])
}
