//! The stacks that tresse talks to, and one running peer of any of them.
//!
//! All peers take the same settings and commands and tell what happens in the same words; the head of
//! `sockets/peer.c` lists them. So a case is written once.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc as lines;
use tokio::time::timeout;

use crate::{dcsctp, linux, pion, preload, usrsctp};

/// A stack of others.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stack {
    Linux,
    Usrsctp,
    Pion,
    Dcsctp,
}

/// What a case needs of a stack beyond RFC 9260 on one path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    MultiHoming,
    /// ASCONF, and AUTH with it.
    DynamicAddresses,
    NrSack,
    Cmt,
    /// Going on with a peer that comes back without its past.
    Restart,
    /// I-DATA, also for messages in fragments.
    Interleaving,
    /// Telling which interleaved messages were given up.
    InterleavedForward,
    /// Understanding that when they are unordered.
    UnorderedForward,
    /// Answering congestion marks.
    Ecn,
}

impl Stack {
    pub(crate) const ALL: [Stack; 4] = [Stack::Linux, Stack::Usrsctp, Stack::Pion, Stack::Dcsctp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Stack::Linux => "Linux",
            Stack::Usrsctp => "usrsctp",
            Stack::Pion => "pion/sctp",
            Stack::Dcsctp => "dcsctp",
        }
    }

    /// What a reader should know of it.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Stack::Linux => {
                "the kernel's own, as Debian packages it, in a virtual machine that QEMU emulates"
            }
            Stack::Usrsctp => "the stack of FreeBSD in user space, as Debian packages it (`libusrsctp-dev`)",
            Stack::Pion => "the stack of the Go implementation of WebRTC",
            Stack::Dcsctp => "the stack of WebRTC in browsers, as a crate, in one process with tresse",
        }
    }

    /// Which version the cells are played with.
    pub(crate) fn version(self) -> String {
        match self {
            Stack::Linux => linux::version(),
            Stack::Usrsctp => usrsctp::version(),
            Stack::Pion => pion::version(),
            Stack::Dcsctp => dcsctp::version(),
        }
    }

    /// Makes it ready to start, which may take a while the first time; an error says what is missing on this machine.
    pub(crate) fn prepare(self) -> Result<(), String> {
        match self {
            Stack::Linux => linux::prepare(),
            Stack::Usrsctp => usrsctp::program().map(drop),
            Stack::Pion => pion::program().map(drop),
            Stack::Dcsctp => Ok(()),
        }
    }

    /// Why a case with this need cannot pass; the reason is the peer's, not ours.
    pub(crate) fn lacks(self, need: Need) -> Option<&'static str> {
        match self {
            Stack::Linux => linux::lacks(need),
            Stack::Usrsctp => usrsctp::lacks(need),
            Stack::Pion => pion::lacks(need),
            Stack::Dcsctp => dcsctp::lacks(need),
        }
    }

    /// Where a peer with so many paths may be.
    pub(crate) fn place(self, paths: usize) -> Place {
        if self == Stack::Linux {
            return linux::place(paths);
        }
        let address = |path: usize| IpAddr::from([127, 0, 0, 10 + path as u8]);
        Place {
            local: (1..=paths).map(address).collect(),
            spare: address(paths + 1),
            udp: free_port(),
            seat: None,
        }
    }

    /// Starts a peer.
    pub(crate) fn start(self, settings: &Settings) -> Peer {
        match self {
            Stack::Linux => linux::start(settings),
            Stack::Usrsctp => Peer::of(Command::new(usrsctp::program().expect("prepared")), settings),
            Stack::Pion => Peer::of(Command::new(pion::program().expect("prepared")), settings),
            Stack::Dcsctp => dcsctp::start(settings),
        }
    }
}

/// The peer for the kernel's SCTP, over tresse's sockets.
pub(crate) async fn over_sockets(settings: &Settings) -> Peer {
    // What is built here may take minutes; the relays of other cells need this thread meanwhile.
    let (program, library) = tokio::task::spawn_blocking(build_over_sockets).await.expect("both are built");
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library).env("TRESSE_UDP_PORT", settings.udp.to_string());
    Peer::of(command, settings)
}

/// The peer for the kernel's SCTP, and the preload library; built once.
fn build_over_sockets() -> (&'static Path, &'static Path) {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        let flags = ["-DSTACK_OF_LINUX"];
        compile("sockets_peer", "linux/sctp.h", "linux-libc-dev", "linux.c", &flags)
            .expect("Linux, and a compiler")
    });
    (program, preload::library())
}

/// What a peer does with messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Sends every message back.
    Echo,
    /// Checks and counts them.
    Count,
}

/// Addresses of a peer.
pub(crate) struct Place {
    pub(crate) local: Vec<IpAddr>,
    /// One that it can add.
    pub(crate) spare: IpAddr,
    pub(crate) udp: u16,
    /// Keeps them free of others, where that is needed.
    pub(crate) seat: Option<Arc<linux::Seat>>,
}

/// How a peer is to be.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) work: Work,
    /// Its addresses and ports.
    pub(crate) local: Vec<IpAddr>,
    /// An address that it can add.
    pub(crate) spare: IpAddr,
    pub(crate) udp: u16,
    pub(crate) seat: Option<Arc<linux::Seat>>,
    pub(crate) sctp: u16,
    /// Whom to call; a peer without this one waits to be called.
    pub(crate) call: Option<Callee>,
    pub(crate) streams: u16,
    /// Extensions that it speaks only when told so.
    pub(crate) extensions: &'static [&'static str],
}

/// Where tresse listens.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) udp: u16,
    pub(crate) sctp: u16,
}

impl Settings {
    pub(crate) fn arguments(&self) -> Vec<String> {
        let list =
            |addresses: &[IpAddr]| addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",");
        let mut arguments = vec![
            format!("role={}", if self.call.is_some() { "client" } else { "server" }),
            format!("work={}", if self.work == Work::Echo { "echo" } else { "count" }),
            format!("local={}", list(&self.local)),
            format!("udp={}", self.udp),
            format!("sctp={}", self.sctp),
            format!("streams={}", self.streams),
            format!("use={}", self.extensions.join(",")),
        ];
        if let Some(callee) = &self.call {
            arguments.push(format!("peer={}", list(&callee.addresses)));
            arguments.push(format!("peer_udp={}", callee.udp));
            arguments.push(format!("peer_sctp={}", callee.sctp));
        }
        arguments
    }
}

/// A running peer; it ends with this value.
pub(crate) struct Peer {
    commands: Option<mpsc::Sender<String>>,
    lines: lines::UnboundedReceiver<String>,
    body: Option<Body>,
}

/// What a peer runs as.
enum Body {
    Process(Child),
    Thread(JoinHandle<()>),
}

impl Peer {
    /// A peer that is a program of its own.
    fn of(mut program: Command, settings: &Settings) -> Self {
        program.args(settings.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().expect("the peer starts");
        let (mut input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (mut peer, inside) = Peer::without_body();
        thread::spawn(move || {
            for command in inside.commands {
                // A peer that has ended takes no commands, and its lines say so.
                let _ = writeln!(input, "{command}");
            }
        });
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = inside.lines.send(line);
            }
        });
        peer.body = Some(Body::Process(child));
        peer
    }

    /// A peer that is a thread of this process, and ends when there can be no commands any more.
    pub(crate) fn in_thread(run: impl FnOnce(Inside) + Send + 'static) -> Self {
        let (mut peer, inside) = Peer::without_body();
        peer.body = Some(Body::Thread(thread::spawn(move || run(inside))));
        peer
    }

    fn without_body() -> (Peer, Inside) {
        let (commands, obeyed) = mpsc::channel();
        let (told, lines) = lines::unbounded_channel();
        (Peer { commands: Some(commands), lines, body: None }, Inside { commands: obeyed, lines: told })
    }

    /// Gives a command.
    pub(crate) fn tell(&self, command: &str) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command.to_owned());
        }
    }

    /// Waits for the next line, which has to be this one.
    pub(crate) async fn says(&mut self, expected: &str) {
        let line = self.says_something_like(expected).await;
        assert_eq!(line, expected, "what the peer says");
    }

    /// Waits for the next line, which has to begin like this.
    pub(crate) async fn says_something_like(&mut self, expected: &str) -> String {
        let line = timeout(PATIENCE, self.lines.recv()).await;
        let line = line.unwrap_or_else(|_| panic!("the peer never said \"{expected}\""));
        let line = line.unwrap_or_else(|| panic!("the peer ended and never said \"{expected}\""));
        assert!(line.starts_with(expected), "the peer said \"{line}\", not \"{expected}\"");
        line
    }

    /// Ends it without a word to anybody, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.commands = None;
        match self.body.take() {
            Some(Body::Process(mut child)) => {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
            }
            // What broke it down was said by what it did not do. It may have to be heard out: the relays of other cells
            // run on meanwhile.
            Some(Body::Thread(thread)) => drop(tokio::task::block_in_place(|| thread.join())),
            None => {}
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a peer hears and says, as the peer holds it.
pub(crate) struct Inside {
    pub(crate) commands: mpsc::Receiver<String>,
    pub(crate) lines: lines::UnboundedSender<String>,
}

/// Compiles the peer of `sockets` for the stack of `source`; an error says what is missing. Whether the stack is there
/// can be seen by its `header`, which comes with Debian's `package`.
pub(crate) fn compile(
    name: &str,
    header: &str,
    package: &str,
    source: &str,
    flags: &[&str],
) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/sockets");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let probe = Command::new("cc").args(["-include", header, "-E", "-x", "c", "/dev/null"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return Err(format!("a C compiler and Debian's package {package} are needed"));
    }
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .args([&program, &folder.join("peer.c"), &folder.join(source)])
        .args(flags)
        .output()
        .expect("it just ran");
    assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

/// A UDP port that is free on all addresses and that no other cell is given. It lies below those that the
/// system hands out, which would otherwise be quicker now and then.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::SeqCst);
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// How long a peer may be silent; it only ends cases that hang.
const PATIENCE: Duration = Duration::from_secs(800);
