//! tresse with its defaults: messages, ordered, on one stream.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tresse::{Association, AssociationConfig, Endpoint, EndpointConfig, Peer, SendOptions, StreamId};

use crate::child::{Load, Tally};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 7;

pub(crate) fn serve(tally: &Arc<Tally>) -> Result<String, Box<dyn Error>> {
    let config = EndpointConfig { port: PORT, listen: true, ..EndpointConfig::default() };
    let endpoint = Endpoint::bind(&[HERE], 0, config, AssociationConfig::preset("cmt")?)?;
    let address = endpoint.udp_port().to_string();
    let tally = Arc::clone(tally);
    tokio::spawn(async move {
        while let Some(association) = endpoint.accept().await {
            let counter = tally.join();
            tokio::spawn(async move {
                while let Ok(Some(message)) = association.recv().await {
                    counter.fetch_add(message.payload.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(address)
}

pub(crate) async fn send(load: Load) -> Result<(), Box<dyn Error>> {
    let udp_port = load.server[0].parse()?;
    let mut opened = Vec::new();
    for _ in 0..load.count {
        let endpoint =
            Endpoint::bind(&[HERE], 0, EndpointConfig::default(), AssociationConfig::preset("cmt")?)?;
        let association = endpoint.connect(Peer::new([HERE], PORT).with_udp_port(udp_port)).await?;
        opened.push((endpoint, association));
    }
    let message = Bytes::from(vec![0x5a; load.message]);
    for (endpoint, association) in opened {
        tokio::spawn(fill(endpoint, association, message.clone(), load.messages));
    }
    Ok(())
}

async fn fill(endpoint: Endpoint, association: Association, message: Bytes, messages: u64) {
    for _ in 0..messages {
        if association.send(SendOptions::on(StreamId(1)), message.clone()).await.is_err() {
            break;
        }
    }
    std::future::pending::<()>().await;
    drop(endpoint);
}
