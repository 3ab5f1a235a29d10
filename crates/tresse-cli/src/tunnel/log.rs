//! The log on standard error: a line for a person, or a JSON object with the fields of each event.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber, warn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::failure::lacks_descriptors;

/// Begins to log. A second call in one process changes nothing.
pub(super) fn begin(level: Level, json: bool) {
    // A line that cannot be written, as on a full disk, is lost. To report that on standard error would fail as well, and panic.
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let _ = match json {
        true => log.json().flatten_event(true).with_target(false).try_init(),
        false => log.event_format(Plain).try_init(),
    };
}

/// Warns that a connection failed, if that is because of a shortage of descriptors; returns whether it is. A flood of connections
/// gives one line a second.
pub(super) fn warn_of_shortage(error: &io::Error, line: &str) -> bool {
    let is_shortage = lacks_descriptors(error);
    if is_shortage {
        SHORTAGES.warn(line.to_owned());
    }
    is_shortage
}

static SHORTAGES: Seldom = Seldom::new();

/// Warnings of one kind: the first is logged at once, and then once a second the number of further ones, with the last of them.
struct Seldom(Mutex<Option<Held>>);

/// Warnings since the last line of their kind.
#[derive(Default)]
struct Held {
    count: u64,
    last: String,
}

impl Seldom {
    const fn new() -> Self {
        Seldom(Mutex::new(None))
    }

    fn warn(&'static self, line: String) {
        if let Some(line) = self.admit(line) {
            warn!("{line}");
            tokio::spawn(async {
                loop {
                    sleep(BETWEEN_LINES).await;
                    let Some(Held { count, last }) = self.next() else { return };
                    warn!(count, "{last}; {count} failed like this within a second");
                }
            });
        }
    }

    /// Returns the line if it may be logged now, and otherwise holds it back.
    fn admit(&self, line: String) -> Option<String> {
        let mut held = self.held();
        match &mut *held {
            Some(held) => {
                *held = Held { count: held.count + 1, last: line };
                None
            }
            None => {
                *held = Some(Held::default());
                Some(line)
            }
        }
    }

    /// Returns the warnings that were held back. If there are none, the next one is logged at once.
    fn next(&self) -> Option<Held> {
        let mut held = self.held();
        let some = held.take().filter(|held| held.count > 0)?;
        *held = Some(Held::default());
        Some(some)
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// Format of a line: `tresse: ` and the message, which includes the content of all fields.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut message = Message(String::new());
        event.record(&mut message);
        writeln!(writer, "tresse: {}", message.0)
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_a_kind_are_counted_and_none_is_lost() {
        let warnings = Seldom::new();
        let admitted = |line: &str| warnings.admit(line.to_owned());
        let next = || warnings.next().map(|held| (held.count, held.last));
        for _ in 0..2 {
            assert_eq!(admitted("a").as_deref(), Some("a"));
            assert_eq!((admitted("b"), admitted("c")), (None, None));
            assert_eq!(next(), Some((2, "c".to_owned())));
            assert_eq!(admitted("d"), None);
            assert_eq!(next(), Some((1, "d".to_owned())));
            assert_eq!(next(), None);
        }
    }
}
