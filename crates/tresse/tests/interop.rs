//! Against Debian's libusrsctp, the stack of FreeBSD in user space: handshake, messages of all lengths on
//! many streams in both directions, with SACK and with NR-SACK, either side beginning, graceful shutdown.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tresse::config::{NrSack, Size};
use tresse::{AssociationConfig, Endpoint, EndpointConfig, Message, Peer, Ppid, SendOptions, StreamId};

const MESSAGES: u32 = 1_000;
const STREAMS: u16 = 16;
const PATIENCE: Duration = Duration::from_secs(60);
const LOOPBACK: &str = "127.0.0.1";

/// Compiles the peer once; a machine without the library is told which package has it.
fn usrsctp_peer() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/usrsctp_peer.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp_peer");
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(&source)
            .args(["-lusrsctp", "-lpthread"])
            .output()
            .expect("a C compiler \"cc\" is needed");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "cannot build the usrsctp peer (Debian package libusrsctp-dev): {message}"
        );
        program
    })
}

/// A running peer; ended when the test is over, however it ends.
struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(arguments: &[String]) -> Self {
        let mut command = Command::new(usrsctp_peer());
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the peer starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Running { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the peer prints text");
        line.trim_end().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn length(number: u32) -> usize {
    4 + (number.wrapping_mul(7919) % 20_000) as usize
}

fn content(number: u32) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend(
        (4..length(number)).map(|position| (position as u32).wrapping_mul(31).wrapping_add(number * 7) as u8),
    );
    bytes
}

fn settings(nr_sack: NrSack) -> AssociationConfig {
    AssociationConfig {
        nr_sack,
        outbound_streams: STREAMS,
        send_buffer: Size(1 << 20),
        ..AssociationConfig::default()
    }
}

fn free_udp_port() -> u16 {
    let socket = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
    socket.local_addr().expect("bound").port()
}

fn loopback() -> Vec<IpAddr> {
    vec![LOOPBACK.parse().expect("an address")]
}

/// Checks that every message came once, whole, and in order among the ordered ones of its stream.
fn check(messages: &[Message]) {
    let mut numbers: Vec<u32> = Vec::new();
    let mut last = vec![None; usize::from(STREAMS)];
    for message in messages {
        let bytes = message.payload.clone().into_bytes();
        let number = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
        assert_eq!(bytes, content(number), "content of message {number}");
        assert_eq!(message.stream.0, (number % u32::from(STREAMS)) as u16, "stream of message {number}");
        assert_eq!(message.unordered, number % 3 == 2, "kind of message {number}");
        assert_eq!(message.ppid, Ppid(number), "PPID of message {number}");
        if !message.unordered {
            let before = last[usize::from(message.stream.0)].replace(number);
            assert!(before < Some(number), "message {number} after {before:?}");
        }
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>());
}

async fn echoes_from_usrsctp(nr_sack: NrSack) {
    let (udp_port, sctp_port) = (free_udp_port(), 5001);
    let enabled = u8::from(nr_sack != NrSack::Off).to_string();
    let arguments =
        ["server".to_owned(), udp_port.to_string(), sctp_port.to_string(), enabled, LOOPBACK.to_owned()];
    let mut peer = Running::start(&arguments);
    assert_eq!(peer.line(), "listening");

    let endpoint =
        Endpoint::bind(&loopback(), 0, EndpointConfig::default(), settings(nr_sack)).expect("bound");
    let association =
        endpoint.connect(Peer::new(loopback(), sctp_port).with_udp_port(udp_port)).await.expect("connected");
    let sending = async {
        for number in 0..MESSAGES {
            let stream = StreamId((number % u32::from(STREAMS)) as u16);
            let options =
                SendOptions { unordered: number % 3 == 2, ppid: Ppid(number), ..SendOptions::on(stream) };
            association.send(options, content(number)).await.expect("sent");
        }
    };
    let receiving = async {
        let mut messages = Vec::new();
        while messages.len() < MESSAGES as usize {
            messages.push(association.recv().await.expect("open").expect("an echo"));
        }
        messages
    };
    let ((), messages) = tokio::join!(sending, receiving);
    check(&messages);
    association.shutdown().await.expect("graceful");
    let bytes: usize = (0..MESSAGES).map(length).sum();
    assert_eq!(peer.line(), format!("echoed {MESSAGES} messages {bytes} bytes"));
    assert!(peer.child.wait().expect("ended").success());
}

async fn messages_from_usrsctp(nr_sack: NrSack) {
    let listening = EndpointConfig { port: 5002, listen: true, ..EndpointConfig::default() };
    let endpoint = Endpoint::bind(&loopback(), 0, listening, settings(nr_sack)).expect("bound");
    let arguments = [
        "client".to_owned(),
        free_udp_port().to_string(),
        endpoint.udp_port().to_string(),
        "5002".to_owned(),
        u8::from(nr_sack != NrSack::Off).to_string(),
        MESSAGES.to_string(),
        STREAMS.to_string(),
        LOOPBACK.to_owned(),
    ];
    let mut peer = Running::start(&arguments);
    let association = endpoint.accept().await.expect("listening");
    let mut messages = Vec::new();
    while let Some(message) = association.recv().await.expect("graceful") {
        messages.push(message);
    }
    check(&messages);
    assert_eq!(peer.line(), "echoed 0 messages 0 bytes");
    let bytes: usize = (0..MESSAGES).map(length).sum();
    assert_eq!(peer.line(), format!("sent {MESSAGES} messages {bytes} bytes"));
    assert!(peer.child.wait().expect("ended").success());
}

async fn patiently(test: impl Future<Output = ()>) {
    tokio::time::timeout(PATIENCE, test).await.expect("done in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn usrsctp_echoes_with_sack() {
    patiently(echoes_from_usrsctp(NrSack::Off)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usrsctp_echoes_with_nr_sack() {
    patiently(echoes_from_usrsctp(NrSack::Everything)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usrsctp_sends_with_sack() {
    patiently(messages_from_usrsctp(NrSack::Off)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usrsctp_sends_with_nr_sack() {
    patiently(messages_from_usrsctp(NrSack::Everything)).await;
}
