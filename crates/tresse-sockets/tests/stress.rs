//! A thousand sockets in each of two processes, with threads and event loops, over a relay that loses packets.

#![cfg(target_os = "linux")]

mod common;

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{compiled, udp_port};

const SOCKETS: &str = "1000";

/// Carries packets between a peer that writes to it and the server, and loses one in fifty of both directions, by counting.
fn relay(
    from_client: &UdpSocket,
    to_server: &UdpSocket,
    server: (&str, u16),
    stop: &AtomicBool,
    lost: &AtomicU64,
) {
    let (mut packet, mut client, mut seen) = ([0; 65_536], None, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        for inwards in [true, false] {
            let from = if inwards { from_client } else { to_server };
            for _ in 0..32 {
                let Ok((len, sender)) = from.recv_from(&mut packet) else { break };
                seen += 1;
                // No pattern of the packets themselves: a multiple that shares nothing with their bursts.
                if seen.wrapping_mul(7919) % 50 == 0 {
                    lost.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let sent = if inwards {
                    client = Some(sender);
                    to_server.send_to(&packet[..len], server)
                } else {
                    client.map_or(Ok(0), |client| from_client.send_to(&packet[..len], client))
                };
                // A full queue loses it as well.
                let _ = sent;
            }
        }
    }
}

fn finish(mut child: Child, name: &str) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(300) {
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "{name}: {status}");
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    panic!("{name} does not end");
}

#[test]
fn a_thousand_sockets_of_four_event_loops_get_their_answers_through_losses() {
    let program = compiled("stress");
    let file = program.with_extension("port");
    let _ = std::fs::remove_file(&file);
    let (server_port, client_port) = (udp_port(), udp_port());
    let server = Command::new(&program)
        .args(["server", file.to_str().expect("a path"), SOCKETS])
        .env("TRESSE_UDP_PORT", &server_port)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let port = loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let from_client = UdpSocket::bind("127.0.0.2:0").expect("free");
    let to_server = UdpSocket::bind("127.0.0.2:0").expect("free");
    for socket in [&from_client, &to_server] {
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    }
    let relay_port = from_client.local_addr().expect("bound").port().to_string();
    let (stop, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let carrier = {
        let (stop, lost) = (Arc::clone(&stop), Arc::clone(&lost));
        let server_port: u16 = server_port.parse().expect("a port");
        std::thread::spawn(move || relay(&from_client, &to_server, ("127.0.0.1", server_port), &stop, &lost))
    };
    let client = Command::new(&program)
        .args(["client", "127.0.0.2", &port, &relay_port, SOCKETS])
        .env("TRESSE_UDP_PORT", &client_port)
        .spawn()
        .expect("it starts");
    finish(client, "client");
    finish(server, "server");
    stop.store(true, Ordering::Relaxed);
    carrier.join().expect("the relay");
    assert!(lost.load(Ordering::Relaxed) > 100, "the relay has lost packets");
}
