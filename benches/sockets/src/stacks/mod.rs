//! The stacks: what each does to receive, and to send as fast as it can.

mod encrypted;
mod quic;
mod sctp;
mod udp;

use std::error::Error;
use std::sync::Arc;

use crate::child::{Load, Tally};

/// Starts to receive; answers what a sender needs to know.
pub(crate) fn serve(stack: &str, tally: &Arc<Tally>) -> Result<String, Box<dyn Error>> {
    match stack {
        "tresse" | "many" | "spread" | "encrypted" => sctp::serve(tally, stack),
        "quinn" => quic::serve(tally),
        "udp" => udp::serve(tally),
        _ => Err(format!("no stack {stack:?}").into()),
    }
}

/// Opens associations, and leaves behind tasks that send.
pub(crate) async fn send(stack: &str, load: Load) -> Result<(), Box<dyn Error>> {
    match stack {
        "tresse" | "many" | "spread" | "encrypted" => sctp::send(load, stack).await,
        "quinn" => quic::send(load).await,
        "udp" => udp::send(load).await,
        _ => Err(format!("no stack {stack:?}").into()),
    }
}
