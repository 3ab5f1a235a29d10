//! Server of a tunnel: it waits for clients, and connects their connections to the destinations.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{info, warn};
use tresse::security::Peers;
use tresse::{Association, Endpoint};

use super::allowed::Allowed;
use super::args::{Role, ServerArgs, WITHOUT_KEYS};
use super::connection::turn_away;
use super::control::Control;
use super::dial::dial;
use super::flow::Limits;
use super::hub::{Hub, Request, Side};
use super::listeners::{Listeners, Owner};
use super::opening::{Kind, Refusal};
use super::path_log;
use super::service::{Service, Source};
use super::state::{SessionView, State};
use super::tun::{Tun, carry_packets};
use crate::call::{self, breach};
use crate::failure::Failure;
use crate::output;
use crate::places::{AcceptedPeer, Acceptor};
use crate::schedulers;
use crate::signal;

pub(super) async fn run(args: ServerArgs, source: Option<Source>) -> Result<(), Failure> {
    args.common.begin();
    let mut service = Service::new(&args.common, source).await?;
    let mut config = args.common.config(&args.listen.security)?;
    // A client may open no more connections than that.
    config.inbound_streams = config.outbound_streams;
    let trusted = Peers::default();
    let endpoint = args.listen.bind_trusting(config, args.common.schedulers.registry()?, &trusted).await?;
    let server = Arc::new(Server {
        permissions: RwLock::new(Permissions {
            allowed: Arc::new(args.allowed()),
            limits: args.common.limits(),
        }),
        patience: args.common.liveness,
        connections: args.common.connections,
        listeners: Listeners::default(),
        live: Mutex::default(),
        tun: args.common.open_tun()?,
        trusted: args.listen.security.pins().then_some(trusted),
        encrypts: args.listen.security.encrypt(),
    });
    let greeting = args.listen.greeting(&endpoint);
    info!("{greeting}, for {}", args.purpose());
    service.ready(&greeting);
    let (seen, began) = (Arc::clone(&server), Instant::now());
    let state = move || State::of("server", began, seen.seen());
    let outcome = tokio::select! {
        outcome = serve(&endpoint, &server) => outcome,
        failure = carry_packets(server.tun.as_deref()) => Err(failure),
        never = service.attend(state, AT_ONCE, async |role| server.reload(role)) => match never {},
    };
    service.stopping();
    call::say_farewell(&endpoint).await;
    outcome
}

/// State that all clients share.
struct Server {
    permissions: RwLock<Permissions>,
    patience: Duration,
    /// Most connections and flows that the server opens to a client at a time.
    connections: u16,
    listeners: Listeners,
    /// The existing sessions, with the addresses of their peers.
    live: Mutex<BTreeMap<u64, (String, Owner)>>,
    /// The TUN device, normally used by the client that opened lanes last.
    tun: Option<Arc<Tun>>,
    /// The trusted clients, if these are known by their keys.
    trusted: Option<Peers>,
    encrypts: bool,
}

/// Permissions that a changed configuration may change.
#[derive(Clone)]
struct Permissions {
    allowed: Arc<Allowed>,
    limits: Limits,
}

impl Server {
    fn permissions(&self) -> Permissions {
        self.permissions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<u64, (String, Owner)>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> Vec<SessionView> {
        let of = |(&session, (peer, owner)): (&u64, &(String, Owner))| SessionView {
            session,
            peer: peer.clone(),
            silent: owner.liveness.is_silent(),
            hub: Arc::clone(&owner.hub),
        };
        self.live().iter().map(of).collect()
    }

    /// Returns whether the peer is a trusted client.
    fn trusts(&self, association: &Association) -> bool {
        let known = |trusted: &Peers| {
            association.peer_identity().is_some_and(|peer| trusted.contains(peer.fingerprint))
        };
        self.trusted.as_ref().is_none_or(known)
    }

    /// Aborts the sessions of clients that are no longer trusted.
    fn end_untrusted(&self) {
        for (peer, owner) in self.live().values() {
            let association = owner.hub.association();
            if !self.trusts(association) {
                warn!(%peer, "{peer}: its key is no longer trusted");
                association.abort("the key is no longer trusted");
            }
        }
    }

    /// Applies a changed configuration. All other connections continue.
    ///
    /// # Errors
    /// The trusted peers cannot be read, or encryption would end; nothing has changed then.
    fn reload(&self, role: Role) -> Result<(), Failure> {
        let Role::Server(args) = role else { return Ok(()) };
        if self.encrypts && !args.listen.security.encrypt() {
            return Err(Failure::usage(WITHOUT_KEYS));
        }
        if let Some(trusted) = &self.trusted {
            args.listen.security.trust_anew(trusted)?;
            self.end_untrusted();
        }
        let allowed = Arc::new(args.allowed());
        let permissions = Permissions { allowed: Arc::clone(&allowed), limits: args.common.limits() };
        *self.permissions.write().unwrap_or_else(PoisonError::into_inner) = permissions;
        self.listeners.keep(|address| allowed.may_listen(address));
        Ok(())
    }
}

async fn serve(endpoint: &Endpoint, server: &Arc<Server>) -> Result<(), Failure> {
    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    let mut acceptor = Acceptor::new(endpoint, MOST_CLIENTS, server.patience);
    let mut interrupt = std::pin::pin!(signal::interrupted());
    loop {
        tokio::select! {
            accepted = acceptor.admit() => {
                let accepted = accepted.ok_or_else(|| Failure::running("the network driver broke down"))?;
                clients.spawn(Client::attend(Arc::clone(server), accepted, stopped.clone()));
            }
            Some(done) = clients.join_next() => {
                if let Err(failure) = done.unwrap_or_else(|_| Err(Failure::running("a client's tunnel broke down"))) {
                    let why = failure.message();
                    warn!(%why, "{why}");
                }
            }
            () = &mut interrupt => break,
        }
    }
    // Every client is notified.
    let _ = stop.send(true);
    while clients.join_next().await.is_some() {}
    Err(Failure::interrupted("interrupted"))
}

/// One association with a client.
struct Client {
    server: Arc<Server>,
    peer: String,
    owner: Owner,
    /// Its requests about listeners.
    listener_requests: mpsc::Sender<Control>,
}

impl Client {
    /// Serves a client until its association ends.
    async fn attend(
        server: Arc<Server>,
        accepted: AcceptedPeer,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let AcceptedPeer { association, liveness, place } = accepted;
        let peer = call::peer_of(&association);
        let session = getrandom::u64().map_err(|error| Failure::running(error).at(&peer))?;
        let hub = Hub::new(association, Side::Server, server.connections);
        let (listener_requests, asked) = mpsc::channel(MOST_LISTENER_REQUESTS);
        let client = Client { server, peer, owner: Owner { session, hub, liveness }, listener_requests };
        let Owner { hub, liveness, .. } = &client.owner;
        let outcome = tokio::select! {
            outcome = hub.serve(|request| client.on_request(request)) => outcome,
            never = client.listen(asked) => match never {},
            never = liveness.watch() => match never {},
            never = schedulers::watch(hub.association(), output::say) => match never {},
            never = path_log::watch(hub.association()) => match never {},
            () = place.lost() => Err(Failure::running("it was not heard any more, and another client takes its place")),
            _ = stop.wait_for(|stop| *stop) => Err(Failure::interrupted("the tunnel was interrupted")),
        };
        if let Err(failure) = &outcome {
            hub.association().abort(failure.message());
        }
        outcome.map_err(|failure| failure.at(&client.peer))
    }

    fn on_request(&self, request: Request) -> Result<(), Failure> {
        let Owner { session, hub, .. } = &self.owner;
        match request {
            Request::Open(place, opening) if opening.kind == Kind::Packets => {
                let (hub, tun) = (Arc::clone(hub), self.server.tun.clone());
                tokio::spawn(async move {
                    match tun {
                        Some(tun) => tun.join(hub, place, opening.class).await,
                        None => drop(turn_away(&hub, place, Refusal::Forbidden).await),
                    }
                });
            }
            Request::Open(place, opening) => {
                let Permissions { allowed, limits } = self.server.permissions();
                let target = allowed.destination(opening.kind, &opening.to);
                tokio::spawn(dial(Arc::clone(hub), place, opening, target, limits));
            }
            Request::Control(Control::Hello { previous }) => {
                let mut live = self.server.live();
                // The list of trusted peers may have changed after the handshake.
                if !self.server.trusts(hub.association()) {
                    return Err(Failure::not_authenticated("its key is no longer trusted"));
                }
                let previous_lives = previous.is_some_and(|previous| live.contains_key(&previous));
                live.insert(*session, (self.peer.clone(), self.owner.clone()));
                if !previous_lives {
                    info!(peer = %self.peer, session, "{}: a tunnel begins", self.peer);
                }
                self.owner.tell(Control::Welcome { session: *session, previous_lives });
            }
            Request::Control(control @ (Control::Listen { .. } | Control::Unlisten { .. })) => {
                let taken = self.listener_requests.try_send(control);
                taken.map_err(|_| breach("more requests for listeners than there are numbers for them"))?;
            }
            Request::Control(_) => return Err(breach("a word that is the server's")),
        }
        Ok(())
    }

    /// Processes the client's requests for listeners, one after the other; never returns. The future is dropped with the association, so
    /// that no listener is opened for a client that is gone.
    async fn listen(&self, mut asked: mpsc::Receiver<Control>) -> Infallible {
        let Owner { session, .. } = self.owner;
        loop {
            match asked.recv().await {
                Some(Control::Listen { number, address }) => {
                    let answer = if self.server.permissions().allowed.may_listen(address) {
                        self.server.listeners.listen(self.owner.clone(), number, address).await
                    } else {
                        let reason =
                            format!("{address} is not allowed: --allow-listen {address} permits it there");
                        Control::NotListening { number, reason }
                    };
                    self.owner.tell(answer);
                }
                Some(Control::Unlisten { number }) => self.server.listeners.unlisten(session, number),
                Some(_) => {}
                None => return std::future::pending().await,
            }
        }
    }
}

impl Drop for Client {
    /// Removes all state of the client, however its task ends.
    fn drop(&mut self) {
        self.server.live().remove(&self.owner.session);
        self.server.listeners.forget(self.owner.session);
    }
}

/// Options that a changed configuration changes at once.
const AT_ONCE: &[&str] = &["tcp", "udp", "allow", "allow-listen", "udp-idle", "udp-lifetime", "peer"];
/// Most clients at a time; further ones wait until one ends, or becomes silent.
const MOST_CLIENTS: usize = 64;
/// Most requests of a client about listeners that wait: one for each number.
const MOST_LISTENER_REQUESTS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpListener;
    use tresse::{SendOptions, StreamId};

    use super::super::loopback::endpoints;
    use super::super::message::StreamMessage;
    use super::*;

    /// A server that lets clients listen anywhere.
    fn server() -> Arc<Server> {
        let allowed = Allowed { listen: vec!["*:*".parse().expect("a pattern")], ..Allowed::default() };
        let limits = Limits { idle: Duration::from_secs(60), lifetime: Duration::from_secs(1) };
        Arc::new(Server {
            permissions: RwLock::new(Permissions { allowed: Arc::new(allowed), limits }),
            patience: Duration::from_secs(60),
            connections: 1,
            listeners: Listeners::default(),
            live: Mutex::default(),
            tun: None,
            trusted: None,
            encrypts: false,
        })
    }

    #[tokio::test]
    async fn a_client_that_is_gone_before_its_listener_is_there_leaves_the_port_free() {
        let (listening, calling, peer) = endpoints();
        let mut acceptor = Acceptor::new(&listening, 1, Duration::from_secs(60));
        let (called, accepted) = tokio::join!(calling.connect(peer), acceptor.admit());
        let (called, accepted) = (called.expect("it answers"), accepted.expect("it runs"));
        let free = TcpListener::bind("127.0.0.1:0").await.and_then(|one| one.local_addr());
        let place: SocketAddr = free.expect("a free port");
        for control in [Control::Hello { previous: None }, Control::Listen { number: 0, address: place }] {
            let (ppid, word) = StreamMessage::Control(control).encode();
            let options = SendOptions::on(StreamId(0)).with(|o| o.ppid = ppid);
            called.send(options, word).await.expect("it is taken");
        }
        while called.stats().send_buffer_used > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        called.abort("killed");
        accepted.association.closed().await;
        let (server, (_stop, stopped)) = (server(), watch::channel(false));
        let attended = Client::attend(Arc::clone(&server), accepted, stopped).await;
        assert!(attended.is_err(), "the association was aborted");
        // All tasks that remain get time to run.
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(server.live().is_empty());
        let again = TcpListener::bind(place).await;
        assert!(again.is_ok(), "the port is taken: {again:?}");
    }
}
