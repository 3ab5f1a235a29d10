//! A UDP port of the client: datagrams of each peer to each address of this host become a flow
//! with a stream of its own.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};

use super::dispatcher::Dispatcher;
use super::flow::{FlowSocket, carry};
use super::flow_listener::{Ends, FlowListener};
use super::forward::Forward;
use super::message::LONGEST_DATAGRAM;
use super::opening::{Kind, Opening};

/// Receives datagrams and passes them to their flows. While the tunnel is down, datagrams are lost, as in any network.
pub(super) async fn take_in(
    flow_listener: Arc<FlowListener>,
    forward: Forward,
    dispatcher: Arc<Dispatcher>,
) -> Infallible {
    let mut flows: BTreeMap<Ends, mpsc::Sender<Bytes>> = BTreeMap::new();
    let line = Arc::new(Semaphore::new(MOST_WAITING));
    let mut buffer = vec![0; LONGEST_DATAGRAM];
    loop {
        let (length, ends) = match flow_listener.recv(&mut buffer).await {
            Ok(received) => received,
            // An ICMP error about an answer, or a shortage of resources: both are temporary.
            Err(_) => {
                tokio::task::yield_now().await;
                continue;
            }
        };
        let mut datagram = Bytes::copy_from_slice(&buffer[..length]);
        if let Some(flow) = flows.get(&ends) {
            match flow.try_send(datagram) {
                Ok(()) => continue,
                Err(mpsc::error::TrySendError::Full(_)) => {
                    if let Some(hub) = dispatcher.hub() {
                        hub.counts().datagrams_dropped.fetch_add(1, Ordering::Relaxed);
                    }
                    continue;
                }
                Err(mpsc::error::TrySendError::Closed(again)) => datagram = again,
            }
        }
        flows.retain(|_, flow| !flow.is_closed());
        let Some(hub) = dispatcher.hub() else { continue };
        let turn = hub.turns().try_next();
        let waits = if turn.is_none() { Some(Arc::clone(&line).try_acquire_owned()) } else { None };
        let Ok(waits) = waits.transpose() else {
            hub.counts().datagrams_dropped.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let (sender, queue) = mpsc::channel(MOST_QUEUED);
        // The queue is empty, so this cannot fail.
        let _ = sender.try_send(datagram);
        flows.insert(ends, sender);
        let rules = dispatcher.rules();
        let class = rules.class_of(forward.port());
        let opening = Opening { kind: Kind::Udp, class, tag: 0, to: forward.destination() };
        let outlet = FlowSocket::Shared { flow_listener: Arc::downgrade(&flow_listener), ends, queue };
        tokio::spawn(async move {
            let turn = match turn {
                Some(turn) => turn,
                None => hub.turns().next().await,
            };
            drop(waits);
            // The hub reports the end of the association.
            if let Ok(place) = hub.open_with(turn, opening).await {
                let _ = carry(&hub, place, outlet, rules.limits, true).await;
            }
        });
    }
}

/// Most datagrams of one flow that wait for its task.
const MOST_QUEUED: usize = 256;
/// Most flows that wait for a stream permit; datagrams of further ones are lost.
const MOST_WAITING: usize = 64;
