//! Two hosts with two links of 20 Mbit/s between them, as network namespaces, and programs that run there.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{FOREVER, Running};
use crate::netns::{ip, tresse_in};

/// Both hosts; gone with this.
pub(crate) struct TwoLinks {
    pub(crate) near: String,
    pub(crate) far: String,
}

/// Addresses of the far host, and of the near one.
pub(crate) const FAR: &str = "10.79.1.1,10.79.2.1";
pub(crate) const NEAR: &str = "10.79.1.2,10.79.2.2";
/// What waits on a link at the most before packets are dropped.
pub(crate) const QUEUE: Duration = Duration::from_millis(50);

impl TwoLinks {
    /// None where the system does not let namespaces be made or links be shaped, which is said.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let id = format!("{test}-{}", std::process::id());
        let hosts =
            TwoLinks { near: format!("tresse-tunnel-near-{id}"), far: format!("tresse-tunnel-far-{id}") };
        let made = hosts.make();
        if !made {
            eprintln!("{test}: not run: it needs root, and the commands ip and tc with tbf");
        }
        made.then_some(hosts)
    }

    fn make(&self) -> bool {
        let (near, far) = (&self.near, &self.far);
        let mut commands = vec![format!("netns add {near}"), format!("netns add {far}")];
        for link in [1, 2] {
            commands.extend([
                format!("-n {near} link add up{link} type veth peer name down{link} netns {far}"),
                format!("-n {near} addr add 10.79.{link}.2/24 dev up{link}"),
                format!("-n {far} addr add 10.79.{link}.1/24 dev down{link}"),
                format!("-n {near} link set up{link} up"),
                format!("-n {far} link set down{link} up"),
            ]);
            for (host, interface) in [(near, "up"), (far, "down")] {
                commands.push(format!(
                    "netns exec {host} tc qdisc add dev {interface}{link} root tbf rate 20mbit burst 32kbit latency {}ms",
                    QUEUE.as_millis()
                ));
            }
        }
        commands.extend([format!("-n {near} link set lo up"), format!("-n {far} link set lo up")]);
        commands.iter().all(|command| ip(command))
    }

    /// Pulls a link's plug, or puts it back.
    pub(crate) fn plug(&self, link: u8, state: &str) {
        assert!(ip(&format!("-n {} link set up{link} {state}", self.near)), "ip link set");
    }

    /// Gives a link another MTU, at both ends.
    pub(crate) fn narrow(&self, link: u8, mtu: u16) {
        let (near, far) = (&self.near, &self.far);
        assert!(ip(&format!("-n {near} link set up{link} mtu {mtu}")), "ip link set");
        assert!(ip(&format!("-n {far} link set down{link} mtu {mtu}")), "ip link set");
    }

    /// Does `work` on a thread of its own in the namespace `host`, whose sockets it opens.
    pub(crate) fn on<T: Send + 'static>(
        host: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let namespace = File::open(Path::new("/run/netns").join(host)).expect("it was made");
        thread::spawn(move || {
            use std::os::fd::AsFd;
            rustix::thread::move_into_link_name_space(
                namespace.as_fd(),
                Some(rustix::thread::LinkNameSpaceType::Network),
            )
            .expect("root may");
            work()
        })
    }

    /// A tunnel's server on the far host.
    pub(crate) fn server(&self, options: &str) -> Running {
        let call = format!("tunnel server --listen {FAR} {options}");
        let mut running = Running::of(tresse_in(&self.far, &words(&call)), Vec::new());
        running.line_with("listening on ");
        running
    }

    /// A tunnel's client on the near host.
    pub(crate) fn client(&self, options: &str) -> Running {
        let call = format!("tunnel client --from {NEAR} --to {FAR} {options}");
        Running::of(tresse_in(&self.near, &words(&call)), Vec::new())
    }

    /// A TCP server on the far host that does `work` with each connection.
    pub(crate) fn tcp_server(&self, work: fn(TcpStream)) -> SocketAddr {
        let (told, address) = std::sync::mpsc::channel();
        let _ = TwoLinks::on(&self.far, move || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            told.send(listener.local_addr().expect("bound")).expect("somebody waits");
            for connection in listener.incoming().flatten() {
                thread::spawn(move || work(connection));
            }
        });
        address.recv().expect("it is bound")
    }

    /// A connection from the near host.
    pub(crate) fn connect(place: SocketAddr) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(place)?;
        stream.set_read_timeout(Some(FOREVER))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Drop for TwoLinks {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            ip(&format!("netns del {name}"));
        }
    }
}

/// With one space between words.
fn words(call: &str) -> String {
    call.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A secret for both ends, in a file for its owner alone.
pub(crate) fn secret(file: &Path) -> String {
    std::fs::write(file, "0123456789abcdef0123456789abcdef").expect("writable");
    let shown = file.to_str().expect("UTF-8");
    assert!(Command::new("chmod").args(["600", shown]).status().is_ok_and(|done| done.success()));
    format!("--secret-file {shown}")
}

/// One small request, 100 bytes there and 1,000 back; how long it took from connecting on.
pub(crate) fn request(entry: SocketAddr) -> std::io::Result<Duration> {
    let begun = Instant::now();
    let mut stream = TwoLinks::connect(entry)?;
    stream.write_all(&[b's'; 100])?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    match answer.len() {
        1000 => Ok(begun.elapsed()),
        _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The program at the far end: a small answer to `s`, and to `b` bytes without end.
pub(crate) fn answer(mut connection: TcpStream) {
    let mut question = [0; 100];
    if connection.read_exact(&mut question).is_err() {
        return;
    }
    let _ = connection.set_nodelay(true);
    if question[0] == b's' {
        let _ = connection.write_all(&[1; 1000]);
    }
    let bulk = vec![2; 64 * 1024];
    while question[0] == b'b' && connection.write_all(&bulk).is_ok() {}
}
