//! The service environment of a tunnel: its service manager, monitoring, and its configuration file.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpListener;
use tracing::{error, info, warn};

use super::args::{CommonArgs, Role};
use super::http;
use super::metrics;
use super::notify::Notify;
use super::settings::Settings;
use super::state::{Reloads, State};
use crate::failure::{Failure, of_socket};
use crate::signal::Hangups;

/// The service environment of a tunnel.
pub(super) struct Service {
    notify: Notify,
    watched: Option<TcpListener>,
    source: Option<Source>,
}

/// A configuration file, and its content at the start.
pub(super) struct Source {
    file: PathBuf,
    settings: Settings,
    hangups: Hangups,
}

impl Source {
    pub(super) fn read(file: PathBuf) -> Result<Self, Failure> {
        let settings = Settings::read(&file)?;
        Ok(Source { file, settings, hangups: Hangups::begin() })
    }

    pub(super) fn role(&self) -> Result<Role, Failure> {
        self.settings.role().map_err(|what| Failure::usage(what).at(self.file.display()))
    }

    /// Reads the file again, checks all that it names, and calls `apply`.
    ///
    /// # Errors
    /// The file or something that it names is wrong; nothing has changed then.
    async fn reload(
        &self,
        at_once: &[&str],
        apply: &mut impl AsyncFnMut(Role) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let settings = Settings::read(&self.file)?;
        let of_file = |failure: Failure| failure.at(self.file.display());
        let role = settings.role().map_err(Failure::usage).map_err(of_file)?;
        // Otherwise the next start would fail, long after the mistake was made.
        role.check().map_err(of_file)?;
        apply(role).await.map_err(of_file)?;
        let late = settings.changed(&self.settings, at_once).join(", ");
        if !late.is_empty() {
            warn!(options = %late, "{late}: changes with a restart alone");
        }
        Ok(())
    }
}

impl Service {
    pub(super) async fn new(common: &CommonArgs, source: Option<Source>) -> Result<Self, Failure> {
        let watched = match common.metrics {
            Some(place) => {
                let listener = TcpListener::bind(place).await;
                Some(listener.map_err(|error| of_socket(format!("--metrics {place}"), &error))?)
            }
            None => None,
        };
        Ok(Service { notify: Notify::of_environment(), watched, source })
    }

    pub(super) fn stopping(&self) {
        self.notify.stopping();
    }

    /// Reports that the tunnel is ready; `line` describes it.
    pub(super) fn ready(&self, line: &str) {
        self.notify.ready();
        self.notify.status(line);
        if let Some(place) = self.watched.as_ref().and_then(|listener| listener.local_addr().ok()) {
            info!(%place, "metrics are at http://{place}/metrics");
        }
    }

    /// Answers monitoring, sends keepalives to the service manager, and calls `apply` for each reload; never returns. If `apply` fails, it
    /// has changed nothing.
    pub(super) async fn attend(
        &mut self,
        state: impl Fn() -> State + Clone + Send + 'static,
        at_once: &[&str],
        mut apply: impl AsyncFnMut(Role) -> Result<(), Failure>,
    ) -> Infallible {
        let [applied, failed] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let reloads = [&applied, &failed].map(Arc::clone);
        let state = move || {
            let [applied, failed] = reloads.each_ref().map(|count| count.load(Ordering::Relaxed));
            State { reloads: Reloads { applied, failed }, ..state() }
        };
        let find = move |path: &str| match path {
            "/metrics" => Some(("text/plain; version=0.0.4", metrics::text(&state()))),
            "/status" => Some(("application/json", serde_json::to_string(&state()).ok()?)),
            _ => None,
        };
        let watched = self.watched.take();
        let watching = async {
            match watched {
                Some(listener) => http::serve(listener, find).await,
                None => std::future::pending().await,
            }
        };
        let (notify, source) = (&self.notify, &mut self.source);
        let reloading = async {
            let Some(source) = source else { return std::future::pending().await };
            loop {
                source.hangups.next().await;
                notify.reloading();
                match source.reload(at_once, &mut apply).await {
                    Ok(()) => {
                        applied.fetch_add(1, Ordering::Relaxed);
                        info!("the configuration was read anew");
                    }
                    Err(failure) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                        error!("{}; everything stays as it is", failure.message());
                    }
                }
                notify.ready();
            }
        };
        tokio::select! {
            never = watching => never,
            never = reloading => never,
            never = notify.live() => never,
        }
    }
}
