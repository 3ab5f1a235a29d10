//! Recorder: takes samples of windows and queues at regular intervals, and keeps them as columns.

use std::time::Duration;

use serde::Serialize;
use tresse_proto::{Instant, Limit, LimitTimes, PathStats};

use crate::host::Host;
use crate::network::{Network, SimEvent};
use crate::route::LinkId;

/// The state of the sender and its paths over time; all columns are as long as `time_s`.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Series {
    /// Virtual time in seconds.
    pub time_s: Vec<f64>,
    /// The peer's receiver window as the sender knows it.
    pub peer_window_bytes: Vec<usize>,
    /// Bytes in the send buffer.
    pub send_buffer_bytes: Vec<usize>,
    /// Bytes in the receiver's buffer.
    pub receive_buffer_bytes: Vec<usize>,
    /// Series of each path.
    pub paths: Vec<PathSeries>,
}

/// Series of one path.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PathSeries {
    /// Congestion window.
    pub cwnd_bytes: Vec<usize>,
    /// Slow-start threshold.
    pub ssthresh_bytes: Vec<usize>,
    /// Bytes in flight.
    pub flight_bytes: Vec<usize>,
    /// Bytes sent and not yet released from the send buffer.
    pub queued_bytes: Vec<usize>,
    /// Smoothed round-trip time, once measured.
    pub srtt_ms: Vec<Option<f64>>,
    /// Packets waiting in the forward link's queue.
    pub link_queue_packets: Vec<usize>,
    /// Limit that held longest on the path since the last sample.
    pub limit: Vec<&'static str>,
}

/// Recorder of a sender, its receiver and the forward links of their paths.
#[derive(Debug)]
pub(crate) struct Recorder {
    interval: Duration,
    sender: usize,
    receiver: usize,
    links: Vec<LinkId>,
    limits: Vec<LimitTimes>,
    series: Series,
}

impl Recorder {
    pub(crate) fn new(interval: Duration, sender: usize, receiver: usize, links: Vec<LinkId>) -> Self {
        let series = Series { paths: vec![PathSeries::default(); links.len()], ..Series::default() };
        Recorder {
            interval,
            sender,
            receiver,
            limits: vec![LimitTimes::default(); links.len()],
            links,
            series,
        }
    }

    /// Schedules the first sample.
    pub(crate) fn start(&self, network: &mut Network<'_>) {
        network.events.push(Instant::ZERO + self.interval, SimEvent::Sample);
    }

    /// Takes a sample and schedules the next. Nothing is recorded before there is an association.
    pub(crate) fn sample(&mut self, now: Instant, hosts: &mut [Host], network: &mut Network<'_>) {
        network.events.push(now + self.interval, SimEvent::Sample);
        let Some((association, paths)) = hosts.get_mut(self.sender).and_then(|host| host.stats(now)) else {
            return;
        };
        let receiver = hosts.get_mut(self.receiver).and_then(|host| host.stats(now));
        self.series.time_s.push(now.as_secs_f64());
        self.series.peer_window_bytes.push(association.peer_window);
        self.series.send_buffer_bytes.push(association.send_buffer_used);
        self.series.receive_buffer_bytes.push(receiver.map_or(0, |(stats, _)| stats.receive_buffer_used));
        for (position, link) in self.links.iter().enumerate() {
            let queue = network.link(*link).waiting(now);
            let path = paths.iter().find(|path| path.id.index() == position);
            self.series.paths[position].push(path, &mut self.limits[position], queue);
        }
    }

    pub(crate) fn into_series(self) -> Series {
        self.series
    }
}

impl PathSeries {
    fn push(&mut self, path: Option<&PathStats>, limits: &mut LimitTimes, queue: usize) {
        self.cwnd_bytes.push(path.map_or(0, |path| path.cwnd));
        self.ssthresh_bytes.push(path.map_or(0, |path| path.ssthresh));
        self.flight_bytes.push(path.map_or(0, |path| path.flight));
        self.queued_bytes.push(path.map_or(0, |path| path.queued));
        self.srtt_ms
            .push(path.and_then(|path| path.srtt.or(path.seen_rtt)).map(|srtt| srtt.as_secs_f64() * 1e3));
        self.link_queue_packets.push(queue);
        let now = path.map_or(*limits, |path| path.limited_by);
        let most = now.since(limits).longest();
        *limits = now;
        // A path that has not joined is as one that is down.
        let before = if path.is_none() { Limit::Path.name() } else { Limit::default().name() };
        self.limit.push(most.map_or(before, Limit::name));
    }
}
