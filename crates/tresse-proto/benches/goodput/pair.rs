//! The work, the same for both stacks: a saturated sender, a receiver that reads at once, and a
//! wire that hands over packets in batches as a driver would.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;

/// Largest IP packet.
pub(crate) const MTU: usize = 1500;
/// Packets handed over before the other side may answer, as one batched system call would.
const BATCH: usize = 32;
/// What the clock of the stacks advances with each batch, as on a path of some ten Gbit/s.
const ROUND: Duration = Duration::from_micros(40);
/// Rounds between two looks at the clock, which may cost as much as some packets.
const ROUNDS_PER_LOOK: usize = 16;
/// Rounds in a row, without a message arriving, after which the exchange has stalled.
const PATIENCE: usize = 10_000;

/// Which end of the association.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// Two connected endpoints of one implementation.
pub(crate) trait Stack {
    /// Queues `message` at the sender, unless its send buffer is full.
    fn send(&mut self, message: &Bytes) -> Result<bool, Box<dyn Error>>;
    /// Takes all messages that the receiver has; their bytes.
    fn receive(&mut self) -> Result<usize, Box<dyn Error>>;
    /// Appends all packets that `side` wants to send now.
    fn poll(&mut self, side: Side, packets: &mut VecDeque<Bytes>);
    /// Hands a packet to `side`.
    fn deliver(&mut self, side: Side, packet: Bytes);
    /// Time until the next timer of either side.
    fn next_timer(&self) -> Option<Duration>;
    /// Moves the clock of both sides and fires what is due.
    fn advance(&mut self, by: Duration);
}

/// What an exchange has moved so far, and what is on the wire.
#[derive(Default)]
struct Progress {
    /// Bytes of messages that the receiving application took.
    received: u64,
    data: VecDeque<Bytes>,
    reports: VecDeque<Bytes>,
    barren: usize,
}

/// One round: fill the send buffer, carry a batch each way, read.
fn exchange(stack: &mut impl Stack, message: &Bytes, progress: &mut Progress) -> Result<(), Box<dyn Error>> {
    stack.advance(ROUND);
    while stack.send(message)? {}
    stack.poll(Side::Sender, &mut progress.data);
    let carried = carry(stack, Side::Receiver, &mut progress.data);
    let received = stack.receive()?;
    progress.received += received as u64;
    stack.poll(Side::Receiver, &mut progress.reports);
    let reported = carry(stack, Side::Sender, &mut progress.reports);
    progress.barren = if received > 0 { 0 } else { progress.barren + 1 };
    if progress.barren > PATIENCE {
        return Err("the exchange has stalled: nothing has arrived for long".into());
    }
    if carried + reported == 0 {
        stack.advance(stack.next_timer().ok_or("the exchange has stalled: no packet and no timer")?);
    }
    Ok(())
}

/// Exchanges messages for at least `budget` of the time that `clock` tells; bytes received, and the time it took.
pub(crate) fn exchange_for(
    stack: &mut impl Stack,
    message: &Bytes,
    budget: Duration,
    clock: impl Fn() -> Duration,
) -> Result<(u64, Duration), Box<dyn Error>> {
    let (start, mut progress) = (clock(), Progress::default());
    loop {
        for _ in 0..ROUNDS_PER_LOOK {
            exchange(stack, message, &mut progress)?;
        }
        let spent = clock() - start;
        if spent >= budget {
            return Ok((progress.received, spent));
        }
    }
}

/// Hands a batch to `to`; how many packets.
fn carry(stack: &mut impl Stack, to: Side, wire: &mut VecDeque<Bytes>) -> usize {
    let batch = wire.len().min(BATCH);
    for packet in wire.drain(..batch) {
        stack.deliver(to, packet);
    }
    batch
}
