//! Events of an association other than messages, as text and with their times.

use std::time::Instant;

use serde::Serialize;
use tresse::{Event, Events, Reconfiguration, ReconfigurationOutcome, Streams};

/// One event.
#[derive(Serialize)]
pub(super) struct EventRecord {
    /// Seconds since the association was set up.
    seconds: f64,
    what: String,
}

impl EventRecord {
    /// Returns the event as a line of text.
    pub(super) fn line(&self) -> String {
        format!("  {:.2} s: {}", self.seconds, self.what)
    }
}

/// Records events until the association ends, `KEPT` at most.
pub(super) async fn record(source: &mut Events, since: Instant, events: &mut Vec<EventRecord>) {
    while let Some(event) = source.next().await {
        let what = event.map_or_else(|missed| Some(missed.to_string()), |event| words(&event));
        if let Some(what) = what.filter(|_| events.len() < KEPT) {
            events.push(EventRecord { seconds: since.elapsed().as_secs_f64(), what });
        }
    }
}

/// Returns a description of the event; `None` if counters describe it better, or the end of the association is reported anyway.
fn words(event: &Event) -> Option<String> {
    Some(match event {
        Event::PathChanged { path, state } => format!("path {} turned {}", path.index(), state.name()),
        Event::Restarted { .. } => "the peer restarted".to_owned(),
        Event::PeerAdaptation { code } => format!("the peer's adaptation layer is {code}"),
        Event::SchedulerFailed { kind, name, fault } => format!("the {kind} {name} failed: {fault}"),
        Event::OutboundReset(streams) => format!("outbound {} began anew", list(streams)),
        Event::InboundReset(streams) => format!("inbound {} began anew", list(streams)),
        Event::AssociationReset { .. } => "all streams began anew".to_owned(),
        Event::StreamsAdded { outbound_streams, inbound_streams } => {
            format!("there are {outbound_streams} outbound and {inbound_streams} inbound streams now")
        }
        Event::Reconfigured { request, outcome } => answered(request, *outcome),
        Event::PeerShutdown => "the peer began a shutdown".to_owned(),
        _ => return None,
    })
}

fn list(streams: &Streams) -> String {
    match streams {
        Streams::All => "streams".to_owned(),
        Streams::These(streams) => {
            let numbers: Vec<String> = streams.iter().map(|stream| stream.0.to_string()).collect();
            format!("streams {}", numbers.join(","))
        }
    }
}

fn answered(request: &Reconfiguration, outcome: ReconfigurationOutcome) -> String {
    let what = match request {
        Reconfiguration::ResetOutbound(streams) => format!("to reset outbound {}", list(streams)),
        Reconfiguration::ResetInbound(streams) => format!("to reset inbound {}", list(streams)),
        Reconfiguration::ResetAssociation => "to reset everything".to_owned(),
        Reconfiguration::AddOutbound(count) => format!("to add {count} outbound streams"),
        Reconfiguration::AddInbound(count) => format!("to add {count} inbound streams"),
        _ => "to change streams".to_owned(),
    };
    match outcome {
        ReconfigurationOutcome::Performed => format!("the peer agreed {what}"),
        ReconfigurationOutcome::Denied => format!("the peer refused {what}"),
        ReconfigurationOutcome::Failed(why) => format!("the peer could not be brought {what}: {why}"),
        _ => format!("the peer answered the request {what}"),
    }
}

/// Most events that are recorded, so that memory is bounded.
const KEPT: usize = 1000;
