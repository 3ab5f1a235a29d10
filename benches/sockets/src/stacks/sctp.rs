//! tresse with its defaults: messages, ordered, on one stream; one in a call, or many; or with a driver for each thread of
//! the runtime where it serves (`spread`).

use std::collections::VecDeque;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::runtime::Handle;
use tresse::{Association, EndpointConfig, Peer, SendOptions, StreamId};

use super::encrypted;
use crate::child::{Load, Tally};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 7;
/// Messages in a call, where several are given.
const AT_ONCE: usize = 256;

pub(crate) fn serve(tally: &Arc<Tally>, stack: &str) -> Result<String, Box<dyn Error>> {
    let (many, keys) = (stack == "many", encrypted::keys(stack)?);
    let config = EndpointConfig::listening(PORT);
    let drivers = if stack == "spread" { Handle::current().metrics().num_workers() } else { 1 };
    let endpoint = encrypted::bind(HERE, config, drivers, keys)?;
    let address = endpoint.udp_port().to_string();
    let tally = Arc::clone(tally);
    tokio::spawn(async move {
        while let Some(association) = endpoint.accept().await {
            let counter = tally.join();
            tokio::spawn(async move {
                if many {
                    return drain(&association, &counter).await;
                }
                while let Ok(Some(message)) = association.recv().await {
                    counter.fetch_add(message.payload.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(address)
}

async fn drain(association: &Association, counter: &AtomicU64) {
    let mut messages = Vec::new();
    while association.recv_many(&mut messages, AT_ONCE).await.is_ok_and(|count| count > 0) {
        let bytes: usize = messages.drain(..).map(|message| message.payload.len()).sum();
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

pub(crate) async fn send(load: Load, stack: &str) -> Result<(), Box<dyn Error>> {
    let (many, keys) = (stack == "many", encrypted::keys(stack)?);
    let udp_port = load.server[0].parse()?;
    let mut opened = Vec::new();
    for _ in 0..load.count {
        let endpoint = encrypted::bind(HERE, EndpointConfig::default(), 1, keys.clone())?;
        let association = endpoint.connect(Peer::new([HERE], PORT).with_udp_port(udp_port)).await?;
        opened.push((endpoint, association));
    }
    let message = Bytes::from(vec![0x5a; load.message]);
    for (endpoint, association) in opened {
        let (message, messages) = (message.clone(), load.messages);
        tokio::spawn(async move {
            match many {
                true => fill_many(&association, message, messages).await,
                false => fill(&association, message, messages).await,
            }
            std::future::pending::<()>().await;
            drop((endpoint, association));
        });
    }
    Ok(())
}

async fn fill(association: &Association, message: Bytes, messages: u64) {
    for _ in 0..messages {
        if association.send(SendOptions::on(StreamId(1)), message.clone()).await.is_err() {
            return;
        }
    }
}

async fn fill_many(association: &Association, message: Bytes, mut messages: u64) {
    let mut waiting = VecDeque::new();
    while messages > 0 {
        let count = messages.min(AT_ONCE as u64);
        waiting.resize(count as usize, (SendOptions::on(StreamId(1)), message.clone()));
        if association.send_many(&mut waiting).await.is_err() {
            return;
        }
        messages -= count;
    }
}
