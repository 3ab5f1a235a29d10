//! The peer on the crate `dcsctp`: a thread of the test itself, with a UDP socket of its own.
//!
//! Settings, commands and what it says are those of `sockets/peer.c`, as far as the stack goes: one
//! address, no commands for addresses.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use ::dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, Socket, SocketEvent, SocketState, SocketTime, StreamId,
};

use crate::messages::{content, number_of, options};
use crate::peer::{Inside, Need, Peer, Settings, Work};

/// What the stack does not have.
pub(crate) fn lacks(need: Need) -> Option<&'static str> {
    match need {
        Need::MultiHoming | Need::DynamicAddresses | Need::Cmt => Some("its caller has to handle addresses"),
        Need::NrSack => Some("it has no NR-SACK"),
        Need::Ecn => Some("it has no ECN"),
        Need::Restart | Need::Interleaving | Need::InterleavedForward | Need::UnorderedForward => None,
    }
}

/// As `Cargo.lock` has it.
pub(crate) fn version() -> String {
    let package = include_str!("../../../../Cargo.lock").split("[[package]]").find_map(|package| {
        let (_, rest) = package.split_once("name = \"dcsctp\"\nversion = \"")?;
        rest.split_once('"')
    });
    package.expect("Cargo.lock names it").0.to_owned()
}

/// Starts a peer.
pub(crate) fn start(settings: &Settings) -> Peer {
    let settings = settings.clone();
    Peer::in_thread(move |inside| Driver::new(&settings, inside).run())
}

struct Driver {
    inside: Inside,
    socket: Socket,
    udp: UdpSocket,
    remote: Option<SocketAddr>,
    started: Instant,
    echo: bool,
    streams: u16,
    /// What could not be queued yet.
    waiting: VecDeque<(Message, SendOptions)>,
    /// A generator that is at work.
    generator: Option<Generator>,
    /// Number of the next message to generate.
    next: u32,
    /// For each stream the number after the latest ordered message that came.
    expected: Vec<u32>,
    messages: usize,
    bytes: usize,
    wrong: usize,
    connected: bool,
    ended: bool,
}

struct Generator {
    count: u32,
    /// Number after the last message.
    end: u32,
    lifetime: Option<Duration>,
    max_retransmissions: Option<u16>,
}

impl Driver {
    fn new(settings: &Settings, inside: Inside) -> Self {
        let remote_port = settings.call.as_ref().map_or(settings.sctp, |callee| callee.sctp);
        let options = Options {
            local_port: settings.sctp,
            remote_port,
            announced_maximum_incoming_streams: settings.streams,
            announced_maximum_outgoing_streams: settings.streams,
            enable_message_interleaving: settings.extensions.contains(&"interleaving"),
            // Losses are part of the tests, and so are hosts that stand still; longer timers would only make them long.
            rto_initial: Duration::from_millis(200),
            rto_max: Duration::from_secs(1),
            max_retransmissions: Some(60),
            rto_min: Duration::from_millis(120),
            delayed_ack_max_timeout: Duration::from_millis(20),
            min_rtt_variance: Duration::from_millis(50),
            ..Options::default()
        };
        let mut socket = Socket::new("peer", &options);
        let udp = UdpSocket::bind((settings.local[0], settings.udp)).expect("a free port");
        let mut remote = None;
        if let Some(callee) = &settings.call {
            remote = Some(SocketAddr::new(callee.addresses[0], callee.udp));
            socket.connect();
        } else {
            let _ = inside.lines.send("listening".to_owned());
        }
        Driver {
            inside,
            socket,
            udp,
            remote,
            started: Instant::now(),
            echo: settings.work == Work::Echo,
            streams: settings.streams,
            waiting: VecDeque::new(),
            generator: None,
            next: 0,
            expected: vec![0; usize::from(settings.streams)],
            messages: 0,
            bytes: 0,
            wrong: 0,
            connected: false,
            ended: false,
        }
    }

    fn run(mut self) {
        let mut buffer = vec![0; 65_536];
        while !self.ended {
            self.socket.advance_time(self.now());
            match self.inside.commands.try_recv() {
                Ok(command) => self.obey(&command),
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
                Err(std::sync::mpsc::TryRecvError::Empty) => {}
            }
            self.settle();
            self.udp.set_read_timeout(Some(self.patience())).expect("not zero");
            match self.udp.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    self.remote = Some(from);
                    self.socket.advance_time(self.now());
                    self.socket.handle_input(&buffer[..len]);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("the socket of the peer: {error}"),
            }
            self.settle();
        }
    }

    fn now(&self) -> SocketTime {
        SocketTime::zero() + self.started.elapsed()
    }

    /// How long to wait for a packet: until a timer, but commands are looked for too.
    fn patience(&self) -> Duration {
        let timer = self.socket.poll_timeout() - self.now();
        timer.clamp(Duration::from_micros(100), LONGEST_WAIT)
    }

    fn say(&self, line: impl Into<String>) {
        let _ = self.inside.lines.send(line.into());
    }

    /// Lets everything happen that can happen without another packet.
    fn settle(&mut self) {
        while let Some(message) = self.socket.get_next_message() {
            self.on_message(message);
        }
        self.send_what_fits();
        while let Some(event) = self.socket.poll_event() {
            self.on_event(event);
        }
    }

    fn on_message(&mut self, message: Message) {
        self.messages += 1;
        self.bytes += message.payload.len();
        let number = number_of(message.ppid.0);
        let expected = &mut self.expected[usize::from(message.stream_id.0)];
        let ordered = !options(number).unordered;
        let late = ordered && number < *expected;
        if ordered {
            *expected = number + 1;
        }
        self.wrong += usize::from(late || message.payload != content(number));
        if self.echo {
            // Which messages are unordered is part of the rule; the stack does not tell.
            let back = SendOptions { unordered: options(number).unordered, ..SendOptions::default() };
            self.waiting.push_back((message, back));
        }
    }

    fn on_event(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::SendPacket(packet) => {
                if let Some(remote) = self.remote {
                    // A full socket is a lost packet.
                    let _ = self.udp.send_to(&packet, remote);
                }
            }
            // After a restart it says so again.
            SocketEvent::OnConnected() if self.connected => {}
            SocketEvent::OnConnected() => {
                self.connected = true;
                self.say("connected");
            }
            SocketEvent::OnConnectionRestarted() => {
                // It counts from 0 again.
                self.expected.fill(0);
                self.say("restarted");
            }
            SocketEvent::OnIncomingStreamReset(streams) => {
                streams.iter().for_each(|stream| self.say(format!("reset in {}", stream.0)));
            }
            SocketEvent::OnStreamsResetFailed(_) => self.say("reset refused"),
            SocketEvent::OnClosed() => self.end("graceful"),
            SocketEvent::OnAborted(..) => self.end("aborted"),
            _ => {}
        }
    }

    fn end(&mut self, how: &str) {
        self.say(format!("received {} {} {}", self.messages, self.bytes, self.wrong));
        self.say(format!("ended {how}"));
        self.ended = true;
    }

    fn send_what_fits(&mut self) {
        while let Some((message, options)) = self.next_message() {
            if self.queued() > QUEUE_BYTES {
                self.waiting.push_front((message, options));
                return;
            }
            if self.socket.send(message, &options).is_err() {
                self.say("echo refused");
            }
        }
        // A shutdown of this stack leaves behind what is still queued.
        let queued = self.queued();
        if let Some(done) = self.generator.take_if(|generator| generator.end == self.next && queued == 0) {
            self.say(format!("generated {}", done.count));
        }
    }

    /// Bytes that the stack has not sent yet.
    fn queued(&self) -> usize {
        (0..self.streams).map(|id| self.socket.buffered_amount(StreamId(id))).sum()
    }

    /// What waits longest, or else the next generated message.
    fn next_message(&mut self) -> Option<(Message, SendOptions)> {
        if self.waiting.is_empty()
            && let Some(generator) = self.generator.as_ref().filter(|generator| self.next < generator.end)
        {
            let number = self.next;
            let as_ours = options(number);
            let message = Message::new(StreamId(as_ours.stream.0), PpId(as_ours.ppid.0), content(number));
            let must_arrive = number.is_multiple_of(2);
            let how = SendOptions {
                unordered: as_ours.unordered,
                lifetime: generator.lifetime.filter(|_| !must_arrive),
                max_retransmissions: generator.max_retransmissions.filter(|_| !must_arrive),
                ..SendOptions::default()
            };
            self.waiting.push_back((message, how));
            self.next += 1;
        }
        self.waiting.pop_front()
    }

    fn obey(&mut self, command: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        let number =
            |position: usize| words.get(position).and_then(|word| word.parse::<u32>().ok()).unwrap_or(0);
        match words[0] {
            "generate" => {
                let policy = words.get(2).copied().unwrap_or_default();
                self.generator = Some(Generator {
                    count: number(1),
                    end: self.next + number(1),
                    lifetime: (policy == "lifetime").then(|| Duration::from_millis(number(3).into())),
                    max_retransmissions: (policy == "retransmissions").then(|| number(3) as u16),
                });
            }
            "reset" => {
                if self.socket.reset_streams(&[StreamId(number(1) as u16)]).is_err() {
                    self.say("reset refused");
                }
            }
            "shutdown" => self.socket.shutdown(),
            "abort" => {
                self.socket.close();
                self.settle();
                if !self.ended && self.socket.state() == SocketState::Closed {
                    self.end("aborted");
                }
            }
            other => panic!("no such command: {other}"),
        }
    }
}

/// Commands are looked for at least so often.
const LONGEST_WAIT: Duration = Duration::from_millis(5);
/// Bytes that the stack holds at a time.
const QUEUE_BYTES: usize = 1 << 20;
