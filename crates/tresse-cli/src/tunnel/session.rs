//! Session of a client: an association that the server has accepted, its set-up and its supervision.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};
use tresse::security::Security;
use tresse::{Adjustment, Association, Endpoint, Message, SendOptions, StreamId};

use super::args::ClientArgs;
use super::control::Control;
use super::dial::dial;
use super::dispatcher::{Dispatcher, Rules};
use super::hub::{ConnectionHandle, Hub, Request, Side};
use super::message::StreamMessage;
use super::opening::{Destination, Opening, Refusal};
use crate::call::{CallArgs, FAREWELL, breach};
use crate::failure::Failure;
use crate::liveness::Liveness;
use crate::report::paths::{PathsReport, Side as Direction, Snapshot};

/// A session of a client.
pub(super) struct Session {
    /// The call that set up the session, with the addresses of that time.
    call: Box<CallArgs>,
    endpoint: Endpoint,
    hub: Arc<Hub>,
    liveness: Liveness,
    /// Number that the server gave to the session.
    number: u64,
    began: Instant,
}

impl Session {
    /// Sets up a session from a new port, because the server may still have the association of the last one. Also returns whether the
    /// server still has the session `previous`.
    pub(super) async fn begin(
        args: &ClientArgs,
        call: CallArgs,
        keys: Option<&Arc<Security>>,
        previous: Option<u64>,
    ) -> Result<(Session, bool), Failure> {
        let mut config = args.common.config(&call.security)?;
        let settled = config.rto_max;
        // A server that has restarted must be found at once.
        config.rto_max = config.rto_max.min(LONGEST_WAIT).max(config.rto_min).max(config.rto_initial);
        let endpoint = call.bind_with(config, args.common.schedulers.registry()?, keys)?;
        let (ppid, hello) = StreamMessage::Control(Control::Hello { previous }).encode();
        let options = SendOptions::on(StreamId(0)).with(|o| o.ppid = ppid);
        let association = call.connect_saying(&endpoint, options, hello).await?;
        let answer = timeout(call.timeout, association.recv()).await;
        let answer = answer.map_err(|_| Failure::running("the server does not speak of a tunnel"))??;
        let (number, lives) = welcome(answer)?;
        let settled = Adjustment::default().with(|a| a.rto_max = Some(settled));
        association.adjust(settled).map_err(Failure::running)?;
        let liveness = Liveness::new(association.clone(), args.common.liveness);
        let hub = Hub::new(association, Side::Client, args.common.connections);
        Ok((Session { call: Box::new(call), endpoint, hub, liveness, number, began: Instant::now() }, lives))
    }

    pub(super) fn call(&self) -> &CallArgs {
        &self.call
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn association(&self) -> &Association {
        self.hub.association()
    }

    pub(super) fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Dispatches inbound messages until the association ends, and returns the reason.
    pub(super) async fn serve(&self, dispatcher: &Dispatcher) -> Failure {
        let mut complained = BTreeSet::new();
        let outcome = self.hub.serve(|request| match request {
            Request::Open(place, opening) => self.open(dispatcher, place, opening),
            Request::Control(control) => self.on_control(dispatcher, control, &mut complained),
        });
        outcome.await.err().unwrap_or_else(|| Failure::running("the server closed the tunnel"))
    }

    fn open(
        &self,
        dispatcher: &Dispatcher,
        place: ConnectionHandle,
        opening: Opening,
    ) -> Result<(), Failure> {
        let Destination::Listener(number) = opening.to else {
            return Err(breach("a connection that names no listener"));
        };
        let rules = dispatcher.rules();
        let target = rules.reverse.get(&number).map(|reverse| &reverse.to);
        if let Some(target) = target {
            let _ = self.association().set_stream_class(place.stream, rules.class_of(target.port));
        }
        let target = target.map(ToString::to_string).ok_or(Refusal::Forbidden);
        tokio::spawn(dial(Arc::clone(&self.hub), place, opening, target, rules.limits));
        Ok(())
    }

    fn on_control(
        &self,
        dispatcher: &Dispatcher,
        control: Control,
        complained: &mut BTreeSet<u16>,
    ) -> Result<(), Failure> {
        match control {
            Control::Listening { number, address } => {
                complained.remove(&number);
                info!(%address, "the server accepts TCP connections at {address}");
            }
            Control::NotListening { number, reason } => {
                if complained.insert(number) {
                    let reason = crate::report::words::printable(&reason);
                    warn!(%reason, "the server does not accept TCP connections for this side: {reason}");
                }
                let (hub, wanted) = (Arc::clone(&self.hub), wanted_later(dispatcher.watch_rules(), number));
                tokio::spawn(async move {
                    if let Some(address) = wanted.await {
                        let _ = hub.tell(Control::Listen { number, address }).await;
                    }
                });
            }
            _ => return Err(breach("a word that is the client's")),
        }
        Ok(())
    }

    /// Requests the listeners of the rules from the server, now and when the rules change. Never returns: the end of the association is
    /// reported elsewhere.
    pub(super) async fn keep_listeners(&self, dispatcher: &Dispatcher) -> Failure {
        let mut rules = dispatcher.watch_rules();
        let mut told = BTreeMap::new();
        loop {
            let wanted = rules.borrow_and_update().reverse.clone();
            let gone = told.keys().filter(|number| !wanted.contains_key(number));
            let gone = gone.map(|&number| Control::Unlisten { number });
            let come = wanted.iter().filter(|(number, _)| !told.contains_key(number));
            let come = come.map(|(&number, reverse)| Control::Listen { number, address: reverse.listen });
            for control in gone.chain(come).collect::<Vec<_>>() {
                if self.hub.tell(control).await.is_err() {
                    return std::future::pending().await;
                }
            }
            told = wanted;
            if rules.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Returns a report on the data that the paths have carried since the session began, and on their limits.
    pub(super) fn report(&self) -> String {
        let snapshot = Snapshot::take(self.association());
        let paths = PathsReport::new(&snapshot, Direction::Sender, self.began.elapsed());
        paths.lines().join("\n") + "\n"
    }

    /// Aborts the session, and waits until the ABORT has left, [`FAREWELL`] at most.
    pub(super) async fn end(&self, why: &str) {
        let _ = timeout(FAREWELL, self.abort(why)).await;
    }

    /// Aborts the session, and waits until the ABORT has left. Does not wait until the endpoint is idle: the session and its connections
    /// hold the association.
    async fn abort(&self, why: &str) {
        self.association().abort(why);
        self.association().closed().await;
    }
}

/// Waits until a listener may be requested again. Returns its address if the rules want it before and after that.
async fn wanted_later(rules: watch::Receiver<Arc<Rules>>, number: u16) -> Option<SocketAddr> {
    let wanted = || rules.borrow().reverse.get(&number).map(|reverse| reverse.listen);
    wanted()?;
    sleep(BEFORE_ASKING_AGAIN).await;
    wanted()
}

/// Decodes the answer of the server: the number of the session, and whether the previous one still exists.
fn welcome(answer: Option<Message>) -> Result<(u64, bool), Failure> {
    let answer = answer.ok_or_else(|| Failure::running("the server closed the tunnel"))?;
    match StreamMessage::decode(answer).map_err(|error| breach(&error))? {
        StreamMessage::Control(Control::Welcome { session, previous_lives }) => Ok((session, previous_lives)),
        _ => Err(breach("something other than a welcome")),
    }
}

/// Largest RTO during the set-up, unless RTO.Min or RTO.Initial are larger.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Pause before a listener is requested again: the address may belong to a former session of this client.
const BEFORE_ASKING_AGAIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use clap::Parser;
    use tresse::{AssociationConfig, EndpointConfig};

    use super::super::args::{Role, TunnelArgs, WhileDown};
    use super::super::flow::Limits;
    use super::*;

    /// Time limit that no machine reaches.
    const FOREVER: Duration = Duration::from_secs(300);

    #[tokio::test]
    async fn the_end_waits_for_nobody_who_holds_the_session() {
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let config = AssociationConfig::preset("cmt").expect("a preset");
        let listening =
            Endpoint::bind(&here, 0, EndpointConfig::listening(5001), config).expect("a free port");
        let port = listening.udp_port().to_string();
        let words = ["tunnel", "client", "--from", "127.0.0.1", "--to", "127.0.0.1"];
        let words = [&words[..], &["--socks", "127.0.0.1:0", "--port", &port]].concat();
        let Ok(TunnelArgs { role: Role::Client(args) }) = TunnelArgs::try_parse_from(words) else {
            panic!("a client")
        };
        let mut call = args.call.clone();
        call.resolve().await.expect("addresses");
        let welcomed = async {
            let association = listening.accept().await.expect("it runs");
            let welcome = Control::Welcome { session: 1, previous_lives: false };
            let (ppid, welcome) = StreamMessage::Control(welcome).encode();
            let options = SendOptions::on(StreamId(0)).with(|o| o.ppid = ppid);
            association.send(options, welcome).await.expect("it is taken");
            association
        };
        let (begun, there) = tokio::join!(Session::begin(&args, call, None, None), welcomed);
        let Ok((session, false)) = begun else { panic!("a session") };
        let _held = Arc::clone(session.hub());
        timeout(FOREVER, session.abort("over")).await.expect("it is ended");
        timeout(FOREVER, there.closed()).await.expect("it was told");
    }

    #[tokio::test]
    async fn a_listener_that_is_given_up_meanwhile_is_not_asked_for_again() {
        let limits = Limits { idle: Duration::ZERO, lifetime: Duration::ZERO };
        let none =
            Rules { while_down: WhileDown::Wait, classes: Vec::new(), limits, reverse: BTreeMap::new() };
        let wanted = "127.0.0.1:7=a:1".parse().expect("a forward");
        let one = none.clone().with_reverse(&BTreeMap::new(), &[wanted]);
        let dispatcher = Dispatcher::new(one);
        let (stays, goes) =
            (wanted_later(dispatcher.watch_rules(), 0), wanted_later(dispatcher.watch_rules(), 0));
        assert_eq!(stays.await, Some("127.0.0.1:7".parse().expect("an address")));
        let mut goes = std::pin::pin!(goes);
        assert!(timeout(Duration::ZERO, &mut goes).await.is_err(), "it waits");
        dispatcher.set_rules(none);
        assert_eq!(goes.await, None);
    }
}
