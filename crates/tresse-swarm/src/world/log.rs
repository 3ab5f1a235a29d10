//! Log of a script's events, one line for each, if it is requested.

use tresse_proto::Instant;
use tresse_wire::dissect;

use super::wire::Passage;

/// The lines; `None` if the log is not requested.
pub(super) struct Log(Option<Vec<String>>);

impl Log {
    /// Returns a log that keeps no lines.
    pub(super) fn silent() -> Self {
        Log(None)
    }

    /// Returns a log that keeps its lines.
    pub(super) fn written() -> Self {
        Log(Some(Vec::new()))
    }

    pub(super) fn line(&mut self, now: Instant, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(format!("{:>12.6} {}", now.as_secs_f64(), line()));
        }
    }

    /// Logs a packet that was sent, with its arrival time.
    pub(super) fn packet(&mut self, now: Instant, passage: &Passage) {
        self.line(now, || {
            let packet = &passage.packet;
            let arrives = match passage.at {
                Some(at) => format!("{:+.6}{}", at.since(now).as_secs_f64(), passage.fate),
                None => passage.fate.to_owned(),
            };
            let twice = if passage.twice { " twice" } else { "" };
            let (source, destination) = (packet.source, packet.destination);
            format!(
                "{} {source} > {destination} [{arrives}{twice}] {}",
                packet.to.peer().name(),
                dissect(&packet.payload)
            )
        });
    }

    pub(super) fn lines(self) -> Vec<String> {
        self.0.unwrap_or_default()
    }
}
