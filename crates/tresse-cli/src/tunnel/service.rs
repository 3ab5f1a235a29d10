//! The service environment of a tunnel: its service manager, monitoring, and its configuration file.

use std::convert::Infallible;
use std::path::PathBuf;

use tokio::net::TcpListener;
use tracing::{error, info, warn};

use super::args::{CommonArgs, Role};
use super::http;
use super::metrics;
use super::notify::Notify;
use super::settings::Settings;
use super::state::State;
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

    /// Waits for SIGHUP, reads the file again, and returns the role. If the file is invalid, the error is logged, and nothing changes.
    async fn changed(&mut self, at_once: &[&str], notify: &Notify) -> Role {
        loop {
            self.hangups.next().await;
            notify.reloading();
            let read = Settings::read(&self.file);
            let role = read.and_then(|settings| {
                let role = settings.role().map_err(|what| Failure::usage(what).at(self.file.display()))?;
                // Otherwise the next start would fail, long after the mistake was made.
                role.check().map_err(|failure| failure.at(self.file.display()))?;
                Ok((settings, role))
            });
            match role {
                Ok((settings, role)) => {
                    let late = settings.changed(&self.settings, at_once).join(", ");
                    if !late.is_empty() {
                        warn!(options = %late, "{late}: changes with a restart alone");
                    }
                    return role;
                }
                Err(failure) => {
                    error!("{}; everything stays as it is", failure.message());
                    notify.ready();
                }
            }
        }
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

    /// Answers monitoring, sends keepalives to the service manager, and calls `apply` after each reload; never returns.
    pub(super) async fn attend(
        &mut self,
        state: impl Fn() -> State + Clone + Send + 'static,
        at_once: &[&str],
        mut apply: impl AsyncFnMut(Role),
    ) -> Infallible {
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
                let role = source.changed(at_once, notify).await;
                apply(role).await;
                info!("the configuration was read anew");
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
