//! Client of a measurement: it requests the measurement and reports the result.

use std::cell::{OnceCell, RefCell};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::timeout;
use tresse::host::Due;
use tresse::{Association, host};

use super::args::ClientArgs;
use super::clock::{Offset, Question};
use super::events::{self, PathEvent};
use super::exchange::{DataReceiver, Flow, exchange, put};
use super::former::ReplacedAssociation;
use super::message::{Control, MeasurementRequest};
use super::meter::{Interval, Meter};
use super::report::{Report, SCHEMA};
use super::tally::Tally;
use crate::call::{self, CallArgs, FAREWELL, breach};
use crate::failure::Failure;
use crate::output;
use crate::report::required;
use crate::report::words::printable;
use crate::schedulers;
use crate::screen::Screen;
use crate::signal;

pub(super) async fn run(mut args: ClientArgs) -> Result<(), Failure> {
    args.call.resolve().await?;
    let mut single_mbps = Vec::new();
    if args.compare_single {
        for (local, remote) in host::by_position(&args.call.local()?, &args.call.remote()) {
            let call = args.call.between(local, remote);
            let report = measured(&args, &call, &mut Listing::silent(), None).await?;
            single_mbps.push(report.slowest() / 1e6);
        }
    }
    let mut listing = Listing::new(&args);
    let report = match measured(&args, &args.call, &mut listing, Some(args.output.quiet)).await {
        Ok(report) => report,
        Err(failure) => {
            listing.give_up()?;
            return Err(failure);
        }
    };
    let report = if args.compare_single { report.compared(single_mbps) } else { report };
    let slowest = report.slowest();
    listing.conclude(report)?;
    required(args.require_throughput, slowest)
}

/// Runs one measurement over an association of its own. Links and events of paths are printed only if `quiet` is `Some(false)`.
async fn measured(
    args: &ClientArgs,
    call: &CallArgs,
    listing: &mut Listing,
    quiet: Option<bool>,
) -> Result<Report, Failure> {
    let ask = args.ask();
    let mut config = args.transport.config(&call.security)?;
    config.outbound_streams = config.outbound_streams.max(args.stream_count().saturating_add(1));
    let mut endpoint = call.bind(config.clone(), args.schedulers.registry()?)?;
    let mut association = tokio::select! {
        association = call.connect(&endpoint) => association?,
        () = signal::interrupted() => return Err(Failure::interrupted("interrupted before anything was measured")),
    };
    let quiet = quiet.unwrap_or(true);
    if !quiet {
        call.say_links(&association, &endpoint);
    }
    let kept = RefCell::default();
    let say = |event: &PathEvent| {
        if !quiet {
            output::say(&event.line());
        }
    };
    let connect = async |_: &Due| {
        let endpoint = call.bind(config.clone(), args.schedulers.registry()?)?;
        let association = call.connect(&endpoint).await?;
        Ok((endpoint, association))
    };
    // Start of the first interval, from which the times of all intervals count.
    let origin = OnceCell::new();
    let (began, mut rest, mut former) = (Instant::now(), ask.clone(), Vec::new());
    let outcome = loop {
        let (part_began, tally) = (
            Instant::now(),
            Tally::new(Duration::from_secs_f64(rest.load.omit_seconds), !args.per_stream.is_empty()),
        );
        let new = tokio::select! {
            outcome = measure((&association, &tally, &origin), &rest, args, listing) => break outcome,
            never = schedulers::watch(&association, output::say) => match never {},
            never = events::watch((&association, began), &kept, say) => match never {},
            new = call.successor(&endpoint, &association, quiet, connect) => new,
            () = signal::interrupted() => {
                break Err(Failure::interrupted("interrupted: the intervals show what was measured before"));
            }
        };
        let part = ReplacedAssociation::new(began.elapsed(), &association, tally.all_bytes());
        rest = part.rest_of(&rest, part_began.elapsed());
        former.push(part);
        let from = std::mem::replace(&mut endpoint, new.0);
        call::retire(from, std::mem::replace(&mut association, new.1));
    };
    match outcome {
        // The server ends the association once it has received `Done`.
        Ok(_) => drop(timeout(FAREWELL, association.closed()).await),
        Err(_) => association.abort("the measurement was given up"),
    }
    drop(association);
    call::say_farewell(&endpoint).await;
    let place = call::list(&call.remote());
    match outcome {
        Ok((flows, clocks)) => {
            let report = Report::new(place, ask.load, flows, Some(clocks));
            Ok(report.with_events(kept.into_inner()).with_former(former))
        }
        Err(failure) => Err(call::with_causes(failure.at(place), &endpoint)),
    }
}

/// Runs the dialogue with the server. Each interval is listed when it ends.
async fn measure(
    (association, tally, origin): (&Association, &Tally, &OnceCell<Instant>),
    ask: &MeasurementRequest,
    args: &ClientArgs,
    listing: &mut Listing,
) -> Result<((Option<Flow>, Option<Flow>), Offset), Failure> {
    let mut receiver = DataReceiver::new(association, tally);
    let question = Question::new();
    put(association, Control::Ask(ask.clone())).await?;
    let clocks = match receiver.control(ask.server_sends).await? {
        Control::Go(there) => question.answered(there),
        Control::Refuse(reason) => {
            return Err(Failure::usage(format!("the server refused: {}", printable(&reason))));
        }
        _ => return Err(breach("a message out of turn")),
    };
    let mut meter = Meter::new(association, tally, (ask, origin));
    let mut ticks = tokio::time::interval(args.interval);
    ticks.tick().await;
    let work = exchange(&mut receiver, &ask.load, (ask.client_sends, ask.server_sends));
    let mut work = std::pin::pin!(work);
    let flows = loop {
        tokio::select! {
            flows = &mut work => break flows?,
            _ = ticks.tick() => listing.add(meter.read())?,
        }
    };
    put(association, Control::Done).await?;
    Ok((flows, clocks))
}

/// Output to standard output, in the requested form.
struct Listing {
    form: Form,
    /// Intervals for the document at the end.
    intervals: Vec<Interval>,
    screen: View,
}

/// A screen with the live table.
enum View {
    /// The screen opens with the first interval: before that there is nothing to show.
    Closed,
    Open(Screen),
    /// There is no screen, only lines.
    Never,
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
        let screen = if form == Form::Lines { View::Closed } else { View::Never };
        Listing { form, intervals: Vec::new(), screen }
    }

    /// Returns a listing that prints nothing.
    fn silent() -> Self {
        Listing { form: Form::Nothing, intervals: Vec::new(), screen: View::Never }
    }

    fn add(&mut self, interval: Interval) -> Result<(), Failure> {
        match self.form {
            Form::Lines => {
                output::print(&(interval.lines().join("\n") + "\n"))?;
                self.screen.show(&interval);
                Ok(())
            }
            Form::Stream => document(&Line::Interval(&interval)),
            Form::Document => {
                self.intervals.push(interval);
                Ok(())
            }
            Form::Nothing => Ok(()),
        }
    }

    fn conclude(self, report: Report) -> Result<(), Failure> {
        drop(self.screen);
        match self.form {
            Form::Lines => output::print(&(report.lines().join("\n") + "\n")),
            Form::Stream => document(&Line::Result(&report)),
            Form::Document => document(&report.with_intervals(self.intervals)),
            Form::Nothing => Ok(()),
        }
    }

    /// Prints the intervals of a measurement without a result, if they have not been printed yet.
    fn give_up(self) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Unfinished {
            schema: u32,
            intervals: Vec<Interval>,
        }
        match self.form {
            Form::Document => document(&Unfinished { schema: SCHEMA, intervals: self.intervals }),
            Form::Lines | Form::Stream | Form::Nothing => Ok(()),
        }
    }
}

impl View {
    /// Shows an interval. If drawing fails, the screen is closed for good.
    fn show(&mut self, interval: &Interval) {
        if matches!(self, View::Closed) {
            *self = Screen::open().map_or(View::Never, View::Open);
        }
        if let View::Open(screen) = self
            && screen.draw(|frame, said| interval.sample().draw(frame, said)).is_err()
        {
            *self = View::Never;
        }
    }
}

fn document(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::running)?;
    output::print(&(text + "\n"))
}
