//! Numbers with units, such as "25ms", "64KiB" or "10Mbit/s": parsing and printing.
//!
//! A bare number is refused, except `0`, because its unit would be a guess.

use std::time::Duration;

/// Error of a text that is no quantity of the expected kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{text}\" is not {wanted}")]
pub struct UnitError {
    text: String,
    wanted: &'static str,
}

const DURATION: &str = "a duration such as \"25ms\" (units ns, us, ms, s, min, h)";
const SIZE: &str = "a size such as \"64KiB\" (units B, kB, MB, GB, KiB, MiB, GiB)";
const RATE: &str = "a rate such as \"10Mbit/s\" (units bit/s, kbit/s, Mbit/s, Gbit/s)";

/// Parses a duration.
///
/// # Errors
/// The text is not a non-negative number followed by ns, us, ms, s, min or h.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let scale =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
    let nanos = parse_scaled(text, &scale, DURATION)?;
    Ok(Duration::from_nanos(nanos.round() as u64))
}

/// Parses a size in bytes.
///
/// # Errors
/// The text is not a non-negative number followed by B, kB, MB, GB, KiB, MiB or GiB.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let scale = [
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1024.0 * 1024.0),
        ("GiB", 1024.0 * 1024.0 * 1024.0),
    ];
    Ok(parse_scaled(text, &scale, SIZE)?.round() as u64)
}

/// Parses a rate in bits a second.
///
/// # Errors
/// The text is not a non-negative number followed by bit/s, kbit/s, Mbit/s or Gbit/s.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    let scale = [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
    Ok(parse_scaled(text, &scale, RATE)?.round() as u64)
}

/// Prints a duration in the largest unit that keeps it exact to the nanosecond.
pub fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let (divisor, unit) = match nanos {
        0 => (1_000_000_000, "s"),
        n if n % 1_000_000_000 == 0 => (1_000_000_000, "s"),
        n if n % 1_000_000 == 0 => (1_000_000, "ms"),
        n if n % 1_000 == 0 => (1_000, "us"),
        _ => (1, "ns"),
    };
    format!("{}{unit}", nanos / divisor)
}

/// Prints a size in bytes in the largest binary unit that keeps it exact.
pub fn format_size(bytes: u64) -> String {
    let (divisor, unit) = match bytes {
        0 => (1, "B"),
        n if n % (1 << 30) == 0 => (1 << 30, "GiB"),
        n if n % (1 << 20) == 0 => (1 << 20, "MiB"),
        n if n % (1 << 10) == 0 => (1 << 10, "KiB"),
        _ => (1, "B"),
    };
    format!("{}{unit}", bytes / divisor)
}

/// Prints a rate in bits a second in the largest unit that keeps it exact.
pub fn format_rate(bits_per_second: u64) -> String {
    let (divisor, unit) = match bits_per_second {
        0 => (1, "bit/s"),
        n if n % 1_000_000_000 == 0 => (1_000_000_000, "Gbit/s"),
        n if n % 1_000_000 == 0 => (1_000_000, "Mbit/s"),
        n if n % 1_000 == 0 => (1_000, "kbit/s"),
        _ => (1, "bit/s"),
    };
    format!("{}{unit}", bits_per_second / divisor)
}

fn parse_scaled(text: &str, scale: &[(&str, f64)], wanted: &'static str) -> Result<f64, UnitError> {
    let refuse = || UnitError { text: text.to_owned(), wanted };
    let trimmed = text.trim();
    if trimmed == "0" {
        return Ok(0.0);
    }
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(refuse)?;
    let (number, unit) = trimmed.split_at(split);
    let number: f64 = number.parse().map_err(|_| refuse())?;
    let unit = unit.trim();
    let (_, factor) = scale.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?;
    let value = number * factor;
    // Above 2^53 an f64 cannot represent every integer.
    if value.is_finite() && value <= 9_007_199_254_740_992.0 { Ok(value) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_type() {
        assert_eq!(parse_duration("25ms"), Ok(Duration::from_millis(25)));
        assert_eq!(parse_duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_rate("10Mbit/s"), Ok(10_000_000));
        assert_eq!(parse_size("0"), Ok(0));
    }

    #[test]
    fn refuses_bare_and_senseless_numbers() {
        for text in ["25", "ms", "-1s", "1e3s", "25 parsecs", "", "1..2s", "99999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for text in ["25ms", "1s", "1500us", "7ns"] {
            assert_eq!(parse_duration(text).map(format_duration), Ok(text.to_owned()));
        }
        for text in ["64KiB", "1MiB", "1500B", "0B"] {
            assert_eq!(parse_size(text).map(format_size), Ok(text.to_owned()));
        }
        for text in ["10Mbit/s", "56kbit/s", "7bit/s"] {
            assert_eq!(parse_rate(text).map(format_rate), Ok(text.to_owned()));
        }
    }
}
