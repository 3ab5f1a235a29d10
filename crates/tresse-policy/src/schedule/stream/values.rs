//! Configuration text of schedulers whose streams have values: "stream=value" pairs, or one value for each stream.

use std::ops::RangeInclusive;

use tresse_wire::StreamId;

use crate::stream_table::StreamTable;

/// Reads pairs such as "0=1,5=10", or the values of the streams from 0 on, such as "1,10". Empty text has none.
///
/// # Errors
/// A pair that cannot be read, a value outside `accepted`, or a stream that is named twice; as text.
pub(super) fn pairs(config: &str, accepted: RangeInclusive<u16>) -> Result<Vec<(StreamId, u16)>, String> {
    let mut pairs = Vec::new();
    let mut named = StreamTable::<bool>::default();
    let listed = !config.contains('=');
    for (place, text) in config.split(',').map(str::trim).filter(|_| !config.trim().is_empty()).enumerate() {
        let read = if listed { nth(place, text) } else { pair(text) };
        let (stream, value) = read.filter(|(_, value)| accepted.contains(value)).ok_or_else(|| {
            let (lowest, highest) = (accepted.start(), accepted.end());
            format!(
                "\"{text}\" is not a stream and its value; \
                 pairs such as \"0=1,5=10\", or one value a stream, with values from {lowest} to {highest} are accepted"
            )
        })?;
        if std::mem::replace(named.entry(stream), true) {
            return Err(format!("stream {} is named twice", stream.0));
        }
        pairs.push((stream, value));
    }
    Ok(pairs)
}

fn nth(place: usize, text: &str) -> Option<(StreamId, u16)> {
    Some((StreamId(place.try_into().ok()?), text.parse().ok()?))
}

fn pair(text: &str) -> Option<(StreamId, u16)> {
    let (stream, value) = text.split_once('=')?;
    Some((StreamId(stream.trim().parse().ok()?), value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_with_or_without_spaces() {
        let read = Ok(vec![(StreamId(0), 1), (StreamId(5), 10)]);
        assert_eq!(pairs("0=1,5=10", 0..=u16::MAX), read);
        assert_eq!(pairs(" 0 = 1 , 5 = 10 ", 0..=u16::MAX), read);
        assert_eq!(pairs("", 0..=u16::MAX), Ok(vec![]));
        assert_eq!(pairs("1, 10", 0..=u16::MAX), Ok(vec![(StreamId(0), 1), (StreamId(1), 10)]));
    }

    #[test]
    fn what_is_no_pair_is_refused_with_its_text() {
        for bad in ["0", "=", "1=", "=1", "1=2,", "1=2;2=3", "65536=1", "1=65536", "a=1", "1=-1", "1=0"] {
            let refused = pairs(bad, 1..=u16::MAX).unwrap_err();
            assert!(refused.contains("values from 1 to 65535 are accepted"), "{bad}: {refused}");
        }
        assert!(
            pairs("1=2,3", 0..=u16::MAX).unwrap_err().starts_with("\"3\" is not"),
            "all or none is a pair"
        );
        assert!(pairs("1=2,x,3=4", 0..=u16::MAX).unwrap_err().starts_with("\"x\" is not"));
        assert_eq!(pairs("1=2,1=3", 0..=u16::MAX), Err("stream 1 is named twice".to_owned()));
    }
}
