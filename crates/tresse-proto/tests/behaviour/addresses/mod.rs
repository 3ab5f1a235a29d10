//! Addresses that come and go while an association runs (RFC 5061).

mod adding;
mod agreeing;
mod answers;
mod ending;
mod filtered;
mod removing;
mod requests;
mod translators;

use std::net::IpAddr;
use std::time::Duration;

use tresse_proto::{AddressChange, AddressOutcome, AssociationConfig, Event, PathId, PathState, PathStats};
use tresse_wire::{Asconf, AsconfAck, Chunk, ChunkKind, Param, Params};

use crate::common::{Flight, Pair, address};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pair(paths: u8) -> Pair {
    Pair::established(paths, &AssociationConfig::default())
}

fn told(pair: &Pair) -> Vec<(IpAddr, AddressChange, AddressOutcome)> {
    let own = pair.client.events.iter().filter_map(|event| match event {
        Event::OwnAddress { address, change, outcome } => Some((*address, *change, *outcome)),
        _ => None,
    });
    own.collect()
}

fn heard(pair: &Pair) -> Vec<(IpAddr, AddressChange)> {
    let peers = pair.server.events.iter().filter_map(|event| match event {
        Event::PeerAddress { address, change } => Some((*address, *change)),
        _ => None,
    });
    peers.collect()
}

/// The client's paths, and the server's.
fn stats(pair: &mut Pair) -> [Vec<PathStats>; 2] {
    let now = pair.now;
    [pair.client().path_stats(now), pair.server().path_stats(now)]
}

/// Lets the client add an address, and the server, so that there is one path more; all of it works.
fn with_third_path() -> Pair {
    let mut pair = pair(2);
    add_third_path(&mut pair);
    pair
}

fn add_third_path(pair: &mut Pair) {
    let now = pair.now;
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.run_for(ms(100));
    let now = pair.now;
    pair.server().add_address(now, address(2, 2)).expect("a new address");
    pair.run_until(Duration::from_secs(30), |pair| {
        let [client, server] = stats(pair);
        working(&client) == straight(1, [0, 1, 2]) && working(&server) == straight(2, [0, 1, 2])
    });
}

/// A network in which each address reaches only the one with the same position on the other side.
fn disjoint(flight: &Flight) -> bool {
    let position = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.octets()[2],
        IpAddr::V6(_) => 0,
    };
    position(flight.transmit.local) == position(flight.transmit.remote)
}

/// The ends of the paths that work, the own one first.
fn working(paths: &[PathStats]) -> Vec<(IpAddr, IpAddr)> {
    let active = paths.iter().filter(|path| path.state == PathState::Active);
    let mut ends: Vec<_> = active.map(|path| (path.local, path.remote)).collect();
    ends.sort_unstable();
    ends
}

/// Paths between addresses of the same positions, seen from one host.
fn straight<const N: usize>(host: u8, positions: [u8; N]) -> [(IpAddr, IpAddr); N] {
    positions.map(|position| (address(host, position), address(3 - host, position)))
}

/// Queues `count` messages of 1000 bytes from number `first` on.
fn send(pair: &mut Pair, first: u32, count: u32) {
    for number in first..first + count {
        pair.send(0, number, 1000);
    }
}

fn run_until_received(pair: &mut Pair, count: usize) {
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == count);
    assert_eq!(pair.server.numbers_on(0), (0..count as u32).collect::<Vec<_>>());
}

/// The packets of one side that carry `kind`.
fn with_kind(pair: &Pair, to_server: bool, kind: ChunkKind) -> Vec<Flight> {
    let of_side = pair.wire.iter().filter(|flight| flight.to_server == to_server && flight.carries(kind));
    of_side.cloned().collect()
}

/// The ASCONF chunk of a packet: its serial number and requests.
fn request_of(flight: &Flight) -> (u32, Vec<Param<'_>>) {
    let asconf = flight.chunks().into_iter().find_map(|chunk| match chunk {
        Chunk::Asconf(Asconf { serial, params: Params::Wire(bytes), .. }) => Some((serial, bytes)),
        _ => None,
    });
    let (serial, bytes) = asconf.expect("a request");
    (serial, Params::Wire(bytes).iter().flatten().collect())
}

/// The ASCONF-ACK chunk of a packet: its serial number and responses.
fn answer_of(flight: &Flight) -> (u32, Vec<Param<'_>>) {
    let ack = flight.chunks().into_iter().find_map(|chunk| match chunk {
        Chunk::AsconfAck(AsconfAck { serial, params: Params::Wire(bytes) }) => Some((serial, bytes)),
        _ => None,
    });
    let (serial, bytes) = ack.expect("an answer");
    (serial, Params::Wire(bytes).iter().flatten().collect())
}

/// The number that the client's first request has: its initial TSN (RFC 5061 §5.1 A2).
fn first_serial(pair: &Pair) -> u32 {
    let init = pair.wire.iter().flat_map(Flight::chunks).find_map(|chunk| match chunk {
        Chunk::Init(init) => Some(init.initial_tsn.0),
        _ => None,
    });
    init.expect("a handshake")
}

/// The client's request as if it had written it: the server's answer, if there is one.
fn ask<'a>(pair: &'a mut Pair, path: u8, serial: u32, params: &[Param<'_>]) -> Option<&'a Flight> {
    let lookup = address(1, 0);
    let chunk = Chunk::Asconf(Asconf { serial, address: lookup, params: Params::Values(params) });
    let packet = pair.authenticated_packet(true, &[chunk]);
    let before = pair.wire.len();
    pair.inject(true, path, packet);
    pair.sent_since(before).iter().find(|flight| flight.carries(ChunkKind::ASCONF_ACK))
}

fn path_states(stats: &[PathStats]) -> Vec<PathState> {
    stats.iter().map(|path| path.state).collect()
}

fn changed(path: u8, state: PathState) -> Event {
    Event::PathChanged { path: PathId(path), state }
}
