//! A run as data: topology, traffic, settings, seed. docs/scenarios.md describes the keys.
//!
//! A scenario keeps the document it was read from besides what it resolved to, so that overrides meet what was
//! written: a changed preset still leaves the settings alone that the document names itself.

mod cross;
mod error;
mod idle;
mod link;
mod overrides;
mod presence;
mod print;
mod read;
mod section;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use toml::Table;
use tresse_proto::AssociationConfig;

pub use error::ScenarioError;
pub use idle::IdleSetting;
pub use presence::Presence;

use crate::link::LinkSpec;
use crate::tcp::CrossTraffic;
use crate::traffic::{ReadOrder, Refill};

/// A scenario, complete and checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    file: String,
    document: Table,
    resolved: Resolved,
}

/// Contents of a scenario, with every default filled in.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// Name of the run.
    pub name: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The bundle of settings that the hosts start from.
    pub preset: String,
    /// Virtual time before the measurement.
    pub settle: Duration,
    /// Virtual time measured.
    pub measure: Duration,
    /// The sender starts at a random time between its start and this much later.
    pub start_jitter: Duration,
    /// Settings of the host that opens the association.
    pub sender: AssociationConfig,
    /// Settings of the host that accepts it.
    pub receiver: AssociationConfig,
    /// Time for which the processor of either host works on each packet that comes or leaves; zero for none.
    pub packet_time: Duration,
    /// The paths between them.
    pub paths: Vec<PathSpec>,
    /// Access links between hosts and the routers of paths with cross traffic, each way.
    pub access: LinkSpec,
    /// Cross traffic on the paths.
    pub cross_traffic: Vec<CrossTraffic>,
    /// Traffic of the sender.
    pub traffic: Traffic,
    /// Interval of samples of the state, if they are recorded.
    pub record_interval: Option<Duration>,
    /// True if the repair of losses is recorded.
    pub record_recovery: bool,
    /// True if the sender is told the loss rates of the forward links.
    pub loss_oracle: bool,
}

/// The two directions of a path.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathSpec {
    /// Link from the sender to the receiver.
    pub forward: LinkSpec,
    /// Back.
    pub backward: LinkSpec,
    /// The position of the path before it whose links these are, if it has none of its own.
    pub shares: Option<usize>,
    /// Time during which it belongs to the association.
    pub presence: Presence,
}

/// Traffic of the sender.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Traffic {
    /// Streams in use.
    pub streams: u16,
    /// Sporadic streams among these; the others are saturated.
    pub sporadic: Vec<Sporadic>,
    /// Bytes of every message.
    pub message_size: usize,
    /// Deliver in the order of the stream.
    pub ordered: bool,
    /// Rule for which stream gets the next message.
    pub refill: Refill,
    /// Order of a SACK and of the reading of what arrived with it, at the receiver.
    pub read: ReadOrder,
    /// Bytes to send, rounded up to whole messages, after which the association is shut down and the run ends;
    /// without, there is no end.
    pub volume: Option<usize>,
    /// Time at which the association is opened, before jitter.
    pub start: Duration,
    /// Time at which it is shut down, if it is.
    pub stop: Option<Duration>,
}

/// A stream on which somebody has something to say now and then.
#[derive(Copy, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Sporadic {
    /// The stream.
    pub stream: u16,
    /// Mean time between messages; exponentially distributed.
    pub gap: Duration,
    /// Bytes of the smallest message and of the largest; uniformly distributed.
    pub size: (usize, usize),
}

impl Default for Traffic {
    /// One saturated stream of full packets, throughout the run.
    fn default() -> Self {
        Traffic {
            streams: 1,
            sporadic: Vec::new(),
            message_size: 1452,
            ordered: true,
            refill: Refill::InTurn,
            read: ReadOrder::BeforeSack,
            volume: None,
            start: Duration::ZERO,
            stop: None,
        }
    }
}

impl Traffic {
    /// The streams that are not sporadic, in order.
    pub(crate) fn saturated(&self) -> Vec<u16> {
        let sporadic = |stream: &u16| self.sporadic.iter().any(|one| one.stream == *stream);
        (0..self.streams).filter(|stream| !sporadic(stream)).collect()
    }

    /// Messages in its volume.
    pub(crate) fn messages(&self) -> Option<u64> {
        self.volume.map(|volume| volume.div_ceil(self.message_size.max(1)) as u64)
    }
}

impl Scenario {
    /// Reads a scenario from the text of a TOML document; `name` stands for the document in errors, and its file
    /// stem for the scenario when that has no name of its own.
    ///
    /// # Errors
    /// Text that is no TOML, unknown keys, values that mean nothing or contradict each other.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, ScenarioError> {
        let document = text.parse::<Table>().map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let before = text.as_bytes().get(..start).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            ScenarioError::Syntax { file: name.to_owned(), line, message }
        })?;
        Self::from_document(name, document)
    }

    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// As [`Scenario::from_toml`], and when the file cannot be read as text.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let file = path.as_ref().display().to_string();
        let text =
            read(path.as_ref()).map_err(|source| ScenarioError::Unreadable { file: file.clone(), source })?;
        Self::from_toml(&text, &file)
    }

    /// Changes one value by its dotted path: `measure`, `transport.send_buffer`, `path.1.delay`. An error leaves
    /// the scenario as it was.
    ///
    /// # Errors
    /// A key that does not exist, or a value that it does not accept.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        self.set_all([(key, value)])
    }

    /// Changes several values together, so that only the result has to make sense.
    ///
    /// # Errors
    /// As [`Scenario::set`].
    pub fn set_all<'a>(
        &mut self,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), ScenarioError> {
        let mut document = self.document.clone();
        for (key, value) in overrides {
            overrides::apply(&self.file, &mut document, key, value)?;
        }
        *self = Self::from_document(&self.file, document)?;
        Ok(())
    }

    /// The document that it was read from, with what was changed since.
    pub fn document(&self) -> &Table {
        &self.document
    }

    /// Contents, with every default filled in.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// The settings that it names and that have no effect beside others.
    pub fn idle_settings(&self) -> Vec<IdleSetting> {
        idle::idle_settings(&self.document, &self.resolved)
    }

    /// The resolved scenario as a TOML document that reads back as the same scenario.
    pub fn to_toml(&self) -> String {
        self.to_table().to_string()
    }

    /// The resolved scenario as a table, for other formats.
    pub fn to_table(&self) -> Table {
        print::table(&self.resolved)
    }

    fn from_document(file: &str, document: Table) -> Result<Self, ScenarioError> {
        let resolved = read::resolve(file, &document)?;
        Ok(Scenario { file: file.to_owned(), document, resolved })
    }
}

/// The text of a file, no more of which is read than a scenario may have.
fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Bytes: a hundred thousand changes of links.
const LONGEST_FILE: u64 = 16 << 20;

#[cfg(test)]
mod tests;
