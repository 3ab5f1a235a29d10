//! The state of a tunnel in the text format of Prometheus (version 0.0.4).

use std::fmt::Write;

use tresse::PathState;

use super::state::{PathStatus, SessionState, State};

/// Returns the metrics of a tunnel as text.
pub(super) fn text(state: &State) -> String {
    let mut out = Text(String::new());
    out.family("tresse_running_seconds", "gauge", "Time since the tunnel began.");
    out.sample("tresse_running_seconds", &[("role", &state.role)], state.running_s);
    out.family("tresse_reloads_total", "counter", "Reloads of the configuration, by result.");
    for (result, count) in [("applied", state.reloads.applied), ("failed", state.reloads.failed)] {
        out.sample("tresse_reloads_total", &[("result", result)], count as f64);
    }
    out.family("tresse_sessions", "gauge", "Associations.");
    out.sample("tresse_sessions", &[], state.sessions.len() as f64);
    for (name, kind, help, value) in OF_SESSIONS {
        out.family(name, kind, help);
        for session in &state.sessions {
            let number = session.session.to_string();
            out.sample(name, &[("peer", &session.peer), ("session", &number)], value(session));
        }
    }
    out.family("tresse_discards_total", "counter", "Packets and chunks thrown away, by reason.");
    for session in &state.sessions {
        let number = session.session.to_string();
        for (reason, count) in &session.discards {
            let labels = [("peer", &*session.peer), ("session", &number), ("reason", reason)];
            out.sample("tresse_discards_total", &labels, *count as f64);
        }
    }
    for (name, kind, help, value) in OF_PATHS {
        out.family(name, kind, help);
        for (session, path) in paths(state) {
            if let Some(value) = value(path) {
                let labels = [("session", &*session), ("local", &path.local), ("remote", &path.remote)];
                out.sample(name, &labels, value);
            }
        }
    }
    out.family("tresse_path_limited_seconds_total", "counter", "Time that each limit held.");
    for (session, path) in paths(state) {
        for (limit, seconds) in &path.limited_s {
            let labels =
                [("session", &*session), ("local", &path.local), ("remote", &path.remote), ("limit", limit)];
            out.sample("tresse_path_limited_seconds_total", &labels, *seconds);
        }
    }
    out.0
}

/// Paths with the number of their session. A removed path may have the addresses of one that was added later, and Prometheus
/// refuses metrics with the same labels twice.
fn paths(state: &State) -> impl Iterator<Item = (String, &PathStatus)> {
    state.sessions.iter().flat_map(|session| {
        let number = session.session.to_string();
        let present = session.paths.iter().filter(|path| path.state != PathState::Removed.name());
        present.map(move |path| (number.clone(), path))
    })
}

/// A family's name, kind, help and value.
type Family<T, V> = (&'static str, &'static str, &'static str, fn(&T) -> V);

const OF_SESSIONS: [Family<SessionState, f64>; 15] = [
    ("tresse_silent", "gauge", "Whether nothing is heard of the peer.", |s| f64::from(u8::from(s.silent))),
    ("tresse_encrypted", "gauge", "Whether packets are encrypted.", |s| f64::from(u8::from(s.encrypted))),
    ("tresse_key_generations_total", "counter", "Sets of keys.", |s| s.key_generation as f64),
    ("tresse_connections", "gauge", "Connections and flows that are open.", |s| s.connections as f64),
    ("tresse_connections_opened_total", "counter", "Connections and flows that began.", |s| {
        s.connections_opened as f64
    }),
    ("tresse_connections_refused_total", "counter", "Connections that broke or were refused here.", |s| {
        s.connections_refused as f64
    }),
    (
        "tresse_datagrams_dropped_total",
        "counter",
        "UDP datagrams and packets of a TUN device for which there was no room.",
        |s| s.datagrams_dropped as f64,
    ),
    (
        "tresse_datagrams_given_up_total",
        "counter",
        "UDP datagrams and packets of a TUN device that were too late.",
        |s| s.datagrams_given_up as f64,
    ),
    ("tresse_send_buffer_bytes", "gauge", "Bytes accepted and not yet acknowledged.", |s| {
        s.send_buffer_used as f64
    }),
    ("tresse_unsent_bytes", "gauge", "Bytes of these that were not sent yet.", |s| s.unsent as f64),
    ("tresse_receive_buffer_bytes", "gauge", "Bytes received and not yet taken.", |s| {
        s.receive_buffer_used as f64
    }),
    ("tresse_peer_window_bytes", "gauge", "The peer's receive window.", |s| s.peer_window as f64),
    ("tresse_messages_sent_total", "counter", "Messages accepted.", |s| s.messages_sent as f64),
    ("tresse_messages_received_total", "counter", "Messages received.", |s| s.messages_received as f64),
    ("tresse_duplicates_total", "counter", "Data chunks received more than once.", |s| s.duplicates as f64),
];

const OF_PATHS: [Family<PathStatus, Option<f64>>; 12] = [
    ("tresse_path_up", "gauge", "Whether the path can be used.", |p| {
        Some(f64::from(u8::from(p.state == "active")))
    }),
    ("tresse_path_mtu_bytes", "gauge", "Largest IP packet.", |p| Some(p.mtu as f64)),
    ("tresse_path_cwnd_bytes", "gauge", "Congestion window.", |p| Some(p.cwnd as f64)),
    ("tresse_path_flight_bytes", "gauge", "Bytes in flight.", |p| Some(p.flight as f64)),
    ("tresse_path_srtt_seconds", "gauge", "Smoothed round-trip time.", |p| p.srtt_ms.map(|ms| ms / 1e3)),
    ("tresse_path_packets_sent_total", "counter", "Packets sent.", |p| Some(p.packets_sent as f64)),
    ("tresse_path_packets_received_total", "counter", "Packets received.", |p| {
        Some(p.packets_received as f64)
    }),
    ("tresse_path_bytes_sent_total", "counter", "Bytes of user data sent once.", |p| {
        Some(p.bytes_sent as f64)
    }),
    ("tresse_path_bytes_acked_total", "counter", "Bytes acknowledged.", |p| Some(p.bytes_acked as f64)),
    ("tresse_path_chunks_resent_total", "counter", "Chunks sent again.", |p| Some(p.chunks_resent as f64)),
    ("tresse_path_fast_retransmits_total", "counter", "Chunks lost by missing reports.", |p| {
        Some(p.fast_retransmits as f64)
    }),
    ("tresse_path_timeouts_total", "counter", "Expirations of T3.", |p| Some(p.timeouts as f64)),
];

struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::state::Reloads;

    #[test]
    fn no_series_is_there_twice() {
        let path = |state: PathState| PathStatus {
            local: "10.0.0.1".to_owned(),
            remote: "10.0.0.2".to_owned(),
            state: state.name().to_owned(),
            mtu: 1500,
            cwnd: 4404,
            flight: 0,
            srtt_ms: Some(20.0),
            packets_sent: 1,
            packets_received: 1,
            bytes_sent: 1,
            bytes_acked: 1,
            chunks_resent: 0,
            fast_retransmits: 0,
            timeouts: 0,
            limited_s: [("full".to_owned(), 1.0)].into(),
        };
        let session = SessionState {
            session: 1,
            peer: "10.0.0.2".to_owned(),
            silent: false,
            encrypted: true,
            key_generation: 1,
            connections: 0,
            connections_opened: 0,
            connections_refused: 0,
            datagrams_dropped: 0,
            datagrams_given_up: 0,
            send_buffer_used: 0,
            unsent: 0,
            receive_buffer_used: 0,
            peer_window: 0,
            messages_sent: 0,
            messages_received: 0,
            duplicates: 3,
            discards: [("icmp".to_owned(), 1)].into(),
            paths: vec![path(PathState::Active), path(PathState::Removed)],
        };
        let state = State {
            schema: 1,
            role: "client".to_owned(),
            running_s: 1.0,
            reloads: Reloads::default(),
            sessions: vec![session],
        };
        let text = text(&state);
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let mut series: Vec<&str> = samples.filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all, "{text}");
        assert!(text.contains("tresse_path_up{session=\"1\",local=\"10.0.0.1\",remote=\"10.0.0.2\"} 1\n"));
        assert!(text.contains("tresse_duplicates_total{peer=\"10.0.0.2\",session=\"1\"} 3\n"));
    }

    #[test]
    fn labels_are_escaped_and_numbers_are_plain() {
        let mut out = Text(String::new());
        out.sample("a", &[("b", "c\"d\\e\n")], 12_345_678_901.0);
        out.sample("a", &[], 0.5);
        assert_eq!(out.0, "a{b=\"c\\\"d\\\\e\\n\"} 12345678901\na 0.5\n");
    }
}
