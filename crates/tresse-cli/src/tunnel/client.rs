//! Client of a tunnel: it accepts connections, and opens associations one after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};
use tresse::host::Due;
use tresse::security::{Peers, Security};
use tresse::units::format_duration;

use super::args::{ClientArgs, Role, WITHOUT_KEYS};
use super::dispatcher::{Dispatcher, Rules};
use super::entry::{Entries, Entry};
use super::path_log;
use super::service::{Service, Source};
use super::session::Session;
use super::state::{SessionView, State};
use super::tun::{Tun, carry_packets};
use crate::call::{self, CallArgs};
use crate::failure::Failure;
use crate::named;
use crate::output;
use crate::schedulers;
use crate::signal;

pub(super) async fn run(args: ClientArgs, source: Option<Source>) -> Result<(), Failure> {
    args.common.begin();
    let mut service = Service::new(&args.common, source).await?;
    let rules = Rules::of(&args).with_reverse(&BTreeMap::new(), &args.remote);
    let trusted = Peers::default();
    let client = Client {
        dispatcher: Dispatcher::new(rules),
        keys: RwLock::new(args.call.keys_trusting(&trusted)?),
        trusted,
        entries: tokio::sync::Mutex::default(),
        found: Mutex::new(args.call.clone()),
        current: Current::default(),
        tun: args.common.open_tun()?,
        args: &args,
    };
    {
        let mut entries = client.entries.lock().await;
        *entries = entries.opened(&Entry::wanted(&args), &client.dispatcher).await?;
    }
    let (current, began) = (client.current.clone(), Instant::now());
    let peer = named::list(&args.call.to);
    let state = move || State::of("client", began, current.seen(&peer).into_iter().collect());
    service.ready(&format!("towards {}", named::list(&args.call.to)));
    let failure = tokio::select! {
        failure = client.sessions() => failure,
        never = service.attend(state, AT_ONCE, async |role| client.reload(role).await) => match never {},
        failure = carry_packets(client.tun.as_deref()) => failure,
        () = signal::interrupted() => Failure::interrupted("interrupted"),
    };
    service.stopping();
    if let Some(session) = client.current.get() {
        if !args.common.quiet {
            let _ = output::print(&session.report());
        }
        session.end("the tunnel was given up").await;
        return Err(call::with_causes(failure, session.endpoint()));
    }
    Err(failure)
}

struct Client<'a> {
    args: &'a ClientArgs,
    keys: RwLock<Option<Arc<Security>>>,
    /// The trusted peers of all sessions, including existing ones.
    trusted: Peers,
    dispatcher: Arc<Dispatcher>,
    entries: tokio::sync::Mutex<Entries>,
    current: Current,
    /// The call, with the addresses that its names had last.
    found: Mutex<CallArgs>,
    tun: Option<Arc<Tun>>,
}

/// The current session.
#[derive(Clone, Default)]
struct Current(Arc<Mutex<Option<Arc<Session>>>>);

impl Current {
    fn set(&self, session: Option<Arc<Session>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    fn get(&self) -> Option<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn seen(&self, peer: &str) -> Option<SessionView> {
        let session = self.get()?;
        let silent = session.liveness().is_silent();
        let hub = Arc::clone(session.hub());
        Some(SessionView { session: session.number(), peer: peer.to_owned(), silent, hub })
    }
}

/// End of a session.
enum SessionEnd {
    Over(Failure),
    /// Another session replaces it: the server has restarted or does not receive the old one any more, or this host's addresses have
    /// changed.
    Replaced(Session),
}

impl Client<'_> {
    /// Runs one session after the other. Returns the failure after which there is no further one.
    async fn sessions(&self) -> Failure {
        let (mut previous, mut pause, mut next) = (None, SHORTEST_PAUSE, None);
        loop {
            let attempt = match next.take() {
                Some(session) => Ok(session),
                None => self.begin(previous).await.map(|begun| begun.0),
            };
            let failure = match attempt {
                Ok(session) => {
                    let session = Arc::new(session);
                    self.announce(&session, previous.is_none()).await;
                    (previous, pause) = (Some(session.number()), SHORTEST_PAUSE);
                    self.current.set(Some(Arc::clone(&session)));
                    let fate = self.hold(&session).await;
                    self.dispatcher.send_to(None);
                    let failure = match fate {
                        SessionEnd::Over(failure) if self.args.once => return failure,
                        SessionEnd::Over(failure) => Some(failure),
                        SessionEnd::Replaced(new) => {
                            next = Some(new);
                            None
                        }
                    };
                    self.current.set(None);
                    tokio::spawn(async move { session.end("the tunnel broke down").await });
                    let Some(failure) = failure else { continue };
                    failure
                }
                Err(failure) if self.args.once => return failure,
                // The usual cause is a mistake in the command. If a name is not found, the cause is the network, which may recover.
                Err(failure) if previous.is_none() && !failure.is_unresolved() => return failure,
                Err(failure) => failure,
            };
            let (why, wait) = (failure.message(), format_duration(pause));
            warn!(%why, "{why}; trying again in {wait}");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn begin(&self, previous: Option<u64>) -> Result<(Session, bool), Failure> {
        let call = self.resolved().await?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner).clone();
        if keys.is_none() {
            // The names were not yet looked up when the command checked its addresses.
            call.security.do_without_keys(&call.remote())?;
        }
        Session::begin(self.args, call, keys.as_ref(), previous).await
    }

    /// Returns the call with the present addresses of its names. If a later look-up fails, the last addresses are used: the outage that a
    /// new session is to end may affect the name server, too.
    async fn resolved(&self) -> Result<CallArgs, Failure> {
        let mut call = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if call.is_resolved() {
            let _ = timeout(LONGEST_LOOKUP, call.resolve()).await;
        } else {
            call.resolve().await?;
        }
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&call);
        Ok(call)
    }

    /// Applies a changed configuration. Existing connections continue.
    ///
    /// # Errors
    /// An entry cannot be opened, or keys or trusted peers cannot be read; nothing has changed then.
    async fn reload(&self, role: Role) -> Result<(), Failure> {
        let Role::Client(args) = role else { return Ok(()) };
        let wanted = Entry::wanted(&args);
        let mut entries = self.entries.lock().await;
        let opened = entries.opened(&wanted, &self.dispatcher).await?;
        self.renew_keys(&args.call)?;
        let before = self.dispatcher.rules();
        self.dispatcher.set_rules(Rules::of(&args).with_reverse(&before.reverse, &args.remote));
        for failure in entries.become_these(&wanted, opened, &self.dispatcher).await {
            error!("{}", failure.message());
        }
        for line in entries.lines(&named::list(&self.args.call.to)) {
            info!("{line}");
        }
        Ok(())
    }

    /// Applies the keys and the trusted peers of a changed configuration. If either is invalid, neither changes. A session with a server
    /// that is no longer trusted is aborted.
    fn renew_keys(&self, call: &CallArgs) -> Result<(), Failure> {
        let session = self.current.get();
        let trusts = || {
            let peer = session.as_ref().and_then(|session| session.association().peer_identity());
            peer.is_some_and(|peer| self.trusted.contains(peer.fingerprint))
        };
        let trusted = trusts();
        let encrypts = self.keys.read().unwrap_or_else(PoisonError::into_inner).is_some();
        if encrypts && !call.security.encrypt() {
            return Err(Failure::usage(WITHOUT_KEYS));
        }
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = call.keys_trusting(&self.trusted)?;
        if !call.security.pins() {
            self.trusted.replace([]);
        }
        if let Some(session) = session.as_ref().filter(|_| trusted && !trusts()) {
            warn!("the server's key is no longer trusted");
            session.association().abort("the key is no longer trusted");
        }
        Ok(())
    }

    async fn announce(&self, session: &Session, first: bool) {
        if !first {
            return info!(session = session.number(), "the tunnel is there again");
        }
        if !self.args.common.quiet {
            session.call().say_links(session.association(), session.endpoint());
        }
        let server = named::list(&self.args.call.to);
        for line in self.entries.lock().await.lines(&server) {
            info!("{line}");
        }
    }

    /// Routes connections to the session until it ends, and returns the reason.
    async fn hold(&self, session: &Session) -> SessionEnd {
        self.dispatcher.send_to(Some(Arc::clone(session.hub())));
        if let Some(tun) = &self.tun {
            let (tun, hub) = (Arc::clone(tun), Arc::clone(session.hub()));
            // The end of the association is reported elsewhere.
            tokio::spawn(async move { tun.begin(&hub).await });
        }
        tokio::select! {
            failure = session.serve(&self.dispatcher) => SessionEnd::Over(failure),
            fate = self.watch_silence(session) => fate,
            failure = session.keep_listeners(&self.dispatcher) => SessionEnd::Over(failure),
            never = session.liveness().watch() => match never {},
            new = self.moved(session) => SessionEnd::Replaced(new),
            never = schedulers::watch(session.association(), output::say) => match never {},
            never = path_log::watch(session.association()) => match never {},
        }
    }

    /// Returns a session from other addresses, once this host has them and the server does not support changes of addresses. If the
    /// present session still reaches the server, its connections end first.
    async fn moved(&self, session: &Session) -> Session {
        let (call, quiet) = (session.call(), self.args.common.quiet);
        let follow = || call.follow(session.endpoint(), session.association(), quiet);
        let make = async |due: &Due| {
            let mut cut_off = due.cut_off;
            while !cut_off && session.hub().open() > 0 {
                cut_off = tokio::select! {
                    due = follow() => due.cut_off,
                    () = sleep(BETWEEN_LOOKS) => false,
                };
            }
            self.begin(Some(session.number())).await.map(|(new, _)| new)
        };
        call.successor(session.endpoint(), session.association(), quiet, make).await
    }

    /// Waits until the server is silent. Then new connections wait, and a new session is set up as a test. A server that knows the old
    /// session was only cut off, and will acknowledge again; one that does not know it has restarted.
    async fn watch_silence(&self, session: &Session) -> SessionEnd {
        // If the association is silent again soon, the counter of `successor` continues, so that such an association is replaced in the
        // end.
        let (mut known, mut heard) = (0, Instant::now());
        loop {
            session.liveness().turns(true).await;
            if heard.elapsed() >= SETTLED {
                known = 0;
            }
            let silence = format_duration(self.args.common.liveness);
            let doubt = format!("the server has said nothing for {silence}");
            if self.args.call.local_port != 0 {
                return SessionEnd::Over(Failure::unreachable(doubt));
            }
            warn!("{doubt}: new connections wait until it is known whether it lives");
            self.dispatcher.send_to(None);
            tokio::select! {
                () = session.liveness().turns(false) => {}
                (new, lives) = self.successor(session, &mut known) => {
                    match lives {
                        true => warn!("the server hears the former tunnel no more"),
                        false => warn!("the server has begun anew"),
                    }
                    return SessionEnd::Replaced(new);
                }
            }
            heard = Instant::now();
            info!("the server is heard again");
            self.dispatcher.send_to(Some(Arc::clone(session.hub())));
        }
    }

    /// Returns a new session: `false` if the server does not know this session, `true` if it knows this session and does not receive it
    /// any more. `known` counts how often the server knew this session, which remained silent.
    async fn successor(&self, session: &Session, known: &mut u32) -> (Session, bool) {
        loop {
            match self.begin(Some(session.number())).await {
                Ok((new, false)) => return (new, false),
                Ok((new, true)) if *known >= MOST_KNOWN => return (new, true),
                Ok((new, true)) => {
                    session.liveness().ask();
                    new.end("the former tunnel lives").await;
                    sleep(self.args.common.liveness).await;
                    *known += 1;
                }
                Err(_) => sleep(SHORTEST_PAUSE).await,
            }
        }
    }
}

/// Options that a changed configuration changes at once.
const AT_ONCE: &[&str] = &[
    "tcp",
    "socks",
    "udp",
    "remote",
    "class",
    "while-down",
    "udp-idle",
    "udp-lifetime",
    "key",
    "peer",
    "secret-file",
];
/// Interval at which a session that is to be replaced is checked for open connections.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// First pause before the tunnel is set up again, and the longest one after many attempts: a server that restarts is soon available, and
/// one that is gone is not flooded.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Longest look-up of names if former addresses can be used.
const LONGEST_LOOKUP: Duration = Duration::from_secs(2);
/// Number of times that a server may know a silent session before this is replaced: a NAT on the path may have lost the binding of its
/// ports.
const MOST_KNOWN: u32 = 3;
/// Time without silence after which a former silence of a session has no effect.
const SETTLED: Duration = Duration::from_secs(30);

#[cfg(all(test, unix))]
mod tests {
    use clap::Parser;
    use tresse::security::{Fingerprint, Identity};

    use super::super::args::TunnelArgs;
    use super::*;

    fn client_args(more: &[&str]) -> ClientArgs {
        let words = ["tunnel", "client", "--to", "127.0.0.1", "--socks", "127.0.0.1:0"];
        let Ok(TunnelArgs { role: Role::Client(args) }) =
            TunnelArgs::try_parse_from([&words[..], more].concat())
        else {
            panic!("a client")
        };
        args
    }

    #[test]
    fn keys_and_trust_change_together_or_not_at_all() {
        use std::os::unix::fs::PermissionsExt;
        let [former, present] = [b"former", b"latter"].map(|key| Fingerprint::of_public_key(key));
        let [old, new] = [former, present].map(|peer| peer.to_string());
        let file = std::env::temp_dir().join(format!("tresse-client-key-{}", std::process::id()));
        std::fs::write(&file, &*Identity::generate_pem().expect("random numbers")).expect("writable");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("one's own");
        let key = file.to_str().expect("UTF-8");
        let args = client_args(&["--key", key, "--peer", &old]);
        let trusted = Peers::default();
        let client = Client {
            args: &args,
            keys: RwLock::new(args.call.keys_trusting(&trusted).expect("a key")),
            trusted: trusted.clone(),
            dispatcher: Dispatcher::new(Rules::of(&args)),
            entries: tokio::sync::Mutex::default(),
            current: Current::default(),
            found: Mutex::new(args.call.clone()),
            tun: None,
        };
        let began = client.keys.read().expect("whole").clone().expect("a key");
        for refused in [&[][..], &["--key", "/no/such/key", "--peer", &new], &["--key", key, "--peer", "/no"]]
        {
            assert!(client.renew_keys(&client_args(refused).call).is_err(), "{refused:?}");
            let keys = client.keys.read().expect("whole").clone();
            assert!(keys.is_some_and(|keys| Arc::ptr_eq(&keys, &began)), "{refused:?}");
            assert!(trusted.contains(former) && !trusted.contains(present), "{refused:?}");
        }
        client.renew_keys(&client_args(&["--key", key, "--peer", &new]).call).expect("a key and a peer");
        assert!(trusted.contains(present) && !trusted.contains(former));
        let _ = std::fs::remove_file(&file);
    }
}
