//! The live table of `tresse perf` on a terminal: what it shows, and that the terminal is given back however it ends.
//!
//! script(1) makes the terminal; what a terminal would show of the output is worked out by the crate `vt100`.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::Running;
use vt100::Parser;

const HERE: &str = "127.0.0.1,127.0.0.2";
const THERE: &str = "127.0.0.3,127.0.0.4";
const ROWS: u16 = 30;
const COLUMNS: u16 = 110;
const ENTERS: &[u8] = b"\x1b[?1049h";
const LEAVES: &[u8] = b"\x1b[?1049l";

fn server() -> (Running, String) {
    let mut running =
        Running::start(&["perf", "server", "--listen", THERE, "--port", "0", "--once", "--json"]);
    let port = running.udp_port();
    (running, port)
}

/// A client on a terminal.
struct OnTerminal {
    child: Child,
    keys: ChildStdin,
    output: ChildStdout,
    seen: Vec<u8>,
}

impl OnTerminal {
    /// None where script(1) is missing.
    fn start(port: &str, more: &str) -> Option<Self> {
        let call = format!(
            "stty rows {ROWS} cols {COLUMNS}; exec {} perf client --from {HERE} --to {THERE} --port {port} {more}",
            env!("CARGO_BIN_EXE_tresse")
        );
        let mut command = Command::new("script");
        command.args(["-qefc", &call, "/dev/null"]).env("TERM", "xterm");
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("screen: skipped: script(1) is not installed");
                return None;
            }
            Err(error) => panic!("script(1): {error}"),
        };
        let keys = child.stdin.take().expect("piped");
        let output = child.stdout.take().expect("piped");
        Some(OnTerminal { child, keys, output, seen: Vec::new() })
    }

    /// Reads until this has been written.
    fn read_until(&mut self, what: &[u8]) {
        let mut buffer = [0; 4096];
        while !contains(&self.seen, what) {
            let read = self.output.read(&mut buffer).expect("readable");
            assert!(read > 0, "it ended before: {}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&buffer[..read]);
        }
    }

    /// The exit code, the screen before it was left, and what the terminal shows after the end.
    fn finish(mut self) -> (Option<i32>, String, Parser) {
        self.output.read_to_end(&mut self.seen).expect("readable");
        drop(self.keys);
        let code = self.child.wait().expect("started").code();
        let shown = String::from_utf8_lossy(&self.seen);
        assert!(contains(&self.seen, ENTERS) && contains(&self.seen, LEAVES), "no screen: {shown}");
        let left_at = self.seen.windows(LEAVES.len()).position(|at| at == LEAVES).expect("it is there");
        let mut terminal = Parser::new(ROWS, COLUMNS, 1000);
        terminal.process(&self.seen[..left_at]);
        let table = terminal.screen().contents();
        terminal.process(&self.seen[left_at..]);
        (code, table, terminal)
    }
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|at| at == what)
}

/// The terminal is as it was, with the lines of the intervals and the last words on it.
fn assert_given_back(terminal: &Parser, last_words: &str) {
    let screen = terminal.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{}", screen.contents());
    let shown = screen.contents();
    let interval = shown.find(" s  out ").unwrap_or_else(|| panic!("no interval: {shown}"));
    assert!(shown[interval..].contains(last_words), "{shown}");
    assert!(!shown.contains("┌ paths"), "{shown}");
}

#[test]
fn a_terminal_shows_paths_and_streams_while_they_carry() {
    let (_server, port) = server();
    let Some(client) = OnTerminal::start(&port, "--duration 2s --interval 200ms -P 3") else { return };
    let (code, table, terminal) = client.finish();
    assert_eq!(code, Some(0), "{table}");
    let row = |words: &[&str]| {
        let found = table.lines().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?}: {table}");
    };
    row(&["tresse perf", " out ", "limited by"]);
    row(&["path", "from and to", "state", "round trip", "window", "in flight", "resent"]);
    row(&["  0  127.0.0.1 > 127.0.0.3  active", " ms "]);
    row(&["  1  127.0.0.2 > 127.0.0.4  active", " ms "]);
    row(&["stream", "out", "in", "waiting"]);
    for stream in ["│     1 ", "│     2 ", "│     3 "] {
        row(&[stream, "bit/s"]);
    }
    row(&[" s  out ", "limited by"]);
    assert_given_back(&terminal, "to 127.0.0.3,127.0.0.4: ");
}

#[test]
fn an_interrupt_gives_the_terminal_back() {
    let (_server, port) = server();
    let Some(mut client) = OnTerminal::start(&port, "--duration 300s --interval 100ms") else { return };
    client.read_until(ENTERS);
    client.keys.write_all(b"\x03").expect("it reads");
    let (code, _, terminal) = client.finish();
    assert_eq!(code, Some(130), "{}", terminal.screen().contents());
    assert_given_back(&terminal, "interrupted: the intervals show");
}

#[test]
fn a_failure_gives_the_terminal_back() {
    let (server, port) = server();
    let Some(mut client) = OnTerminal::start(&port, "--duration 300s --interval 100ms") else { return };
    client.read_until(ENTERS);
    // Its server tells the client that it ends.
    server.interrupt();
    let (code, _, terminal) = client.finish();
    assert!(code.is_some_and(|code| ![0, 130].contains(&code)), "{code:?}");
    assert_given_back(&terminal, "tresse: 127.0.0.3,127.0.0.4: ");
}
