//! Numbers with three digits and the unit that suits them, and what limited a transfer, in words.

use std::collections::BTreeMap;

use tresse::LimitTimes;

/// For each limit, by its name, the share of the time that it held.
pub(crate) type Shares = BTreeMap<String, f64>;

pub(crate) fn shares(times: &LimitTimes) -> Shares {
    times.shares().map(|(limit, share)| (limit.name().to_owned(), share)).into()
}

/// The limits that held for at least one percent of the time, the longest first.
pub(crate) fn limit_words(shares: &Shares) -> String {
    let mut shares: Vec<_> = shares.iter().filter(|(_, share)| **share >= 0.01).collect();
    shares.sort_by(|a, b| b.1.total_cmp(a.1));
    // Names may come from a peer and go to a terminal.
    let name = |name: &str| name.replace('_', " ").escape_debug().to_string();
    let word = |(limit, share): &(&String, &f64)| format!("{} {:.0} %", name(limit), **share * 100.0);
    let words = shares.iter().map(word).collect::<Vec<_>>().join(", ");
    if words.is_empty() { "nothing".to_owned() } else { words }
}

/// A rate with three digits, in the unit that suits it.
pub(crate) fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        rate if rate >= 1e9 => format!("{} Gbit/s", three_digits(rate / 1e9)),
        rate if rate >= 1e6 => format!("{} Mbit/s", three_digits(rate / 1e6)),
        rate if rate >= 1e3 => format!("{} kbit/s", three_digits(rate / 1e3)),
        rate => format!("{} bit/s", three_digits(rate)),
    }
}

/// A size with three digits, in the unit that suits it.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tresse::{Limit, LimitTimes};

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
}
