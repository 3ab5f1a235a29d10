//! The network between this host's loopback addresses and a virtual machine whose network card speaks Ethernet through
//! a socket: datagrams to the peers' addresses become frames, and frames from there datagrams.
//!
//! Knows IPv4 and UDP as far as that takes it, and of SCTP what a packet that opens an association looks like.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The wire, for as long as the machine runs.
pub(super) struct Wire {
    machine: Arc<UnixDatagram>,
    open: Arc<Mutex<Sockets>>,
}

/// What there is for each address of a peer that is open.
type Sockets = BTreeMap<Ipv4Addr, Arc<Socket>>;

struct Socket {
    socket: UdpSocket,
    /// Whether the peer is one that calls and has not done so yet.
    mute: Arc<AtomicBool>,
}

impl Wire {
    /// Speaks with the machine through `own`, which is made here.
    pub(super) fn new(own: &Path) -> std::io::Result<Self> {
        let wire = Wire { machine: Arc::new(UnixDatagram::bind(own)?), open: Arc::default() };
        let (machine, open) = (Arc::clone(&wire.machine), Arc::clone(&wire.open));
        thread::spawn(move || {
            let mut frame = [0; LONGEST_FRAME];
            loop {
                match machine.recv(&mut frame) {
                    Ok(len) => deliver(&frame[..len], &locked(&open)),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return crate::say(&format!("the machine's wire broke: {error}")),
                }
            }
        });
        Ok(wire)
    }

    /// The machine has made its end, `theirs`.
    pub(super) fn connect(&self, theirs: &Path) -> std::io::Result<()> {
        self.machine.connect(theirs)
    }

    /// Lets datagrams through to and from these addresses and this port of the machine; with a peer that `calls`, from its
    /// INIT on: before it, the kernel would answer what is meant for a peer that was there before with ABORT.
    pub(super) fn open(&self, addresses: &[IpAddr], port: u16, calls: bool) -> Opening {
        let mute = Arc::new(AtomicBool::new(calls));
        let mut opening = Opening {
            open: Arc::clone(&self.open),
            addresses: Vec::new(),
            closed: Arc::default(),
            threads: Vec::new(),
        };
        for &address in addresses {
            let IpAddr::V4(address) = address else { panic!("{address} is none of IPv4") };
            let socket = UdpSocket::bind((address, port)).expect("an address of its own");
            socket.set_read_timeout(Some(ROUND)).expect("a time");
            let socket = Arc::new(Socket { socket, mute: Arc::clone(&mute) });
            locked(&self.open).insert(address, Arc::clone(&socket));
            opening.addresses.push(address);
            let (machine, closed) = (Arc::clone(&self.machine), Arc::clone(&opening.closed));
            let to = SocketAddrV4::new(address, port);
            opening.threads.push(thread::spawn(move || collect(&socket, to, &machine, &closed)));
        }
        opening
    }
}

/// Addresses of the machine that can be reached; no longer when this value is dropped.
pub(super) struct Opening {
    open: Arc<Mutex<Sockets>>,
    addresses: Vec<Ipv4Addr>,
    closed: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        for address in &self.addresses {
            locked(&self.open).remove(address);
        }
        self.closed.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            // What broke it down was said by what did not arrive.
            let _ = thread.join();
        }
    }
}

/// Datagrams for an address of the machine become frames.
fn collect(Socket { socket, mute }: &Socket, to: SocketAddrV4, machine: &UnixDatagram, closed: &AtomicBool) {
    let mut datagram = [0; LONGEST_FRAME];
    while !closed.load(Ordering::SeqCst) {
        match socket.recv_from(&mut datagram) {
            Ok((len, SocketAddr::V4(from))) if len <= LONGEST_DATAGRAM && !mute.load(Ordering::SeqCst) => {
                // A machine that has ended needs no frames.
                let _ = machine.send(&frame(from, to, &datagram[..len]));
            }
            // Nobody to hear it yet, or no room in a frame: a packet that probes for it.
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // An answer to what was sent: nobody listens there any more.
            Err(_) => {}
        }
    }
}

/// An Ethernet frame for the machine with a datagram in it (RFC 791, RFC 768; no UDP checksum, as IPv4 allows).
fn frame(from: SocketAddrV4, to: SocketAddrV4, datagram: &[u8]) -> Vec<u8> {
    let udp_len = UDP_HEADER + datagram.len();
    let mut header = [0; IP_HEADER];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&((IP_HEADER + udp_len) as u16).to_be_bytes());
    header[6] = DO_NOT_FRAGMENT;
    header[8] = 64;
    header[9] = UDP;
    header[12..16].copy_from_slice(&from.ip().octets());
    header[16..20].copy_from_slice(&to.ip().octets());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());

    let mut frame = Vec::with_capacity(LONGEST_FRAME);
    frame.extend(CARD);
    frame.extend(HOST);
    frame.extend(IPV4);
    frame.extend(header);
    frame.extend(from.port().to_be_bytes());
    frame.extend(to.port().to_be_bytes());
    frame.extend((udp_len as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(datagram);
    frame
}

/// What the machine sends, if it is a datagram from an open address, leaves this host's socket there.
fn deliver(frame: &[u8], open: &Sockets) {
    let Some(packet) = frame.get(14..).filter(|_| frame[12..14] == IPV4) else { return };
    let is_whole = packet.len() > IP_HEADER + UDP_HEADER
        && packet[0] == 0x45
        && packet[9] == UDP
        && packet[6] & !DO_NOT_FRAGMENT == 0
        && packet[7] == 0;
    if !is_whole {
        return;
    }
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let number = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let udp = IP_HEADER;
    let to = SocketAddrV4::new(address(16), number(udp + 2));
    let end = udp + usize::from(number(udp + 4));
    if let (Some(socket), Some(datagram)) = (open.get(&address(12)), packet.get(udp + UDP_HEADER..end)) {
        if datagram.get(FIRST_CHUNK) == Some(&INIT) {
            socket.mute.store(false, Ordering::SeqCst);
        }
        if !socket.mute.load(Ordering::SeqCst) {
            // Nobody may listen there any more.
            let _ = socket.socket.send_to(datagram, to);
        }
    }
}

fn locked(open: &Mutex<Sockets>) -> MutexGuard<'_, Sockets> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ethernet addresses of the machine's card, and of what it takes for everybody else.
pub(super) const CARD: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const HOST: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const IPV4: [u8; 2] = [8, 0];
const UDP: u8 = 17;
const DO_NOT_FRAGMENT: u8 = 0x40;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// Where the type of a packet's first chunk stands, and that of INIT (RFC 9260 §3).
const FIRST_CHUNK: usize = 12;
const INIT: u8 = 1;
/// What an IPv4 packet of 1500 bytes, the card's MTU, has room for.
const LONGEST_DATAGRAM: usize = 1500 - IP_HEADER - UDP_HEADER;
/// More than any datagram and any frame.
const LONGEST_FRAME: usize = 1 << 16;
/// How long a thread that ends may take to see it.
const ROUND: Duration = Duration::from_millis(20);
