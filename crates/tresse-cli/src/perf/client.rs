//! The side that asks for a measurement and reports on it.

use serde::Serialize;
use tokio::time::timeout;
use tresse::Association;

use super::args::ClientArgs;
use super::exchange::{Ear, Flow, exchange, put};
use super::message::{Ask, Control};
use super::meter::{Interval, Meter};
use super::report::Report;
use super::tally::Tally;
use crate::call::{self, FAREWELL, breach};
use crate::failure::Failure;
use crate::output;
use crate::report::required;
use crate::report::words::printable;
use crate::schedulers;
use crate::signal;

pub(super) async fn run(args: ClientArgs) -> Result<(), Failure> {
    let ask = args.ask();
    let mut config = args.transport.config()?;
    config.outbound_streams = config.outbound_streams.max(args.streams.saturating_add(1));
    let endpoint = args.call.bind(config, args.schedulers.registry()?)?;
    let association = tokio::select! {
        association = args.call.connect(&endpoint) => association?,
        () = signal::interrupted() => return Err(Failure::interrupted("interrupted before anything was measured")),
    };
    if !args.output.quiet {
        args.call.say_links(&association, &endpoint);
    }
    let mut listing = Listing::new(&args);
    let outcome = tokio::select! {
        outcome = measure(&association, &ask, &args, &mut listing) => outcome,
        never = schedulers::watch(association.events(), output::say) => match never {},
        () = signal::interrupted() => Err(Failure::interrupted("interrupted: the intervals show what was measured before")),
    };
    match outcome {
        Ok(_) => drop(timeout(FAREWELL, association.shutdown()).await),
        Err(_) => association.abort("the measurement was given up"),
    }
    drop(association);
    call::say_farewell(&endpoint).await;
    let place = call::list(&args.call.remote());
    let flows = match outcome {
        Ok(flows) => flows,
        Err(failure) => {
            listing.give_up()?;
            return Err(call::with_causes(failure.at(place), &endpoint));
        }
    };
    let report = Report::new(place, ask.load, flows);
    let slowest = report.slowest();
    listing.conclude(report)?;
    required(args.require_throughput, slowest)
}

/// The whole dialogue; intervals are listed as they end.
async fn measure(
    association: &Association,
    ask: &Ask,
    args: &ClientArgs,
    listing: &mut Listing,
) -> Result<(Option<Flow>, Option<Flow>), Failure> {
    let tally = Tally::default();
    let mut ear = Ear::new(association, &tally);
    put(association, Control::Ask(ask.clone())).await?;
    match ear.control().await? {
        Control::Go => {}
        Control::Refuse(reason) => {
            return Err(Failure::usage(format!("the server refused: {}", printable(&reason))));
        }
        _ => return Err(breach("a message out of turn")),
    }
    let mut meter = Meter::new(association, &tally, ask);
    let mut ticks = tokio::time::interval(args.interval);
    ticks.tick().await;
    let work = exchange(&mut ear, ask.client_sends.then_some(&ask.load), ask.server_sends);
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            flows = &mut work => return flows,
            _ = ticks.tick() => listing.add(meter.read())?,
        }
    }
}

/// What goes to standard output, in the form that was asked for.
struct Listing {
    form: Form,
    /// Kept for one document at the end.
    intervals: Vec<Interval>,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Form {
    Lines,
    Document,
    Stream,
    Nothing,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Interval(&'a Interval),
    Result(&'a Report),
}

impl Listing {
    fn new(args: &ClientArgs) -> Self {
        let form = match (args.json_stream, args.output.json, args.output.quiet) {
            (true, _, _) => Form::Stream,
            (_, true, _) => Form::Document,
            (_, _, true) => Form::Nothing,
            _ => Form::Lines,
        };
        Listing { form, intervals: Vec::new() }
    }

    fn add(&mut self, interval: Interval) -> Result<(), Failure> {
        match self.form {
            Form::Lines => output::print(&(interval.lines().join("\n") + "\n")),
            Form::Stream => document(&Line::Interval(&interval)),
            Form::Document => {
                self.intervals.push(interval);
                Ok(())
            }
            Form::Nothing => Ok(()),
        }
    }

    fn conclude(self, report: Report) -> Result<(), Failure> {
        match self.form {
            Form::Lines => output::print(&(report.lines().join("\n") + "\n")),
            Form::Stream => document(&Line::Result(&report)),
            Form::Document => document(&report.with_intervals(self.intervals)),
            Form::Nothing => Ok(()),
        }
    }

    /// There is no result: what was measured before is not lost.
    fn give_up(self) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Unfinished {
            intervals: Vec<Interval>,
        }
        match self.form {
            Form::Document => document(&Unfinished { intervals: self.intervals }),
            Form::Lines | Form::Stream | Form::Nothing => Ok(()),
        }
    }
}

fn document(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::running)?;
    output::print(&(text + "\n"))
}
