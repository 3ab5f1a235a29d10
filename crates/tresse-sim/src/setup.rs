//! Set-up of a run: the network at time zero, and both hosts with their endpoints and applications.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tresse_proto::config::Encryption;
use tresse_proto::congestion::ControllerFactory;
use tresse_proto::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse_proto::{AddressChange, AssociationConfig, Connect, Endpoint, EndpointConfig, Instant, Registry};

use crate::cross;
use crate::error::RunError;
use crate::host::Host;
use crate::network::Network;
use crate::record::Recorder;
use crate::records::{SimulatedKeys, with_simulated_keys};
use crate::route::{LinkId, NodeId};
use crate::scenario::Resolved;
use crate::seed::{Generator, Seed, unit_interval};
use crate::topology::Layout;
use crate::traffic::{AddressPlan, Application, Bulk, BulkSpec, Ledger, Sink, Sporadic, pattern};
use crate::world::{NodeHost, RECEIVER, SENDER, World};

/// Checks that do not change the outcome, and the interval at which the receiver reads.
pub(crate) struct RunChecks {
    pub(crate) reads_every: Duration,
    /// Compute and verify packet checksums.
    pub(crate) checksums: bool,
    /// Check the rules of `invariant`, and the content of messages.
    pub(crate) check: bool,
}

/// Policies that the scenario may name besides the built-in ones, by name.
#[derive(Default)]
pub(crate) struct CustomPolicies<'a> {
    pub(crate) schedulers: &'a [(String, StreamSchedulerFactory)],
    pub(crate) path_schedulers: &'a [(String, PathSchedulerFactory)],
    pub(crate) controllers: &'a [(String, ControllerFactory)],
}

impl CustomPolicies<'_> {
    /// Returns a registry with these policies.
    fn registry(&self) -> Result<Registry, RunError> {
        let mut registry = Registry::default();
        for (name, factory) in self.schedulers {
            registry.register_stream_scheduler(name, Arc::clone(factory))?;
        }
        for (name, factory) in self.path_schedulers {
            registry.register_path_scheduler(name, Arc::clone(factory))?;
        }
        for (name, factory) in self.controllers {
            registry.register_controller(name, Arc::clone(factory))?;
        }
        Ok(registry)
    }
}

/// Builds the world of a scenario, in which all entities wait for their first event.
///
/// # Errors
/// Settings that an endpoint refuses, or two policies of one kind and name.
pub(crate) fn build<'w>(
    resolved: &Resolved,
    layout: &Layout,
    network: Network<'w>,
    seed: Seed,
    care: RunChecks,
    own: &CustomPolicies<'_>,
) -> Result<World<'w>, RunError> {
    let addresses = |node: NodeId| layout.topology.addresses[node.index()].clone();
    let traffic = &resolved.traffic;
    let bulk = bulk(resolved, layout, seed);
    let longest =
        traffic.sporadic.iter().map(|sporadic| sporadic.size.1).fold(traffic.message_size, usize::max);
    let sink = Sink::new(plan(resolved, &addresses(layout.receiver)), care.check.then(|| pattern(longest)))
        .reading(traffic.read)
        .reading_every(care.reads_every);

    let endpoint = |port, listen, template: &AssociationConfig, name: &str| -> Result<_, RunError> {
        let config = EndpointConfig::default().with(|c| {
            c.port = port;
            c.listen = listen;
            c.checksum_offload = !care.checksums;
        });
        let template = with_simulated_keys(template);
        Ok(Endpoint::with_schedulers(config, template, own.registry()?, seed.bytes(name))?)
    };
    let sending = endpoint(SENDER_PORT, false, &resolved.sender, "sender")?;
    let mut receiving = endpoint(RECEIVER_PORT, true, &resolved.receiver, "receiver")?;
    receiving.set_local_addresses(at_first(resolved, addresses(layout.receiver)));
    let applications: [Box<dyn Application>; 2] = [Box::new(bulk), Box::new(sink)];
    let nodes = [layout.sender, layout.receiver];

    let tcp_hosts = cross::hosts(resolved, layout, seed);
    let mut residents = vec![None; layout.topology.addresses.len()];
    let mut hosts = Vec::new();
    for ((node, endpoint), application) in nodes.into_iter().zip([sending, receiving]).zip(applications) {
        let number = hosts.len() as u16;
        let far = if number == 0 { layout.receiver } else { layout.sender };
        let ends = addresses(node).into_iter().zip(addresses(far)).collect();
        residents[node.index()] = Some(NodeHost::Host(number));
        let keys = SimulatedKeys::new(seed.bytes("keys"));
        let host = Host::new(number, node, ends, endpoint, keys, application);
        hosts.push(host.with_packet_time(resolved.packet_time));
    }
    for (number, host) in tcp_hosts.iter().enumerate() {
        residents[host.node().index()] = Some(NodeHost::TcpHost(number as u16));
    }
    let forward: Vec<LinkId> = layout.paths.iter().map(|links| links.forward).collect();
    let recorder =
        resolved.record_interval.map(|interval| Recorder::new(interval, SENDER, RECEIVER, forward));
    let ledger = Ledger::new(traffic.streams);
    let ledger = if resolved.sender.encryption == Encryption::Off { ledger } else { ledger.beside_keys() };
    let mut world = World {
        network,
        hosts,
        tcp_hosts,
        residents,
        ledger,
        recorder,
        goal: traffic.messages(),
        check: care.check,
        now: Instant::ZERO,
        events: 0,
        at_once: 0,
    };
    for host in &mut world.hosts {
        host.arm(Instant::ZERO, &mut world.network);
    }
    cross::arm(&mut world.tcp_hosts, &mut world.network);
    if let Some(recorder) = &world.recorder {
        recorder.start(&mut world.network);
    }
    Ok(world)
}

/// Returns the application that sends.
fn bulk(resolved: &Resolved, layout: &Layout, seed: Seed) -> Bulk {
    let addresses = |node: NodeId| layout.topology.addresses[node.index()].clone();
    let traffic = &resolved.traffic;
    let source =
        |sporadic: &Sporadic| (*sporadic, seed.generator(&format!("messages of stream {}", sporadic.stream)));
    let jitter = unit_interval(&mut seed.generator("start of the sender"));
    Bulk::new(BulkSpec {
        connect: Connect::new(
            at_first(resolved, addresses(layout.sender)),
            at_first(resolved, addresses(layout.receiver)),
            RECEIVER_PORT,
            with_simulated_keys(&resolved.sender),
        ),
        streams: traffic.streams,
        saturated: shuffled(traffic.saturated(), &mut seed.generator("order of the streams")),
        sporadic: traffic.sporadic.iter().map(source).collect(),
        message: pattern(traffic.message_size),
        ordered: traffic.ordered,
        refill: traffic.refill,
        start: Instant::ZERO + traffic.start + resolved.start_jitter.mul_f64(jitter),
        messages: traffic.messages(),
        loss_rates: if resolved.loss_oracle {
            let rates = resolved.paths.iter().map(|path| path.forward.loss.mean());
            addresses(layout.sender).into_iter().zip(rates).collect()
        } else {
            Vec::new()
        },
        addresses: plan(resolved, &addresses(layout.sender)),
        stop: traffic.stop.map(|stop| Instant::ZERO + stop),
    })
}

/// Returns the streams in random order, with equal probability of each order (Fisher and Yates).
fn shuffled(mut streams: Vec<u16>, rng: &mut Generator) -> Vec<u16> {
    for last in (1..streams.len()).rev() {
        let place = unit_interval(rng) * (last + 1) as f64;
        streams.swap(last, place as usize);
    }
    streams
}

/// Returns the addresses that a host has from the beginning.
fn at_first(resolved: &Resolved, addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let there = addresses.into_iter().zip(&resolved.paths).filter(|(_, path)| path.presence.joins.is_none());
    there.map(|(address, _)| address).collect()
}

/// Returns the times at which a host adds and removes its addresses.
fn plan(resolved: &Resolved, addresses: &[IpAddr]) -> AddressPlan {
    let changes = addresses.iter().zip(&resolved.paths).flat_map(|(address, path)| {
        let joins = path.presence.joins.map(|at| (at, AddressChange::Add));
        let leaves = path.presence.leaves.map(|at| (at, AddressChange::Remove));
        joins.into_iter().chain(leaves).map(|(at, change)| (Instant::ZERO + at, change, *address))
    });
    AddressPlan::new(changes)
}

const SENDER_PORT: u16 = 49_152;
const RECEIVER_PORT: u16 = 5_001;
