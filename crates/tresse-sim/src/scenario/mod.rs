//! Scenarios: runs as data, with topology, traffic, settings and seed. docs/scenarios.md describes the keys.
//!
//! A scenario keeps the document that it was read from as well as the resolved values. So overrides apply to the
//! document: a changed preset does not change the settings that the document contains itself.

mod cross;
mod error;
mod idle;
mod link;
mod overrides;
mod presence;
mod print;
mod read;
mod section;

use std::collections::BTreeSet;
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
use crate::traffic::{ReadOrder, Refill, Sporadic};

/// A complete and valid scenario.
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
    /// Seed of all random generators.
    pub seed: u64,
    /// Name of the preset from which the settings of the hosts start.
    pub preset: String,
    /// Virtual time before the measurement.
    pub settle: Duration,
    /// Virtual time measured.
    pub measure: Duration,
    /// The sender starts at a random time from its start time to this much later.
    pub start_jitter: Duration,
    /// Settings of the host that opens the association.
    pub sender: AssociationConfig,
    /// Settings of the host that accepts it.
    pub receiver: AssociationConfig,
    /// Processing time of each packet that arrives at or leaves a host.
    pub packet_time: Duration,
    /// The paths between the hosts.
    pub paths: Vec<PathSpec>,
    /// Access links between hosts and the routers of paths with cross traffic, in both directions.
    pub access: LinkSpec,
    /// Cross traffic on the paths.
    pub cross_traffic: Vec<CrossTraffic>,
    /// Traffic of the sender.
    pub traffic: Traffic,
    /// Interval between recorded samples of the state; `None` to record none.
    pub record_interval: Option<Duration>,
    /// True if the repair of losses is recorded.
    pub record_recovery: bool,
    /// True if the sender knows the loss rates of the forward links.
    pub loss_oracle: bool,
}

/// The two directions of a path.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathSpec {
    /// Link from the sender to the receiver.
    pub forward: LinkSpec,
    /// Link from the receiver to the sender.
    pub backward: LinkSpec,
    /// Index of the earlier path whose links this path shares; `None` if it has links of its own.
    pub shares: Option<usize>,
    /// Time during which the path belongs to the association.
    pub presence: Presence,
}

/// Traffic of the sender.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Traffic {
    /// Number of streams in use.
    pub streams: u16,
    /// Sporadic streams among these; the others are saturated.
    pub sporadic: Vec<Sporadic>,
    /// Bytes of every message.
    pub message_size: usize,
    /// True to deliver messages in the order of their stream.
    pub ordered: bool,
    /// Rule that selects the stream of the next message.
    pub refill: Refill,
    /// Order in which the receiver sends a SACK and reads the data that arrived with it.
    pub read: ReadOrder,
    /// Bytes to send, rounded up to whole messages. Then the association is shut down and the run ends. `None` for no
    /// limit.
    pub volume: Option<usize>,
    /// Time at which the association is opened, without jitter.
    pub start: Duration,
    /// Time at which the association is shut down, if any.
    pub stop: Option<Duration>,
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
        let sporadic: BTreeSet<u16> = self.sporadic.iter().map(|one| one.stream).collect();
        (0..self.streams).filter(|stream| !sporadic.contains(stream)).collect()
    }

    /// Returns the number of messages in the volume.
    pub(crate) fn messages(&self) -> Option<u64> {
        self.volume.map(|volume| volume.div_ceil(self.message_size.max(1)) as u64)
    }
}

impl Scenario {
    /// Reads a scenario from the text of a TOML document. Errors name the document `name`; the file stem of `name` is
    /// the scenario's name if it has none of its own.
    ///
    /// # Errors
    /// Text that is not TOML, unknown keys, values that are invalid or contradict each other.
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

    /// Changes one value by its dotted path: `measure`, `transport.send_buffer`, `path.1.delay`. The scenario does not
    /// change if there is an error.
    ///
    /// # Errors
    /// A key that does not exist, or a value that it does not accept.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        self.set_all([(key, value)])
    }

    /// Changes several values together, so that only the result has to be consistent.
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

    /// Returns the document that the scenario was read from, with all later changes.
    pub fn document(&self) -> &Table {
        &self.document
    }

    /// Returns the contents, with every default filled in.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// Returns the settings in the document that have no effect because of others.
    pub fn idle_settings(&self) -> Vec<IdleSetting> {
        idle::idle_settings(&self.document, &self.resolved)
    }

    /// Returns the resolved scenario as a TOML document, which reads back as the same scenario.
    pub fn to_toml(&self) -> String {
        self.to_table().to_string()
    }

    /// Returns the resolved scenario as a table, for conversion to other formats.
    pub fn to_table(&self) -> Table {
        print::table(&self.resolved)
    }

    fn from_document(file: &str, document: Table) -> Result<Self, ScenarioError> {
        let resolved = read::resolve(file, &document)?;
        Ok(Scenario { file: file.to_owned(), document, resolved })
    }
}

/// Returns the text of a file; reads no more than the longest scenario allowed.
fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Length in bytes of the longest scenario: enough for a hundred thousand changes of links.
const LONGEST_FILE: u64 = 16 << 20;

#[cfg(test)]
mod tests;
