//! Tests of the send queues: fragmentation, the order and path in which messages leave, and the state of the send buffer.

mod classes;
mod cutting;
mod maps;
mod property;
mod silence;
mod withdrawals;

use std::time::Duration;

use super::*;
use crate::config::Size;
use crate::fragment::Fragment;

/// User data of a full chunk.
const FULL: usize = 1452;

/// Send queues with the registry of their schedulers.
struct Bench {
    out: Outbound,
    registry: Registry,
}

impl Bench {
    fn new(paths: usize, config: &AssociationConfig) -> Self {
        Self::with(DataFormat::Data, paths, config)
    }

    /// With one path and chunks of the kind `data_format`.
    fn carrying(data_format: DataFormat, config: &AssociationConfig) -> Self {
        Self::with(data_format, 1, config)
    }

    fn with(data_format: DataFormat, paths: usize, config: &AssociationConfig) -> Self {
        let registry = Registry::default();
        let out = Outbound::new(config, &registry, data_format, 10, paths);
        Bench { out, registry }
    }

    /// Queues a message of `len` equal bytes, which encode its stream and number.
    fn push(&mut self, stream: u16, number: u8, len: usize) -> Result<(), SendError> {
        let options = SendOptions::on(StreamId(stream));
        self.out.push(Instant::ZERO, options, content(stream, number, len))
    }

    /// Queues a short message on each of these streams, in this order and numbered from 0.
    fn push_over(&mut self, streams: &[u16]) {
        for (number, &stream) in streams.iter().enumerate() {
            self.push(stream, number as u8, 100).expect("room");
        }
    }

    /// Cuts the next fragment for an empty packet on `path`.
    fn take(&mut self, path: u8) -> Option<Fragment> {
        let fragment = self.cut(path, FULL, usize::MAX);
        self.out.on_packet_end(PathId(path));
        fragment
    }

    /// Cuts the next fragment for a packet on `path` with so much room, where the peer can take `allowance` bytes.
    fn cut(&mut self, path: u8, room: usize, allowance: usize) -> Option<Fragment> {
        self.out.take(PathId(path), &&view(path), room, FULL, allowance).map(|cut| cut.fragment)
    }

    /// Cuts everything that may leave on `path`; returns the streams in order.
    fn drain(&mut self, path: u8) -> Vec<u16> {
        std::iter::from_fn(|| self.take(path)).map(|fragment| fragment.stream.0).collect()
    }

    fn set_scheduler(&mut self, name: &str) -> Result<(), ScheduleError> {
        self.out.set_scheduler(&self.registry, name, "")
    }

    fn set_map(&mut self, map: StreamMap) {
        self.out.set_map(&self.registry, map).expect("a scheduler that was built before");
    }

    /// Returns the used and the unsent bytes of the send buffer.
    fn bytes(&self) -> (usize, usize) {
        let info = self.out.buffer.info();
        (info.used, info.unsent)
    }
}

fn content(stream: u16, number: u8, len: usize) -> Bytes {
    vec![number ^ (stream as u8) << 4; len].into()
}

fn view(path: u8) -> PathView {
    let mut view = PathView::new(PathId(path));
    view.primary = path == 0;
    view.open = true;
    (view.cwnd, view.ssthresh, view.room) = (14_520, 65_536, 14_520);
    view
}

/// Returns B, E, length and SSN of a fragment.
fn shape(fragment: &Fragment) -> (bool, bool, usize, u16) {
    (fragment.flags.beginning(), fragment.flags.ending(), fragment.payload.len(), fragment.ssn().0)
}

fn config() -> AssociationConfig {
    AssociationConfig { send_buffer: Size(100_000), ..AssociationConfig::default() }
}
