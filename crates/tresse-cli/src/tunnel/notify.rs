//! Notifications to systemd (sd_notify(3)): readiness, reloads, the end, and keepalives for its watchdog.
//!
//! Without a service manager nothing is sent.

use std::convert::Infallible;
use std::time::Duration;

#[cfg(unix)]
use std::os::unix::net::UnixDatagram;

/// Connection to the service manager.
pub(super) struct Notify {
    #[cfg(unix)]
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// Connects to the service manager that the environment names.
    pub(super) fn of_environment() -> Self {
        Notify {
            #[cfg(unix)]
            socket: std::env::var_os("NOTIFY_SOCKET").and_then(|name| connected(&name).ok()),
            watchdog: watchdog(),
        }
    }

    pub(super) fn ready(&self) {
        self.say("READY=1");
    }

    /// Reports a reload, which lasts until the next [`Notify::ready`]. The time distinguishes this reload from earlier ones,
    /// where a unit has Type=notify-reload.
    pub(super) fn reloading(&self) {
        #[cfg(unix)]
        {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
            self.say(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
        }
    }

    pub(super) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// Sends a line about the state of the service.
    pub(super) fn status(&self, line: &str) {
        self.say(&format!("STATUS={line}"));
    }

    /// Sends keepalives, twice as often as required; never returns. They come from the runtime of all other tasks, so they stop if that
    /// hangs.
    pub(super) async fn live(&self) -> Infallible {
        let Some(interval) = self.watchdog else { return std::future::pending().await };
        loop {
            self.say("WATCHDOG=1");
            tokio::time::sleep(interval / 2).await;
        }
    }

    fn say(&self, state: &str) {
        #[cfg(unix)]
        if let Some(socket) = &self.socket {
            // A notification to a service manager that is gone is not needed.
            let _ = socket.send(state.as_bytes());
        }
        #[cfg(not(unix))]
        let _ = state;
    }
}

#[cfg(unix)]
fn connected(name: &std::ffi::OsStr) -> std::io::Result<UnixDatagram> {
    use std::os::unix::ffi::OsStrExt;
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            socket.connect_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)?;
        }
        _ => socket.connect(name)?,
    }
    Ok(socket)
}

/// Returns the interval of the keepalives that the service manager requires of this process (sd_watchdog_enabled(3)).
fn watchdog() -> Option<Duration> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let own = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|micros| own && *micros > 0).map(Duration::from_micros)
}
