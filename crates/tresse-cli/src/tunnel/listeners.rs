//! Listeners at the server on behalf of clients: what connects there is opened towards the client that wanted it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tracing::{info, warn};
use tresse::config::StreamClass;

use super::connection::carry;
use super::control::Control;
use super::hub::Hub;
use super::opening::{Destination, Kind, Opening};
use crate::liveness::Liveness;

/// All of them, of all clients.
#[derive(Default)]
pub(super) struct Listeners(Mutex<BTreeMap<SocketAddr, Listener>>);

struct Listener {
    owner: Owner,
    number: u16,
    task: AbortHandle,
}

/// A client that wants listeners.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) session: u64,
    pub(super) hub: Arc<Hub>,
    pub(super) liveness: Arc<Liveness>,
}

impl Owner {
    /// Has the hub tell the client; an end of the association is told by the hub, too.
    pub(super) fn tell(&self, control: Control) {
        let hub = Arc::clone(&self.hub);
        tokio::spawn(async move { hub.tell(control).await });
    }
}

impl Listener {
    /// Ends, and has its client know, who may ask for it again.
    fn withdraw(&self, reason: String) {
        self.task.abort();
        self.owner.tell(Control::NotListening { number: self.number, reason });
    }
}

impl Listeners {
    /// Listens at `address` for a client. A client that is silent loses its listener to one that is not: it may be the same one,
    /// which has begun anew. If it is not, it is told once it is heard again.
    pub(super) async fn listen(&self, owner: Owner, number: u16, address: SocketAddr) -> Control {
        if !self.make_room(&owner, address) {
            let reason = format!("{address} is taken by another client");
            return Control::NotListening { number, reason };
        }
        // The task that was aborted gives its port back when it runs next.
        tokio::task::yield_now().await;
        let listener = match TcpListener::bind(address).await {
            Ok(listener) => listener,
            Err(error) => {
                return Control::NotListening { number, reason: format!("{address}: {error}") };
            }
        };
        let place = listener.local_addr().unwrap_or(address);
        info!(%place, session = owner.session, "listening on {place} for a client");
        let task = tokio::spawn(accept_all(listener, Arc::clone(&owner.hub), number)).abort_handle();
        let listener = Listener { owner, number, task };
        self.lock().insert(place, listener);
        Control::Listening { number, address: place }
    }

    /// The client wants it no more.
    pub(super) fn unlisten(&self, session: u64, number: u16) {
        self.end(|listener| listener.owner.session == session && listener.number == number);
    }

    /// The client is gone.
    pub(super) fn forget(&self, session: u64) {
        self.end(|listener| listener.owner.session == session);
    }

    /// Ends those whose address `may` refuses, and tells their clients.
    pub(super) fn keep(&self, may: impl Fn(SocketAddr) -> bool) {
        self.lock().retain(|address, listener| {
            let stays = may(*address);
            if !stays {
                listener.withdraw(format!("{address} is not allowed any more"));
            }
            stays
        });
    }

    fn make_room(&self, owner: &Owner, address: SocketAddr) -> bool {
        let mut listeners = self.lock();
        let Some(other) = listeners.get(&address) else { return true };
        if other.owner.session == owner.session {
            other.task.abort();
        } else if other.owner.liveness.is_silent() {
            other.withdraw(format!("another client has taken {address}"));
        } else {
            return false;
        }
        listeners.remove(&address);
        true
    }

    fn end(&self, which: impl Fn(&Listener) -> bool) {
        self.lock().retain(|_, listener| {
            let ends = which(listener);
            if ends {
                listener.task.abort();
            }
            !ends
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SocketAddr, Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives each connection a stream towards the client.
async fn accept_all(listener: TcpListener, hub: Arc<Hub>, number: u16) {
    loop {
        let tcp = match listener.accept().await {
            Ok((tcp, _)) => tcp,
            Err(error) => {
                warn!(%error, "a TCP connection was not accepted: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Not before: whatever nobody connects to would have one, too.
        let turn = hub.turns().next().await;
        // Its class is for the client to say: it knows what the port leads to.
        let opening =
            Opening { kind: Kind::Tcp, class: StreamClass::Bulk, tag: 0, to: Destination::Listener(number) };
        let hub = Arc::clone(&hub);
        tokio::spawn(async move {
            if let Ok(place) = hub.open_with(turn, opening).await {
                let _ = carry(&hub, place, tcp).await;
            }
        });
    }
}

/// Before another connection is accepted, when one could not be.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
