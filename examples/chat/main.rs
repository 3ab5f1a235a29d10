//! Two people talk while one sends the other a photo, over one association: messages on stream 0, the photo on stream 1.
//!
//! Alice says how long her messages took under one scheduler after the other. examples/chat/README.md has the commands.

mod alice;
mod bob;
mod talk;

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use tresse::{Endpoint, EndpointConfig, Peer};

use alice::Latencies;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bob"] => listen(BOB, tresse::DEFAULT_UDP_PORT).await,
        ["bob", address] => listen(address, tresse::DEFAULT_UDP_PORT).await,
        ["alice"] => call(ALICE, BOB, RELAY_PORT).await,
        ["alice", own, to, port] => call(own, to, port.parse()?).await,
        _ => Err("usage: chat bob [ADDRESS] | chat alice [OWN-ADDRESS BOBS-ADDRESS UDP-PORT]".into()),
    }
}

/// Bob answers whoever calls, until he is interrupted.
async fn listen(address: &str, udp_port: u16) -> Result<(), Box<dyn Error>> {
    let listening = EndpointConfig::listening(SCTP_PORT);
    let endpoint = Endpoint::bind(&[address.parse()?], udp_port, listening, talk::settings()?)?;
    println!("Bob listens on {address}, UDP port {udp_port}");
    while let Some(association) = endpoint.accept().await {
        let listened = bob::listen(&association).await;
        println!("Bob got {} messages and {} KiB of photo", listened.messages, listened.photo_bytes / 1024);
    }
    Ok(())
}

/// Alice talks to Bob twice, and compares.
async fn call(own: &str, to: &str, udp_port: u16) -> Result<(), Box<dyn Error>> {
    let own: [IpAddr; 1] = [own.parse()?];
    let endpoint = Endpoint::bind(&own, 0, EndpointConfig::default(), talk::settings()?)?;
    let bob = Peer::new([to.parse()?], SCTP_PORT).with_udp_port(udp_port);
    println!("{MESSAGES} messages, one every second, beside a photo that has no end");
    for (scheduler, config) in [("first_come", ""), ("priority", "0=1,1=2")] {
        endpoint.set_stream_scheduler(scheduler, config)?;
        let association = endpoint.connect(bob.clone()).await?;
        // The photo first gets the network to itself, as one that somebody began to send a while ago.
        let heard = alice::talk(&association, WARM_UP, MESSAGES, GAP).await?;
        association.abort("the talk is over");
        println!("{scheduler:>12}: {}", words(&heard));
    }
    Ok(())
}

fn words(heard: &Latencies) -> String {
    let ms = |latency: Duration| latency.as_secs_f64() * 1e3;
    let (mean, median, worst) = (ms(heard.mean()), ms(heard.median()), ms(heard.worst()));
    format!("messages took {mean:.0} ms in the mean, {median:.0} ms in the median, {worst:.0} ms at worst")
}

/// Where `tresse emulate` expects both, and how it is reached.
const ALICE: &str = "127.0.1.1";
const BOB: &str = "127.0.2.1";
const RELAY_PORT: u16 = 9900;
const SCTP_PORT: u16 = 2011;

const WARM_UP: Duration = Duration::from_secs(20);
const MESSAGES: usize = 40;
const GAP: Duration = Duration::from_secs(1);
