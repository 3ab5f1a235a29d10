//! Plain UDP, with segmentation offload both ways where the system has it: what sockets alone cost. Nothing is
//! acknowledged and nothing controls the rate; what arrives counts.

use std::error::Error;
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::child::{Load, Tally};

/// The longest datagram, as long as what carries an SCTP packet.
const SEGMENT: usize = 1452;
const RUN: usize = 65_000;
const BUFFERS: usize = 8;

fn bind() -> Result<(UdpSocket, UdpSocketState), Box<dyn Error>> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    let socket = UdpSocket::from_std(socket)?;
    let state = UdpSocketState::new((&socket).into())?;
    let _ = state.set_recv_buffer_size((&socket).into(), 4 << 20);
    let _ = state.set_send_buffer_size((&socket).into(), 4 << 20);
    Ok((socket, state))
}

pub(crate) fn serve(tally: &Arc<Tally>) -> Result<String, Box<dyn Error>> {
    let (socket, state) = bind()?;
    let address = socket.local_addr()?.port().to_string();
    let counter = tally.join();
    tokio::spawn(async move {
        let mut room = vec![0; BUFFERS << 16];
        while socket.readable().await.is_ok() {
            let mut meta = [RecvMeta::default(); BUFFERS];
            let mut slices: Vec<IoSliceMut<'_>> =
                room.chunks_exact_mut(1 << 16).map(IoSliceMut::new).collect();
            let received = socket
                .try_io(Interest::READABLE, || state.recv((&socket).into(), &mut slices, &mut meta))
                .unwrap_or(0);
            let bytes: usize = meta[..received].iter().map(|meta| meta.len).sum();
            counter.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    });
    Ok(address)
}

pub(crate) async fn send(load: Load) -> Result<(), Box<dyn Error>> {
    let destination = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), load.server[0].parse()?);
    let (socket, state) = bind()?;
    let segment = load.message.min(SEGMENT);
    let run = vec![0x5a; (RUN / segment).min(state.max_gso_segments()) * segment];
    tokio::spawn(async move {
        let segments =
            Transmit { destination, ecn: None, contents: &run, segment_size: Some(segment), src_ip: None };
        while socket.writable().await.is_ok() {
            let _ = socket.try_io(Interest::WRITABLE, || state.try_send((&socket).into(), &segments));
            tokio::task::yield_now().await;
        }
    });
    Ok(())
}
