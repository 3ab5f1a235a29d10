//! Replacement of the TUN device on systems other than Linux, which have not been tested.

use std::sync::Arc;
use std::time::Duration;

use tresse::config::StreamClass;

use super::hub::{ConnectionHandle, Hub};
use crate::failure::Failure;

/// Number of lanes.
pub(super) const LANES: u16 = 0;

/// A TUN device, which never exists on these systems.
pub(super) enum Tun {}

impl Tun {
    pub(super) fn open(name: &str, _: Duration) -> Result<Arc<Self>, Failure> {
        Err(Failure::usage(format!("--tun {name}: there are TUN devices on Linux alone")))
    }

    pub(super) async fn begin(self: &Arc<Self>, _: &Arc<Hub>) -> Result<(), Failure> {
        match **self {}
    }

    pub(super) async fn join(self: Arc<Self>, _: Arc<Hub>, _: ConnectionHandle, _: StreamClass) {
        match *self {}
    }

    pub(super) async fn carry(&self) -> Failure {
        match *self {}
    }
}

/// Carries the packets of a device, if there is one; never returns.
pub(super) async fn carry_packets(tun: Option<&Tun>) -> Failure {
    match tun {
        Some(tun) => tun.carry().await,
        None => std::future::pending().await,
    }
}
