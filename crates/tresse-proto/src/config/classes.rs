//! Classes of streams by their purpose, as an application sets them, and their text form.
//!
//! This module is independent of stream maps and of the effects of a class (docs/adaptive.md).

use tresse_policy::StreamClass;
use tresse_wire::StreamId;

use super::switch::SwitchValue;

/// The classes of streams, each stream at most once; streams that are not listed are bulk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamClasses(pub Vec<(StreamId, StreamClass)>);

impl SwitchValue for StreamClasses {
    fn parse(text: &str) -> Option<Self> {
        let mut classes: Vec<(StreamId, StreamClass)> = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            let (stream, class) = pair.split_once('=')?;
            let stream = StreamId(stream.trim().parse().ok()?);
            classes.push((stream, StreamClass::parse(class.trim())?));
        }
        classes.sort_by_key(|(stream, _)| *stream);
        let twice = classes.windows(2).any(|pair| pair[0].0 == pair[1].0);
        (!twice).then_some(StreamClasses(classes))
    }

    fn print(&self) -> String {
        let pairs = self.0.iter().map(|(stream, class)| format!("{}={}", stream.0, class.name()));
        pairs.collect::<Vec<_>>().join(",")
    }

    fn accepted() -> String {
        let names: Vec<&str> = StreamClass::ALL.iter().map(|class| class.name()).collect();
        format!(
            "streams, each named once, with their classes ({}), as in 0=latency,3=background",
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_streams_have_a_text_form() {
        let read = |text| StreamClasses::parse(text);
        let both =
            StreamClasses(vec![(StreamId(0), StreamClass::Latency), (StreamId(3), StreamClass::Background)]);
        assert_eq!(read("3=background, 0 = latency"), Some(both.clone()));
        assert_eq!(both.print(), "0=latency,3=background");
        assert_eq!(read(" "), Some(StreamClasses::default()));
        assert_eq!(StreamClasses::default().print(), "");
        for bad in ["0", "0=fast", "0=latency,", "0=latency,0=bulk", "65536=bulk", "latency"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
