//! `tresse tunnel status`: the state of a running tunnel, read from the address of its metrics.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use tokio::time::timeout;
use tresse::units::{format_duration, format_size};

use super::forward::address_and_port;
use super::http;
use super::state::{SessionState, State};
use crate::failure::Failure;
use crate::output;

#[derive(Args)]
pub(super) struct StatusArgs {
    /// Address of the tunnel's metrics (its option --metrics)
    #[arg(value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    pub(super) metrics: SocketAddr,
    /// Print the state as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) async fn run(args: StatusArgs) -> Result<(), Failure> {
    let place = args.metrics;
    let document = timeout(PATIENCE, http::get(place, "/status")).await;
    let document = document.map_err(|_| Failure::unreachable(format!("{place}: no answer")))?;
    let document = document.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => Failure::running(format!("{place}: {error}")),
        ErrorKind::ConnectionRefused => Failure::unreachable(format!(
            "{place}: nobody listens there: give the address that a running tunnel has for --metrics"
        )),
        _ => Failure::unreachable(format!("{place}: {error}")),
    })?;
    let state: State = serde_json::from_str(&document)
        .map_err(|_| Failure::running(format!("{place}: no tunnel answers there")))?;
    match args.json {
        true => output::print(&format!("{document}\n")),
        false => output::print(&text(&state)),
    }
}

fn text(state: &State) -> String {
    let running = format_duration(Duration::from_secs(state.running_s as u64));
    let mut out = format!("{} for {running}, {}\n", state.role, count(state.sessions.len(), "session"));
    for session in &state.sessions {
        out.push_str(&of_session(session));
        for path in &session.paths {
            let srtt = path.srtt_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
            let limit = path.limited_s.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or("-", |most| most.0);
            out.push_str(&format!(
                "  {} -> {}  {}  rtt {srtt}  cwnd {}  sent {}  resent {} chunks  {} timeouts  mostly limited by {limit}\n",
                path.local,
                path.remote,
                path.state,
                format_size(path.cwnd as u64),
                format_size(path.bytes_sent),
                path.chunks_resent,
                path.timeouts,
            ));
        }
    }
    out
}

fn of_session(session: &SessionState) -> String {
    let dropped = session.datagrams_dropped + session.datagrams_given_up;
    format!(
        "{}  {}  {}  {} ({} so far, {} refused or broken){}  send buffer {}\n",
        session.peer,
        if session.silent { "silent" } else { "up" },
        if session.encrypted { "encrypted" } else { "in the clear" },
        count(session.connections, "connection"),
        session.connections_opened,
        session.connections_refused,
        if dropped > 0 { format!(", {dropped} datagrams lost") } else { String::new() },
        format_size(session.send_buffer_used as u64),
    )
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

const PATIENCE: Duration = Duration::from_secs(5);
