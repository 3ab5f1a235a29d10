//! The peer on the crate `dcsctp`: a thread of the test itself, with a UDP socket of its own.
//!
//! Settings, commands and what it says are those of `usrsctp/peer.c`, as far as the stack goes: one
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
        Need::MultiHoming | Need::Cmt => Some("it leaves addresses to its caller"),
        Need::NrSack => Some("it has no NR-SACK"),
        Need::Abort => None,
    }
}

/// Starts a peer in a thread, which ends with its association or when nobody listens any more.
pub(crate) fn start(settings: &Settings) -> Peer {
    let (peer, inside) = Peer::pair();
    let settings = settings.clone();
    std::thread::spawn(move || Driver::new(&settings, inside).run());
    peer
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
    /// A generator that is at work: the next message, the end, and how reliable they are.
    generator: Option<Generator>,
    messages: usize,
    bytes: usize,
    wrong: usize,
    ended: bool,
}

struct Generator {
    next: u32,
    count: u32,
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
            // Losses are part of the tests; longer timers would only make them long.
            rto_initial: Duration::from_millis(200),
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
            messages: 0,
            bytes: 0,
            wrong: 0,
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
        self.wrong += usize::from(message.payload != content(number));
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
            SocketEvent::OnConnected() => self.say("connected"),
            SocketEvent::OnConnectionRestarted() => self.say("restarted"),
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
        self.generate();
        while let Some((message, options)) = self.waiting.pop_front() {
            let queued: usize = (0..self.streams).map(|id| self.socket.buffered_amount(StreamId(id))).sum();
            if queued > QUEUE_BYTES {
                self.waiting.push_front((message, options));
                return;
            }
            if self.socket.send(message, &options).is_err() {
                self.say("echo refused");
            }
        }
    }

    /// Puts the next generated messages among those that wait.
    fn generate(&mut self) {
        let Some(generator) = &mut self.generator else { return };
        while generator.next < generator.count && self.waiting.len() < 4 {
            let number = generator.next;
            let as_ours = options(number);
            let message = Message::new(StreamId(as_ours.stream.0), PpId(as_ours.ppid.0), content(number));
            let how = SendOptions {
                unordered: as_ours.unordered,
                lifetime: generator.lifetime,
                max_retransmissions: generator.max_retransmissions,
                ..SendOptions::default()
            };
            self.waiting.push_back((message, how));
            generator.next += 1;
        }
        if generator.next == generator.count {
            let count = generator.count;
            self.generator = None;
            self.say(format!("generated {count}"));
        }
    }

    fn obey(&mut self, command: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        let number =
            |position: usize| words.get(position).and_then(|word| word.parse::<u32>().ok()).unwrap_or(0);
        match words[0] {
            "generate" => {
                let policy = words.get(2).copied().unwrap_or_default();
                self.generator = Some(Generator {
                    next: 0,
                    count: number(1),
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
