//! Runner of scripts: simulates hosts, links and virtual time until all associations have ended.
//!
//! After every event the hosts do everything that they can at that instant, and then the rules are checked. At the end of the
//! script all links are repaired, all applications read, and every association must end within a bound of virtual time.

mod census;
mod forge;
mod ledger;
mod log;
mod rules;
mod session;
mod station;
mod turncoat;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{CloseReason, Datagram, Ecn, Instant};
use tresse_sim::queue::EventQueue;
use tresse_sim::seed::{Generator, Seed};

use crate::breach::Breach;
use crate::script::{Deed, Host, PathPlan, Script};

pub use census::Census;

use ledger::Ledger;
use log::Log;
use rules::{Broken, Haste};
use station::Station;
use wire::{Packet, Wire};

/// Result of a simulation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Number of events.
    pub events: u64,
    /// Packets sent.
    pub packets: u64,
    /// Messages accepted.
    pub accepted: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Bytes of the delivered messages.
    pub bytes: u64,
    /// Virtual time.
    pub span: Duration,
    /// Reasons for ends of associations, with the number of associations for each.
    pub ends: Vec<(&'static str, u64)>,
}

/// Runs a script.
///
/// # Errors
/// The first rule that did not hold.
pub fn judge(script: &Script) -> Result<Summary, Breach> {
    play(script, Log::silent(), None, MOST_EVENTS).outcome
}

/// Result of running a script that is being shortened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trial {
    /// Number of events.
    pub events: u64,
    /// The first rule that did not hold.
    pub breach: Option<Breach>,
}

/// Runs a script as [`judge`] does, but with at most `most` events; more events violate a rule of their own.
#[must_use]
pub fn attempt(script: &Script, most: u64) -> Trial {
    let played = play(script, Log::silent(), None, most.min(MOST_EVENTS));
    Trial { events: played.events, breach: played.outcome.err() }
}

/// Runs a script, and returns a line for every event too.
pub fn trace(script: &Script) -> (Result<Summary, Breach>, Vec<String>) {
    let played = play(script, Log::written(), None, MOST_EVENTS);
    (played.outcome, played.log.lines())
}

/// Runs a script, and counts how often each mechanism acted.
pub fn census(script: &Script) -> (Result<Summary, Breach>, Census) {
    let played = play(script, Log::silent(), Some(Census::default()), MOST_EVENTS);
    (played.outcome, played.census.unwrap_or_default())
}

/// Result of a run.
struct Played {
    outcome: Result<Summary, Breach>,
    events: u64,
    log: Log,
    census: Option<Census>,
}

fn play(script: &Script, log: Log, census: Option<Census>, most: u64) -> Played {
    let mut world = match World::new(script, log, census) {
        Ok(world) => world,
        Err(what) => {
            let breach = Breach { at: Instant::ZERO, rule: "scripts can be played", what };
            return Played { outcome: Err(breach), events: 0, log: Log::silent(), census: None };
        }
    };
    world.most = most;
    let outcome = match catch_unwind(AssertUnwindSafe(|| world.run())) {
        Ok(outcome) => outcome.map_err(|(rule, what)| Breach { at: world.now, rule, what }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(Breach { at: world.now, rule: "nothing panics", what: text.to_owned() })
        }
    };
    world.count();
    let outcome = outcome.map(|()| world.summary());
    Played { outcome, events: world.happened, log: world.log, census: world.census }
}

struct World<'s> {
    script: &'s Script,
    now: Instant,
    events: EventQueue<FutureEvent>,
    happened: u64,
    /// Limit of events.
    most: u64,
    wire: Wire,
    stations: [Station; 2],
    ledger: Ledger,
    /// Number of sessions so far, of both hosts.
    sessions: u32,
    /// Time of the next wake-up of each host.
    wake_at: [Option<Instant>; 2],
    dice: Generator,
    buffer: Vec<u8>,
    log: Log,
    /// Counts of mechanisms that acted, if they are requested.
    census: Option<Census>,
    /// Time at which all links were repaired and all accepted messages were delivered.
    calm: Option<Instant>,
}

/// A future event.
enum FutureEvent {
    Arrival(Packet),
    Act(usize),
    Wake(Host),
}

impl<'s> World<'s> {
    fn new(script: &'s Script, log: Log, census: Option<Census>) -> Result<Self, String> {
        let seed = Seed(script.seed);
        let addresses = |host: Host| {
            script.paths.iter().enumerate().map(|(path, plan)| wire::address(host, path, plan)).collect()
        };
        let counts = census.is_some();
        let station = |host: Host| {
            let mut station =
                Station::new(host, &script.hosts, seed, addresses(host), addresses(host.peer()))?;
            station.tally.census = counts.then(Census::default);
            Ok::<Station, String>(station)
        };
        let mut events = EventQueue::new(0);
        for (position, act) in script.acts.iter().enumerate() {
            events.push(Instant::ZERO + act.at, FutureEvent::Act(position));
        }
        Ok(World {
            now: Instant::ZERO,
            happened: 0,
            most: MOST_EVENTS,
            wire: Wire::new(script, script.end()),
            stations: [station(Host::Client)?, station(Host::Server)?],
            ledger: Ledger::default(),
            sessions: 0,
            wake_at: [None; 2],
            dice: seed.generator("strangers"),
            buffer: Vec::new(),
            events,
            script,
            log,
            census,
            calm: None,
        })
    }

    fn run(&mut self) -> Result<(), Broken> {
        let end = Instant::ZERO + self.script.end();
        self.run_until(end, |_| false)?;
        // All links are repaired; every accepted message must be delivered.
        for host in Host::BOTH {
            self.log.line(self.now, || "the network has healed, both sides read".to_owned());
            let (now, ledger) = (self.now, &mut self.ledger);
            self.stations[host.index()].resume(now, ledger).map_err(delivery)?;
            self.settle(host)?;
        }
        let bound = self.bound();
        self.run_until(self.now + bound, have_handed_over)?;
        self.expect("messages are accepted in time", bound, have_handed_over)?;
        if !self.script.seed.is_multiple_of(4) {
            self.run_until(self.now + bound, are_calm)?;
            self.expect("what was accepted comes out in time", bound, are_calm)?;
            // A shutdown that began earlier may have used up its time before the links were repaired.
            let ending = self.stations.iter().any(Station::is_ending);
            self.calm = (!ending).then_some(self.now);
        }
        let first = if self.script.seed.is_multiple_of(2) { Host::Client } else { Host::Server };
        for host in [first, first.peer()] {
            let (now, station) = (self.now, &mut self.stations[host.index()]);
            station.end_all(now);
            self.log.line(now, || format!("{} ends what is open", host.name()));
            self.settle(host)?;
            // Some associations can only be ended by the other host, for example while this host is still in the set-up.
            self.run_until(
                self.now + bound,
                if host == Host::Client { is_client_over } else { is_server_over },
            )?;
        }
        self.run_until(self.now + bound, are_over)?;
        self.expect("both sides come to an end", bound, are_over)?;
        self.check_ends()
    }

    /// Processes events until `done` holds or there is no further event before `end`.
    fn run_until(&mut self, end: Instant, done: Condition) -> Result<(), Broken> {
        while !done(&self.stations)
            && let Some((at, event)) = self.events.pop_until(end)
        {
            self.now = at;
            self.happened += 1;
            if self.happened > self.most {
                let rule = if self.most < MOST_EVENTS { "trials are short" } else { "simulations end" };
                return Err((rule, format!("{} events and no end", self.most)));
            }
            match event {
                FutureEvent::Arrival(packet) => self.arrive(packet)?,
                FutureEvent::Act(position) => self.act(position)?,
                FutureEvent::Wake(host) => self.wake(host)?,
            }
        }
        Ok(())
    }

    fn arrive(&mut self, packet: Packet) -> Result<(), Broken> {
        let to = packet.to;
        let datagram = Datagram {
            local: packet.destination,
            remote: packet.source,
            encapsulation_port: packet.port,
            ecn: packet.ecn,
            payload: packet.payload,
        };
        self.stations[to.index()].endpoint.handle_datagram(self.now, datagram);
        self.settle(to)
    }

    fn act(&mut self, position: usize) -> Result<(), Broken> {
        let deed = &self.script.acts[position].deed;
        self.log.line(self.now, || format!("-- {deed}"));
        match deed {
            Deed::Host(host, what) => {
                let (now, station) = (self.now, &mut self.stations[host.index()]);
                station.act(now, what, &mut self.ledger, &mut self.sessions).map_err(delivery)?;
                self.settle(*host)
            }
            // The links know their changes from the start.
            Deed::Path { .. } => Ok(()),
            Deed::Replay { to, back } => match self.wire.seen(*to, usize::from(*back)) {
                Some(packet) => self.arrive(packet),
                None => Ok(()),
            },
            Deed::Forge { to, what } => {
                let ports = (station::port(to.peer()), station::port(*to));
                let payload = forge::forge(*what, ports, &mut self.dice);
                let address = |host| wire::address(host, 0, &self.script.paths[0]);
                let (source, destination) = (address(to.peer()), address(*to));
                self.arrive(Packet {
                    to: *to,
                    source,
                    destination,
                    port: None,
                    ecn: Ecn::NotEct,
                    may_fragment: false,
                    payload,
                })
            }
        }
    }

    fn wake(&mut self, host: Host) -> Result<(), Broken> {
        let wanted = &mut self.wake_at[host.index()];
        if wanted.is_none_or(|at| at > self.now) {
            return Ok(());
        }
        *wanted = None;
        self.stations[host.index()].endpoint.handle_timeout(self.now);
        self.settle(host)
    }

    /// Lets a host do everything that it can at this instant, and then checks the rules.
    fn settle(&mut self, host: Host) -> Result<(), Broken> {
        for _ in 0..MOST_ROUNDS {
            let sent = self.transmit(host)?;
            let (now, station) = (self.now, &mut self.stations[host.index()]);
            let had_events =
                station.serve(now, &mut self.ledger, &mut self.sessions, &mut self.log).map_err(delivery)?;
            let due = station.endpoint.poll_timeout().filter(|&at| at <= now);
            if due.is_some() {
                station.endpoint.handle_timeout(now);
            }
            if !sent && !had_events && due.is_none() {
                self.arm(host);
                return rules::check(&mut self.stations[host.index()], self.now);
            }
        }
        Err(("an instant ends", format!("{} goes on and on", host.name())))
    }

    fn transmit(&mut self, host: Host) -> Result<bool, Broken> {
        let mut any = false;
        let mut before = self.stations[host.index()].windows(self.now);
        for _ in 0..MOST_POLLS {
            self.buffer.clear();
            let (now, station) = (self.now, &mut self.stations[host.index()]);
            let batch = 1 + (self.happened % 4) as usize;
            let Some(transmit) = station.endpoint.poll_transmit(now, batch, &mut self.buffer) else {
                return Ok(any);
            };
            any = true;
            station.sends(now);
            let after = station.windows(now);
            if let (Some(before), Some(after)) = (&before, &after) {
                rules::check_sending(before, after)?;
            }
            before = after;
            let mut bytes = Bytes::copy_from_slice(&self.buffer);
            let segment = transmit.segment_size.unwrap_or(bytes.len()).max(1);
            while !bytes.is_empty() {
                let packet = Packet {
                    to: host.peer(),
                    source: transmit.local,
                    destination: transmit.remote,
                    port: transmit.encapsulation_port,
                    ecn: transmit.ecn,
                    may_fragment: transmit.may_fragment,
                    payload: bytes.split_to(segment.min(bytes.len())),
                };
                self.send(packet);
            }
        }
        Err(("an instant ends", format!("{} sends without end", host.name())))
    }

    fn send(&mut self, packet: Packet) {
        let now = self.now;
        let passage = self.wire.send(now, packet);
        self.log.packet(now, &passage);
        if let Some(census) = &mut self.census {
            census.packet(&passage.packet.payload, passage.fate);
        }
        if let Some(at) = passage.at {
            if passage.twice {
                self.events.push(at, FutureEvent::Arrival(passage.packet.clone()));
            }
            self.events.push(at, FutureEvent::Arrival(passage.packet));
        }
    }

    fn arm(&mut self, host: Host) {
        let Some(due) = self.stations[host.index()].endpoint.poll_timeout() else { return };
        let wanted = &mut self.wake_at[host.index()];
        if wanted.is_none_or(|at| due < at) {
            *wanted = Some(due);
            self.events.push(due, FutureEvent::Wake(host));
        }
    }

    /// Returns the longest time in which repaired links deliver the rest: all timers at their maximum, and a round trip for each packet.
    fn bound(&self) -> Duration {
        let patience: Duration = self.stations.iter().map(Station::patience).sum();
        let slowest = self.round_trip();
        let packets = self.script.payload() / 500 + 100;
        patience + (slowest + Duration::from_secs(1)) * packets as u32
    }

    /// Returns the longest round trip of any path, with full queues and delayed packets.
    fn round_trip(&self) -> Duration {
        let longest = self.stations.iter().map(Station::longest_packet).max().unwrap_or_default();
        let of_path = |path: &PathPlan| {
            let late = path.late.map_or(Duration::ZERO, |(_, by)| by);
            2 * (path.delay + late + transmission(path.rate, longest) * (path.queue + 1))
        };
        let changed = self.script.acts.iter().filter_map(|act| match &act.deed {
            Deed::Path { path, change, .. } => {
                let before = self.script.paths.get(usize::from(*path))?;
                let delay = change.delay.unwrap_or(before.delay);
                Some(of_path(&PathPlan { delay, rate: change.rate.unwrap_or(before.rate), ..before.clone() }))
            }
            _ => None,
        });
        self.script.paths.iter().map(of_path).chain(changed).max().unwrap_or_default()
    }

    /// Returns the timers of either side that can expire before an answer arrives.
    fn haste(&self) -> Haste {
        let round_trip = self.round_trip();
        Haste {
            answers: self.stations.iter().any(|station| station.shortest_timer() < round_trip),
            shutdown: self.stations.iter().any(|station| station.shutdown_guard() < round_trip),
            overrun: self.stations.iter().any(Station::overruns),
        }
    }

    fn expect(&mut self, rule: &'static str, bound: Duration, holds: Condition) -> Result<(), Broken> {
        if holds(&self.stations) {
            return Ok(());
        }
        let now = self.now;
        let states = self.stations.iter_mut().map(|station| station.describe(now)).collect::<Vec<_>>();
        Err((rule, format!("not after {bound:?} in a healthy network: {}", states.join("; "))))
    }

    fn check_ends(&self) -> Result<(), Broken> {
        let haste = self.haste();
        let restarts: u32 = self.stations.iter().map(|station| station.restarts).sum();
        let encrypted = self.stations.iter().all(Station::encrypts);
        for station in &self.stations {
            let peer = &self.stations[station.host.peer().index()];
            for session in station.sessions.values() {
                // A host without keys cannot report to its peer that the association is gone: the peer ignores packets in the clear.
                let orphaned = encrypted && (restarts > 0 || peer.was_over_before(session));
                rules::check_end(session, self.wire.impairments, restarts, self.calm, haste, orphaned)?;
                // Unread messages are lost when a host restarts.
                let graceful = matches!(session.closed, Some((_, CloseReason::Graceful)));
                if graceful
                    && restarts == 0
                    && let Some(missing) = self.ledger.missing(session.number)
                {
                    return Err(("a graceful end delivers everything", missing));
                }
            }
        }
        Ok(())
    }

    /// Completes the counts of mechanisms that acted.
    fn count(&mut self) {
        let Some(census) = &mut self.census else { return };
        for station in &mut self.stations {
            station.count(self.now);
            if let Some(counted) = &station.tally.census {
                census.merge(counted);
            }
        }
    }

    fn summary(&self) -> Summary {
        let (accepted, delivered) = self.ledger.totals();
        let mut ends = std::collections::BTreeMap::new();
        for (&name, count) in self.stations.iter().flat_map(|station| &station.tally.closed) {
            *ends.entry(name).or_default() += count;
        }
        Summary {
            events: self.happened,
            packets: self.wire.packets,
            accepted,
            delivered,
            bytes: self.stations.iter().map(|station| station.tally.bytes).sum(),
            span: self.now.since(Instant::ZERO),
            ends: ends.into_iter().collect(),
        }
    }
}

/// Condition on both hosts.
type Condition = fn(&[Station; 2]) -> bool;

fn have_handed_over(stations: &[Station; 2]) -> bool {
    stations.iter().all(Station::has_handed_over)
}

/// Returns whether no message waits in a send buffer or in a receive buffer.
fn are_calm(stations: &[Station; 2]) -> bool {
    stations.iter().all(|station| station.is_over() || !station.waits)
}

fn is_client_over(stations: &[Station; 2]) -> bool {
    stations[Host::Client.index()].is_over()
}

fn is_server_over(stations: &[Station; 2]) -> bool {
    stations[Host::Server.index()].is_over()
}

fn are_over(stations: &[Station; 2]) -> bool {
    stations.iter().all(Station::is_over)
}

fn delivery(what: String) -> Broken {
    ("messages come out once, whole and in order", what)
}

/// Transmission time of a packet of `bytes` at `rate`.
fn transmission(rate: u64, bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64 * 8_000_000_000 / rate.max(1))
}

/// Most events of a simulation; one with more is considered endless.
const MOST_EVENTS: u64 = 2_000_000;
/// Most rounds of work of a host at one instant; more are considered endless.
const MOST_ROUNDS: usize = 1000;
/// Most polls of a host at one instant; more are considered endless.
const MOST_POLLS: usize = 10_000;
