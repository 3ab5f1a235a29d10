//! Speed of the calls for C beside the Rust API of the crate `tresse`, in turns and in the same run: goodput and messages over
//! loopback, in UDP, each side a process of its own and on one core of its own: where threads of both sides find their places
//! decides more than what is compared.
//!
//! `cargo bench -p tresse-sockets` prints a table; ratios of one run can be compared, numbers of two cannot.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the calls for C are what is measured")]

use std::error::Error;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tresse::{AssociationConfig, Endpoint, EndpointConfig, Peer, SendOptions, StreamId};
use tresse_sockets::ffi::libsctp::sctp_sendmsg;
use tresse_sockets::ffi::messages::tresse_recv;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 7007;
const UDP_PORT: u16 = 29_899;
/// A small record, one that fills a packet, one of many fragments.
const MESSAGES: [usize; 3] = [64, 1436, 65_536];
const TURNS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(400);
const MEASURE: Duration = Duration::from_millis(1000);

static RECEIVED: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let [_, "child", side, ..] = words[..] {
        stay_on_one_core(side == "serve");
    }
    match words[..] {
        [_, "child", "serve", "rust"] => rust(serve_rust()),
        [_, "child", "serve", _] => serve_calls(),
        [_, "child", "send", "rust", bytes] => rust(send_rust(bytes.parse()?)),
        [_, "child", "send", _, bytes] => send_calls(bytes.parse()?),
        _ => parent(),
    }
}

fn parent() -> Result<(), Box<dyn Error>> {
    println!(
        "bytes of a message | Rust API, messages/s | C calls, messages/s | ratio (median of {TURNS} turns)"
    );
    for bytes in MESSAGES {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (api, rates) in ["rust", "calls"].into_iter().zip(&mut rates) {
                rates.push(turn(api, bytes)?);
            }
        }
        let [rust, calls] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[TURNS / 2]
        });
        println!("{bytes} | {rust:.0} | {calls:.0} | {:.2}", calls / rust);
    }
    Ok(())
}

struct Side(Child, BufReader<std::process::ChildStdout>);

impl Side {
    fn start(words: &[&str]) -> Result<Self, Box<dyn Error>> {
        let udp_port = if words[0] == "serve" { UDP_PORT } else { UDP_PORT + 1 };
        let mut child = Command::new(std::env::current_exe()?)
            .arg("child")
            .args(words)
            .env("TRESSE_UDP_PORT", udp_port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut side = Side(child, output);
        side.line()?;
        Ok(side)
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        self.1.read_line(&mut line)?;
        if line.is_empty() { Err("a child ended early".into()) } else { Ok(line.trim().to_owned()) }
    }

    fn received(&mut self) -> Result<(Instant, f64), Box<dyn Error>> {
        let at = Instant::now();
        self.0.stdin.as_mut().ok_or("ended")?.write_all(b"\n")?;
        Ok((at, self.line()?.parse()?))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Messages a second.
fn turn(api: &str, bytes: usize) -> Result<f64, Box<dyn Error>> {
    let mut server = Side::start(&["serve", api])?;
    let _client = Side::start(&["send", api, &bytes.to_string()])?;
    sleep(WARM_UP);
    let before = server.received()?;
    sleep(MEASURE);
    let after = server.received()?;
    Ok((after.1 - before.1) / bytes as f64 / (after.0 - before.0).as_secs_f64())
}

/// Of the cores that this process may run on, the first is the sender's and the last the receiver's.
fn stay_on_one_core(receives: bool) {
    // SAFETY: a set of cores is plain bits, and has the size that both calls are told.
    unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut cores) != 0 {
            return;
        }
        let mut allowed = (0..libc::CPU_SETSIZE as usize).filter(|&core| libc::CPU_ISSET(core, &cores));
        let core = if receives { allowed.next_back() } else { allowed.next() };
        drop(allowed);
        if let Some(core) = core {
            libc::CPU_ZERO(&mut cores);
            libc::CPU_SET(core, &mut cores);
            libc::sched_setaffinity(0, size, &raw const cores);
        }
    }
}

fn ready() {
    println!("ready");
    let _ = stdout().flush();
}

/// Says how many bytes were received whenever it is asked.
fn answer() {
    std::thread::spawn(|| {
        for _ in stdin().lock().lines().map_while(Result::ok) {
            println!("{}", RECEIVED.load(Ordering::Relaxed));
            let _ = stdout().flush();
        }
        std::process::exit(0);
    });
}

fn rust(work: impl Future<Output = Result<(), Box<dyn Error>>>) -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(work)
}

async fn serve_rust() -> Result<(), Box<dyn Error>> {
    let config = EndpointConfig::listening(PORT);
    let endpoint = Endpoint::bind(&[HERE], UDP_PORT, config, AssociationConfig::default())?;
    answer();
    ready();
    let association = endpoint.accept().await.ok_or("nobody")?;
    while let Some(message) = association.recv().await? {
        RECEIVED.fetch_add(message.payload.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

async fn send_rust(bytes: usize) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::bind(&[HERE], 0, EndpointConfig::default(), AssociationConfig::default())?;
    let association = endpoint.connect(Peer::new([HERE], PORT).with_udp_port(UDP_PORT)).await?;
    ready();
    // The calls for C copy what they are given: so does this.
    let data = vec![0x5a; bytes];
    loop {
        association.send(SendOptions::on(StreamId(1)), Bytes::copy_from_slice(&data)).await?;
    }
}

fn name() -> Vec<u8> {
    let [family, port] = [(libc::AF_INET as u16).to_ne_bytes(), PORT.to_be_bytes()];
    [&family[..], &port, &Ipv4Addr::LOCALHOST.octets(), &[0; 8]].concat()
}

fn socket() -> Result<i32, Box<dyn Error>> {
    Ok(tresse_sockets::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP)?)
}

fn serve_calls() -> Result<(), Box<dyn Error>> {
    let waiting = socket()?;
    tresse_sockets::bind(waiting, &name())?;
    tresse_sockets::listen(waiting, 1)?;
    answer();
    ready();
    let fd = tresse_sockets::accept(waiting, 0)?;
    let mut data = vec![0_u8; 65_536];
    loop {
        // SAFETY: there is room for as many bytes as are asked for.
        let count = unsafe { tresse_recv(fd, data.as_mut_ptr().cast(), data.len(), 0) };
        RECEIVED.fetch_add(u64::try_from(count).map_err(|_| "receiving failed")?, Ordering::Relaxed);
    }
}

fn send_calls(bytes: usize) -> Result<(), Box<dyn Error>> {
    let fd = socket()?;
    // The peer is another process on this host.
    let udp = [&[0; 136][..], &UDP_PORT.to_be_bytes(), &[0; 6]].concat();
    tresse_sockets::set_option(fd, libc::IPPROTO_SCTP, 132, &udp)?;
    tresse_sockets::connect(fd, &name())?;
    ready();
    let data = vec![0x5a_u8; bytes];
    loop {
        let (name, data) = (std::ptr::null_mut(), data.as_ptr().cast());
        // SAFETY: the data has as many bytes as are sent.
        let sent = unsafe { sctp_sendmsg(fd, data, bytes, name, 0, 0, 0, 1, 0, 0) };
        if sent < 0 {
            return Err("sending failed".into());
        }
    }
}
