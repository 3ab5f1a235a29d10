//! Entries of a client: sockets that accept connections and datagrams, whether the tunnel is up or not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::args::{ClientArgs, WhileDown};
use super::connection::{accepted, carry};
use super::datagrams;
use super::dispatcher::Dispatcher;
use super::flow_listener::FlowListener;
use super::forward::Forward;
use super::hub::Hub;
use super::log;
use super::opening::{Destination, Kind, Opening, Refusal};
use super::socks;
use super::turns::StreamPermit;
use crate::failure::{Failure, of_socket};

/// An entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Entry {
    Tcp(Forward),
    Socks(SocketAddr),
    Udp(Forward),
}

/// The open entries.
#[derive(Default)]
pub(super) struct Entries(BTreeMap<Entry, Open>);

struct Open {
    place: SocketAddr,
    task: JoinHandle<Infallible>,
    /// Socket of a UDP entry.
    flow_listener: Option<Arc<FlowListener>>,
}

/// Sockets of UDP entries that were closed, by their addresses on the command line.
type FlowListeners = BTreeMap<SocketAddr, Arc<FlowListener>>;

impl Entry {
    /// Returns the entries that the command line names.
    pub(super) fn wanted(args: &ClientArgs) -> Vec<Entry> {
        let tcp = args.tcp.iter().cloned().map(Entry::Tcp);
        let udp = args.udp.iter().cloned().map(Entry::Udp);
        tcp.chain(args.socks.iter().copied().map(Entry::Socks)).chain(udp).collect()
    }

    /// Returns the address on the command line.
    fn listen(&self) -> SocketAddr {
        match self {
            Entry::Tcp(forward) | Entry::Udp(forward) => forward.listen,
            Entry::Socks(address) => *address,
        }
    }

    fn is_udp(&self) -> bool {
        matches!(self, Entry::Udp(_))
    }

    /// Opens the entry. A UDP entry takes over the socket of a closed one with the same address, if there is one.
    async fn open(
        &self,
        flow_listeners: &mut FlowListeners,
        dispatcher: &Arc<Dispatcher>,
    ) -> std::io::Result<Open> {
        let listener = match self {
            Entry::Udp(forward) => {
                let flow_listener = match flow_listeners.remove(&forward.listen) {
                    Some(flow_listener) => flow_listener,
                    None => Arc::new(FlowListener::bind(forward.listen).await?),
                };
                let place = flow_listener.place()?;
                let task =
                    datagrams::take_in(Arc::clone(&flow_listener), forward.clone(), Arc::clone(dispatcher));
                return Ok(Open { place, task: tokio::spawn(task), flow_listener: Some(flow_listener) });
            }
            Entry::Tcp(forward) => TcpListener::bind(forward.listen).await?,
            Entry::Socks(address) => TcpListener::bind(address).await?,
        };
        let place = listener.local_addr()?;
        let task = tokio::spawn(accept_all(listener, self.clone(), Arc::clone(dispatcher)));
        Ok(Open { place, task, flow_listener: None })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Tcp(forward) => write!(f, "--tcp {}", forward.listen),
            Entry::Socks(address) => write!(f, "--socks {address}"),
            Entry::Udp(forward) => write!(f, "--udp {}", forward.listen),
        }
    }
}

impl Entries {
    /// Opens the wanted entries that are not open, except those whose port a closing entry still holds.
    ///
    /// # Errors
    /// An entry cannot be opened; those that are open have not changed.
    pub(super) async fn opened(
        &self,
        wanted: &[Entry],
        dispatcher: &Arc<Dispatcher>,
    ) -> Result<Entries, Failure> {
        let mut new = Entries::default();
        for entry in wanted {
            let closing = || self.0.keys().filter(|open| !wanted.contains(open));
            let takes_over =
                |open: &Entry| open.is_udp() && entry.is_udp() && open.listen() == entry.listen();
            if self.0.contains_key(entry) || new.0.contains_key(entry) || closing().any(takes_over) {
                continue;
            }
            let has_port = |open: &Entry| {
                open.is_udp() == entry.is_udp() && open.listen().port() == entry.listen().port()
            };
            match entry.open(&mut FlowListeners::new(), dispatcher).await {
                Ok(open) => drop(new.0.insert(entry.clone(), open)),
                Err(error) if error.kind() == ErrorKind::AddrInUse && closing().any(has_port) => {}
                Err(error) => return Err(of_socket(entry, &error)),
            }
        }
        Ok(new)
    }

    /// Adds the entries in `opened`, closes those that are not wanted, whose TCP connections continue, and opens the rest. Flows end with
    /// their entry. A UDP entry of which only the target changes keeps its socket. Returns the failures to open entries.
    pub(super) async fn become_these(
        &mut self,
        wanted: &[Entry],
        mut opened: Entries,
        dispatcher: &Arc<Dispatcher>,
    ) -> Vec<Failure> {
        let mut flow_listeners = FlowListeners::new();
        let takes =
            |listen| move |entry: &Entry| matches!(entry, Entry::Udp(forward) if forward.listen == listen);
        let closing: Vec<Entry> = self.0.keys().filter(|open| !wanted.contains(open)).cloned().collect();
        for entry in closing {
            let Some(open) = self.0.remove(&entry) else { continue };
            open.task.abort();
            // The task may run on another thread. Only its end releases the port, which another entry may need.
            let _ = open.task.await;
            if let (Entry::Udp(Forward { listen, .. }), Some(flow_listener)) = (entry, open.flow_listener)
                && wanted.iter().any(takes(listen))
            {
                flow_listeners.insert(listen, flow_listener);
            }
        }
        self.0.append(&mut opened.0);
        let mut failures = Vec::new();
        for entry in wanted {
            if self.0.contains_key(entry) {
                continue;
            }
            match entry.open(&mut flow_listeners, dispatcher).await {
                Ok(open) => drop(self.0.insert(entry.clone(), open)),
                Err(error) => failures.push(of_socket(entry, &error)),
            }
        }
        failures
    }

    /// Returns one line for each entry of the tunnel through `server`.
    pub(super) fn lines(&self, server: &str) -> Vec<String> {
        let line = |(entry, open): (&Entry, &Open)| {
            let (what, to) = match entry {
                Entry::Tcp(forward) => ("TCP connections", to(forward)),
                Entry::Socks(_) => ("SOCKS connections", String::new()),
                Entry::Udp(forward) => ("UDP datagrams", to(forward)),
            };
            format!("{what} to {} go through {server}{to}", open.place)
        };
        self.0.iter().map(line).collect()
    }
}

fn to(forward: &Forward) -> String {
    forward.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default()
}

impl Drop for Entries {
    fn drop(&mut self) {
        self.0.values().for_each(|open| open.task.abort());
    }
}

/// Opens a stream of the present association for each connection. While no stream is free, one connection of this entry waits here, and
/// further ones wait to be accepted. An entry without connections holds no stream.
async fn accept_all(listener: TcpListener, entry: Entry, dispatcher: Arc<Dispatcher>) -> Infallible {
    let (mut hubs, mut rules) = (dispatcher.hubs(), dispatcher.watch_rules());
    let mut waiting = None;
    loop {
        let hub = hubs.borrow_and_update().clone();
        let Some(hub) = hub else {
            let refuse = rules.borrow_and_update().while_down == WhileDown::Refuse;
            if let Some((connection, _)) = waiting.take_if(|_| refuse) {
                refuse_one(&connection);
            }
            tokio::select! {
                _ = hubs.changed() => {}
                _ = rules.changed() => {}
                never = turn_away_all(&listener), if refuse => match never {},
            }
            continue;
        };
        let Some((tcp, handshake)) = waiting.take() else {
            let accepted = async {
                let handshake = match &entry {
                    Entry::Socks(_) => Some(dispatcher.handshake().await),
                    Entry::Tcp(_) | Entry::Udp(_) => None,
                };
                listener.accept().await.map(|(tcp, _)| (tcp, handshake))
            };
            tokio::select! {
                accepted = accepted => match accepted {
                    Ok(accepted) => waiting = Some(accepted),
                    // The connection was closed before it was accepted, or too many files are open: the other connections continue.
                    Err(error) => {
                        let line = format!("a TCP connection was not accepted: {error}");
                        if !log::warn_of_shortage(&error, &line) {
                            warn!(%entry, %error, "{line}");
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                _ = hubs.changed() => {}
            }
            continue;
        };
        match &entry {
            Entry::Socks(_) => {
                let dispatcher = Arc::clone(&dispatcher);
                tokio::spawn(async move {
                    through_socks(tcp, &dispatcher).await;
                    drop(handshake);
                });
            }
            Entry::Tcp(forward) | Entry::Udp(forward) => {
                let turn = tokio::select! {
                    turn = hub.turns().next() => turn,
                    _ = hubs.changed() => {
                        waiting = Some((tcp, handshake));
                        continue;
                    }
                };
                let class = dispatcher.rules().class_of(forward.port());
                let opening = Opening { kind: Kind::Tcp, class, tag: 0, to: forward.destination() };
                tokio::spawn(through(tcp, hub, turn, opening));
            }
        }
    }
}

/// Carries one connection. The hub reports the end of the association.
async fn through(tcp: TcpStream, hub: Arc<Hub>, turn: StreamPermit, opening: Opening) {
    match hub.open_with(turn, opening).await {
        Ok(place) => drop(carry(&hub, place, tcp).await),
        Err(_) => refuse_one(&tcp),
    }
}

/// Carries one SOCKS connection, whose program names the destination.
async fn through_socks(mut tcp: TcpStream, dispatcher: &Dispatcher) {
    let target = match timeout(HANDSHAKE, socks::request(&mut tcp)).await {
        Ok(Ok(target)) => target,
        Ok(Err(error)) => return debug!(%error, "a SOCKS connection came to nothing: {error}"),
        Err(_) => return debug!("a SOCKS connection came to nothing: it did not say in time where it leads"),
    };
    let class = dispatcher.rules().class_of(target.port);
    let to = Destination::Named(target.to_string());
    let opening = Opening { kind: Kind::Tcp, class, tag: 0, to };
    let made = async {
        let hub = dispatcher.hub()?;
        let turn = hub.turns().next().await;
        let place = hub.open_with(turn, opening).await.ok()?;
        let outcome = accepted(&hub, place).await.ok()?;
        Some((hub, outcome))
    };
    let Some((hub, outcome)) = made.await else {
        let _ = socks::reply(&mut tcp, Err(Refusal::Broke)).await;
        return;
    };
    let answer = outcome.as_ref().map(drop).map_err(|why| *why);
    let told = socks::reply(&mut tcp, answer).await;
    if let Ok(place) = outcome {
        // If the program has closed the connection, `carry` notices that.
        let _ = told;
        let _ = carry(&hub, place, tcp).await;
    }
}

/// Resets each connection that is accepted.
async fn turn_away_all(listener: &TcpListener) -> Infallible {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => refuse_one(&connection),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Lets the system reset a connection when it is dropped.
fn refuse_one(connection: &TcpStream) {
    let _ = connection.set_zero_linger();
}

/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// Time that the SOCKS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::tunnel::dispatcher::Rules;
    use crate::tunnel::flow::Limits;

    /// The only thread of the runtime beside that of the test is busy while the former entry closes.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn an_entry_takes_the_port_of_one_that_closes_late() {
        let limits = Limits { idle: Duration::ZERO, lifetime: Duration::ZERO };
        let rules =
            Rules { while_down: WhileDown::Wait, classes: Vec::new(), limits, reverse: BTreeMap::new() };
        let dispatcher = Dispatcher::new(rules);
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let listen = free.expect("a free port");
        let forward = |to: &str| Forward { listen, to: Some(to.parse().expect("a target")) };
        let udp = |to: &str| Entry::Udp(forward(to));
        let mut entries = Entries::default();
        for wanted in [[Entry::Tcp(forward("a:1")), udp("a:1")], [Entry::Tcp(forward("b:1")), udp("b:1")]] {
            let opened =
                entries.opened(&wanted, &dispatcher).await.expect("free, or held by an entry that closes");
            let (begun, is_busy) = oneshot::channel();
            tokio::spawn(async move {
                let _ = begun.send(());
                std::thread::sleep(Duration::from_millis(300));
            });
            is_busy.await.expect("it begins");
            let failures = entries.become_these(&wanted, opened, &dispatcher).await;
            let failures: Vec<_> = failures.iter().map(Failure::message).collect();
            assert_eq!(failures, [""; 0]);
        }
    }
}
