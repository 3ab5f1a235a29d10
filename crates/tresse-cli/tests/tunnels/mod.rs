//! Tunnels between two processes of this host, and programs at their ends.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{FOREVER, Running};

pub(crate) const HERE: &str = "127.0.0.1,127.0.0.2";
pub(crate) const THERE: &str = "127.0.0.3,127.0.0.4";

/// A tunnel on loopback over two paths.
pub(crate) struct Tunnel {
    pub(crate) server: Running,
    pub(crate) client: Running,
    /// Where TCP connections are accepted.
    pub(crate) entry: SocketAddr,
    /// The server's UDP port.
    pub(crate) port: String,
}

impl Tunnel {
    /// To a TCP server, with at most so many connections at a time.
    pub(crate) fn to(target: SocketAddr, connections: &str) -> Self {
        Tunnel::with(target, connections, &[])
    }

    /// The same, with more options of the client.
    pub(crate) fn with(target: SocketAddr, connections: &str, more: &[&str]) -> Self {
        let target = target.to_string();
        let limit = ["--connections", connections];
        let args = ["tunnel", "server", "--listen", THERE, "--port", "0", "--tcp", &target];
        let mut server = Running::start(&[&args[..], &limit].concat());
        let port = server.udp_port();
        let args =
            ["tunnel", "client", "--from", HERE, "--to", THERE, "--port", &port, "--tcp", "127.0.0.1:0"];
        let mut client = Running::start(&[&args[..], &limit, more].concat());
        let line = client.line();
        let entry = line.split("connections to ").nth(1).and_then(|rest| rest.split(' ').next());
        let entry = entry.unwrap_or_else(|| panic!("no address in {line:?}")).parse().expect("an address");
        Tunnel { server, client, entry, port }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.entry).expect("the client accepts");
        stream.set_read_timeout(Some(FOREVER)).expect("not zero");
        stream
    }
}

/// A TCP server that does `work` with each connection.
pub(crate) fn tcp_server(work: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || work(connection));
        }
    });
    address
}

/// Sends everything back, and ends when the other side has.
pub(crate) fn echo(mut connection: TcpStream) {
    let mut back = connection.try_clone().expect("a handle");
    let _ = std::io::copy(&mut connection, &mut back);
    let _ = back.shutdown(Shutdown::Write);
}

/// Sends, ends its direction, and gives what comes back.
pub(crate) fn echoed(mut stream: TcpStream, data: Vec<u8>) -> Vec<u8> {
    let mut writing = stream.try_clone().expect("a handle");
    let writer = thread::spawn(move || {
        writing.write_all(&data).expect("it is taken");
        writing.shutdown(Shutdown::Write).expect("open");
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).expect("a clean end");
    writer.join().expect("it ended");
    back
}

/// The address behind `words` in a line of a tunnel.
pub(crate) fn place(line: &str, words: &str) -> SocketAddr {
    let place = line.split(words).nth(1).and_then(|rest| rest.split([' ', '\n']).next());
    place
        .and_then(|place| place.parse().ok())
        .unwrap_or_else(|| panic!("no address behind {words:?} in {line:?}"))
}

/// A server with these options on a free port; answers it with its port.
pub(crate) fn server(options: &[&str]) -> (Running, String) {
    let mut server =
        Running::start(&[&["tunnel", "server", "--listen", THERE, "--port", "0"], options].concat());
    let port = server.udp_port();
    (server, port)
}

/// A client of the server at `port`.
pub(crate) fn client(port: &str, options: &[&str]) -> Running {
    let call = ["tunnel", "client", "--from", HERE, "--to", THERE, "--port", port];
    Running::start(&[&call[..], options].concat())
}

/// A connection that waits long enough for what it reads.
pub(crate) fn connect(place: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(place).expect("somebody listens");
    stream.set_read_timeout(Some(FOREVER)).expect("not zero");
    stream
}

/// Something on the way to a server that passes datagrams on under ports of its own, as a NAT does.
pub(crate) struct Relay {
    /// By where clients send from: the socket towards the server, until it passes nothing on to it any more.
    ways: Arc<Mutex<BTreeMap<SocketAddr, Option<UdpSocket>>>>,
}

impl Relay {
    /// Address of this host at which it is.
    pub(crate) const PLACE: &str = "127.0.0.9";

    pub(crate) fn to(server: SocketAddr) -> Self {
        let near = UdpSocket::bind((Relay::PLACE, server.port())).expect("a free port");
        let ways = Arc::new(Mutex::new(BTreeMap::new()));
        let relay = Relay { ways: Arc::clone(&ways) };
        thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            // What a closed port said of an earlier one.
            loop {
                let Ok((length, client)) = near.recv_from(&mut buffer) else { continue };
                let mut ways = ways.lock().expect("nobody panics");
                let way = ways.entry(client).or_insert_with(|| Some(way(server, &near, client)));
                let _ = way.as_ref().map(|far| far.send(&buffer[..length]));
            }
        });
        relay
    }

    /// Passes nothing of those who send now on to the server any more, and what comes for them as before.
    pub(crate) fn lose_one_direction(&self) {
        self.ways.lock().expect("nobody panics").values_mut().for_each(|way| *way = None);
    }
}

/// The socket of `client` towards the server; what comes there goes back.
fn way(server: SocketAddr, near: &UdpSocket, client: SocketAddr) -> UdpSocket {
    let far = UdpSocket::bind((Relay::PLACE, 0)).expect("a free port");
    far.connect(server).expect("an address");
    let (back, near) = (far.try_clone().expect("a handle"), near.try_clone().expect("a handle"));
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        loop {
            let Ok(length) = back.recv(&mut buffer) else { continue };
            let _ = near.send_to(&buffer[..length], client);
        }
    });
    far
}
