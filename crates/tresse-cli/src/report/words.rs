//! Text for people: numbers with three digits and a fitting unit, explanations of limits, and text of peers with its control characters
//! escaped.

use std::collections::BTreeMap;

use tresse::{Limit, LimitTimes};

/// For each limit, by its name, the share of the time that it held.
pub(crate) type Shares = BTreeMap<String, f64>;

pub(crate) fn shares(times: &LimitTimes) -> Shares {
    times.shares().map(|(limit, share)| (limit.name().to_owned(), share)).into()
}

/// Returns the limits that held for at least one percent of the time, the longest first.
pub(crate) fn limit_words(shares: &Shares) -> String {
    let mut shares: Vec<_> = shares.iter().filter(|(_, share)| **share >= 0.01).collect();
    shares.sort_by(|a, b| b.1.total_cmp(a.1));
    // Names may come from a peer.
    let name = |name: &str| printable(&name.replace('_', " "));
    let word = |(limit, share): &(&String, &f64)| format!("{} {:.0} %", name(limit), **share * 100.0);
    let words = shares.iter().map(word).collect::<Vec<_>>().join(", ");
    if words.is_empty() { "nothing".to_owned() } else { words }
}

/// Returns an explanation of the limit that held longest, and a remedy; `None` if no limit stands out.
pub(crate) fn meaning(shares: &Shares) -> Option<&'static str> {
    main_limit(shares).map(explained)
}

/// Returns the limit that held longest, if it stands out.
pub(crate) fn main_limit(shares: &Shares) -> Option<Limit> {
    let (longest, share) = shares.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    Limit::ALL.into_iter().find(|limit| limit.name() == longest && *share >= STANDS_OUT)
}

/// Returns an explanation of a limit, and a remedy.
pub(crate) fn explained(limit: Limit) -> &'static str {
    match limit {
        Limit::Full => {
            "the paths are full: a queue stood in the network all the time, as round trips never came down to their shortest"
        }
        Limit::CongestionWindow => {
            "the network set the pace: losses or marks kept the windows smaller than the paths, or they still grew"
        }
        Limit::Pacing => {
            "pacing set the pace, at the window over the round trip: no queue stood yet, and no buffer was short"
        }
        Limit::Burst => "the burst limit set the pace: a larger max_burst, or 0, lets more leave at once",
        Limit::ReceiveBuffer => {
            "the receiver's buffer set the pace, with what came early, was not read yet, or is still under way: \
             paths that are not full need a larger receive_buffer there"
        }
        Limit::SendBuffer => {
            "the sender's buffer set the pace, with what was not acknowledged yet: paths that are not full need a \
             larger send_buffer there"
        }
        Limit::Scheduler => {
            "data waited that was not for the paths with room: stream_map and the schedulers say which is"
        }
        Limit::Application => "the sender had no more to send: the paths could have carried more",
        Limit::Host => {
            "this host set the pace: packets left later than they might have, as the processor was busy or woke up late"
        }
        Limit::Path => "no path could be used: `tresse doctor --to` finds what is in the way",
        _ => "nothing held the data up but this host's own pace",
    }
}

/// Returns text with its control characters escaped, so that it cannot control a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\'' | '"' | '\\' => shown.push(letter),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

/// Returns a rate with three digits and a fitting unit.
pub(crate) fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        rate if rate >= 1e9 => format!("{} Gbit/s", three_digits(rate / 1e9)),
        rate if rate >= 1e6 => format!("{} Mbit/s", three_digits(rate / 1e6)),
        rate if rate >= 1e3 => format!("{} kbit/s", three_digits(rate / 1e3)),
        rate => format!("{} bit/s", three_digits(rate)),
    }
}

/// Returns a size with three digits and a fitting unit.
pub(crate) fn size(bytes: u64) -> String {
    match bytes as f64 {
        size if size >= 1e9 => format!("{} GB", three_digits(size / 1e9)),
        size if size >= 1e6 => format!("{} MB", three_digits(size / 1e6)),
        size if size >= 1e3 => format!("{} kB", three_digits(size / 1e3)),
        _ => format!("{bytes} B"),
    }
}

fn three_digits(number: f64) -> String {
    let decimals = match number {
        number if number >= 100.0 || number == 0.0 => 0,
        number if number >= 10.0 => 1,
        _ => 2,
    };
    format!("{number:.decimals$}")
}

/// The share of the time from which on a limit stands out.
const STANDS_OUT: f64 = 0.5;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(rate(1_234_000_000.0), "1.23 Gbit/s");
        assert_eq!(rate(56_000.0), "56.0 kbit/s");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(size(1_000_000_000), "1.00 GB");
        assert_eq!(size(176_488_000), "176 MB");
        assert_eq!(size(999), "999 B");
    }

    #[test]
    fn the_longest_limit_comes_first() {
        let mut times = LimitTimes::default();
        times.add(Limit::CongestionWindow, Duration::from_secs(6));
        times.add(Limit::ReceiveBuffer, Duration::from_secs(3));
        times.add(Limit::Nothing, Duration::from_secs(1));
        assert_eq!(limit_words(&shares(&times)), "congestion window 60 %, receive buffer 30 %, nothing 10 %");
        assert_eq!(limit_words(&Shares::new()), "nothing");
    }

    #[test]
    fn the_limit_that_held_most_of_the_time_is_explained() {
        for limit in Limit::ALL {
            let mut times = LimitTimes::default();
            times.add(limit, Duration::from_secs(6));
            times.add(Limit::Nothing, Duration::from_secs(1));
            assert!(meaning(&shares(&times)).is_some(), "{limit:?}");
        }
        let mut times = LimitTimes::default();
        times.add(Limit::ReceiveBuffer, Duration::from_secs(6));
        times.add(Limit::CongestionWindow, Duration::from_secs(4));
        assert!(meaning(&shares(&times)).is_some_and(|words| words.contains("larger receive_buffer")));
        times.add(Limit::Application, Duration::from_secs(5));
        assert_eq!(meaning(&shares(&times)), None, "three limits, and none for most of the time");
        assert_eq!(meaning(&Shares::new()), None, "no time has passed");
    }

    #[test]
    fn what_strangers_say_reads_as_it_was_said_and_steers_no_terminal() {
        assert_eq!(printable("the peer's \"file\" \\"), "the peer's \"file\" \\");
        assert_eq!(printable("red \u{1b}[31m\r\n"), "red \\u{1b}[31m\\r\\n");
    }
}
