//! Listeners at the server, on behalf of clients. Each connection is carried to the client that requested its listener.

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
use super::log;
use super::opening::{Destination, Kind, Opening};
use crate::liveness::Liveness;

/// The listeners of all clients.
#[derive(Default)]
pub(super) struct Listeners(Mutex<BTreeMap<SocketAddr, Listener>>);

struct Listener {
    owner: Owner,
    number: u16,
    task: AbortHandle,
}

/// A client that has requested listeners.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) session: u64,
    pub(super) hub: Arc<Hub>,
    pub(super) liveness: Arc<Liveness>,
}

impl Owner {
    /// Sends a control message to the client in the background. The hub reports the end of the association.
    pub(super) fn tell(&self, control: Control) {
        let hub = Arc::clone(&self.hub);
        tokio::spawn(async move { hub.tell(control).await });
    }
}

impl Listener {
    /// Ends the listener, and notifies its client, which may request it again.
    fn withdraw(&self, reason: String) {
        self.task.abort();
        self.owner.tell(Control::NotListening { number: self.number, reason });
    }
}

impl Listeners {
    /// Listens at `address` for a client. A silent client loses its listener to the new one, which may be the same client after a
    /// restart. If it is another one, the former client receives the notification when it is no longer cut off.
    pub(super) async fn listen(&self, owner: Owner, number: u16, address: SocketAddr) -> Control {
        if !self.make_room(&owner, address) {
            let reason = format!("{address} is taken by another client");
            return Control::NotListening { number, reason };
        }
        // The aborted task releases its port when it runs next.
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

    /// Ends a listener that its client does not need any more.
    pub(super) fn unlisten(&self, session: u64, number: u16) {
        self.end(|listener| listener.owner.session == session && listener.number == number);
    }

    /// Ends all listeners of a client that is gone.
    pub(super) fn forget(&self, session: u64) {
        self.end(|listener| listener.owner.session == session);
    }

    /// Ends the listeners whose address `may` refuses, and notifies their clients.
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

/// Opens a stream to the client for each connection.
async fn accept_all(listener: TcpListener, hub: Arc<Hub>, number: u16) {
    loop {
        let tcp = match listener.accept().await {
            Ok((tcp, _)) => tcp,
            Err(error) => {
                let line = format!("a TCP connection was not accepted: {error}");
                if !log::warn_of_shortage(&error, &line) {
                    warn!(%error, "{line}");
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // The permit is acquired only now, so that a listener without connections holds none.
        let turn = hub.turns().next().await;
        // The client sets the class, because it knows the target.
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

/// Pause after a connection could not be accepted.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
