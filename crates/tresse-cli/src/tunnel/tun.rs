//! A TUN device: the IP packets of a host, or of a LAN behind it, as messages on lanes of the association.
//!
//! Lanes are streams. The packets of a flow use one lane and stay in order, so that TCP in the tunnel sees no reordering by paths of
//! different delay. A late packet is abandoned, and blocks its own lane only. The device's MTU follows the packet size of the paths; the
//! system reports the MTU to programs and, by ICMP, to the LAN.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use rustix::io::Errno;
use tracing::{info, warn};
use tresse::config::StreamClass;
use tresse::{Association, PathState, Reliability, SendError, SendOptions, StreamId};
use tun_rs::{AsyncDevice, DeviceBuilder};

use super::connection::hear_last;
use super::hub::{ConnectionEnd, ConnectionHandle, Hub, Inbound};
use super::ip_packet;
use super::message::StreamMessage;
use super::opening::{Destination, Kind, Opening};
use crate::call::peer_of;
use crate::failure::{Failure, is_shortage};

/// The device and the lanes of its packets.
pub(super) struct Tun {
    device: AsyncDevice,
    name: String,
    lanes: Mutex<Lanes>,
    /// The MTU that was last requested.
    mtu: AtomicU16,
    /// True while it is not known whether the device is up.
    may_be_down: AtomicBool,
    lifetime: Duration,
}

/// The lanes of all associations that have some. Packets use those of one association.
#[derive(Default)]
struct Lanes {
    /// The bundles in the order in which they began.
    bundles: Vec<Bundle>,
    /// The association in use, or last in use. The weak reference does not keep the association alive.
    used: Weak<Hub>,
}

/// The lanes of one association.
struct Bundle {
    hub: Arc<Hub>,
    lanes: Vec<Lane>,
}

/// A stream for packets.
struct Lane {
    stream: StreamId,
    tag: u16,
    class: StreamClass,
}

impl Lanes {
    fn join(&mut self, hub: &Arc<Hub>, lane: Lane) {
        if let Some(bundle) = self.bundles.iter_mut().find(|bundle| Arc::ptr_eq(&bundle.hub, hub)) {
            return bundle.lanes.push(lane);
        }
        self.bundles.push(Bundle { hub: Arc::clone(hub), lanes: vec![lane] });
    }

    fn leave(&mut self, hub: &Arc<Hub>, stream: StreamId) {
        for bundle in self.bundles.iter_mut().filter(|bundle| Arc::ptr_eq(&bundle.hub, hub)) {
            bundle.lanes.retain(|lane| lane.stream != stream);
        }
        self.bundles.retain(|bundle| !bundle.lanes.is_empty());
    }

    /// Returns the lanes in use.
    fn used(&self) -> Option<&Bundle> {
        self.bundles.iter().find(|bundle| Arc::as_ptr(&bundle.hub) == self.used.as_ptr())
    }

    /// Selects the newest association with a working path, or else the newest one. Returns the association if it replaces another one.
    fn choose(&mut self) -> Option<Arc<Hub>> {
        let works = |bundle: &&Bundle| room(bundle.hub.association()).is_some();
        let newest = self.bundles.iter().rev().find(works).or(self.bundles.last());
        let hub = Arc::clone(&newest?.hub);
        let former = std::mem::replace(&mut self.used, Arc::downgrade(&hub));
        let is_first = former.ptr_eq(&Weak::new());
        (!is_first && !former.ptr_eq(&self.used)).then_some(hub)
    }
}

impl Tun {
    /// Creates the device, or opens an existing one that its user may use. Sets the device up, if this process may do that; otherwise the
    /// operator who created the device for a user sets it up. The operator also sets addresses and routes.
    pub(super) fn open(name: &str, lifetime: Duration) -> Result<Arc<Self>, Failure> {
        let device = DeviceBuilder::new().name(name).inherit_enable_state().build_async();
        let device = device.map_err(|error| refused(name, &error))?;
        let refused = |error| refused(name, &error);
        let permitted = |done: io::Result<()>| match done {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(false),
            done => done.map(|()| true),
        };
        permitted(device.set_mtu(SMALLEST_MTU)).map_err(refused)?;
        let up = permitted(device.enabled(true)).map_err(refused)?;
        let (lanes, mtu, may_be_down) =
            (Mutex::default(), AtomicU16::new(SMALLEST_MTU), AtomicBool::new(!up));
        Ok(Arc::new(Tun { device, name: name.to_owned(), lanes, mtu, may_be_down, lifetime }))
    }

    /// Opens lanes on a new association, at the side that opened the association.
    pub(super) async fn begin(self: &Arc<Self>, hub: &Arc<Hub>) -> Result<(), Failure> {
        let classes = [StreamClass::Latency, StreamClass::Background].into_iter();
        for class in classes.chain(std::iter::repeat_n(StreamClass::Bulk, BULK_LANES)) {
            let opening = Opening { kind: Kind::Packets, class, tag: 0, to: Destination::Default };
            let place = hub.open_with(hub.turns().for_lane().await, opening).await?;
            tokio::spawn(Arc::clone(self).join(Arc::clone(hub), place, class));
        }
        Ok(())
    }

    /// Carries a lane until the other side or the association ends it. Once all lanes of this association have ended, those of an earlier
    /// one are used again.
    pub(super) async fn join(
        self: Arc<Self>,
        hub: Arc<Hub>,
        mut place: ConnectionHandle,
        class: StreamClass,
    ) {
        let (stream, tag) = (place.stream, place.tag);
        self.lanes().join(&hub, Lane { stream, tag, class });
        self.choose();
        loop {
            tokio::select! {
                inward = place.inbox.recv() => match inward {
                    Some(Inbound::Datagram(packet)) => {
                        place.waiting.fetch_sub(packet.len(), Ordering::Relaxed);
                        // A packet that the system refuses is lost, as it would be on a link.
                        let _ = self.device.send(&packet).await;
                    }
                    Some(_) => {}
                    None => break,
                },
                word = &mut place.last => {
                    if let Ok(ConnectionEnd::Reset(_)) = word {
                        warn!("the other side takes no IP packets");
                    }
                    self.leave(&hub, stream);
                    let _ = hub.say_last(stream, StreamMessage::Closed).await;
                    return;
                }
                _ = hub.association().closed() => break,
            }
        }
        self.leave(&hub, stream);
        let _ = hear_last(&hub, place).await;
    }

    /// Sends the packets from the device, and adapts its MTU. Returns when the device has been removed.
    pub(super) async fn carry(&self) -> Failure {
        let mut packet = vec![0; LARGEST_PACKET];
        let mut ticks = tokio::time::interval(BETWEEN_MTUS);
        let mut settled = std::pin::pin!(tokio::time::sleep(UNTIL_UP));
        loop {
            tokio::select! {
                received = self.device.recv(&mut packet) => match received {
                    Ok(length) => self.send(&packet[..length]),
                    // A device of this name that comes later has neither the addresses nor the routes of this one.
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::BADFD) => {
                        return Failure::running("the device was removed").at(format!("--tun {}", self.name));
                    }
                    // The device is down; this is repeated until an operator sets it up again.
                    Err(_) => tokio::time::sleep(BETWEEN_MTUS).await,
                },
                _ = ticks.tick() => {
                    self.choose();
                    self.fit();
                }
                () = &mut settled, if self.may_be_down.load(Ordering::Relaxed) => self.check_up(),
            }
        }
    }

    fn send(&self, packet: &[u8]) {
        let class = ip_packet::class(packet);
        let lanes = self.lanes();
        let Some(Bundle { hub, lanes }) = lanes.used() else { return };
        let of_class = || lanes.iter().filter(|lane| lane.class == class);
        let count = of_class().count().max(1);
        let Some(lane) = of_class().nth(ip_packet::flow(packet) % count) else { return };
        let association = hub.association();
        let dropped = || {
            hub.counts().datagrams_dropped.fetch_add(1, Ordering::Relaxed);
        };
        if association.unsent_on(lane.stream) > MOST_WAITING {
            return dropped();
        }
        let (ppid, payload) = StreamMessage::Datagram(lane.tag, Bytes::copy_from_slice(packet)).encode();
        let reliability = Reliability::Lifetime(self.lifetime);
        let options = SendOptions::on(lane.stream).with(|o| {
            o.ppid = ppid;
            o.reliability = reliability;
        });
        match association.try_send(options, payload) {
            Ok(()) | Err(SendError::NotOpen { .. }) => {}
            Err(_) => dropped(),
        }
    }

    /// Logs a warning if the device is still down.
    fn check_up(&self) {
        self.may_be_down.store(false, Ordering::Relaxed);
        let name = &self.name;
        if !self.device.is_running().unwrap_or(true) {
            warn!(
                device = %name,
                "{name} is down, and to set it up takes CAP_NET_ADMIN: it carries nothing before ip link set {name} up"
            );
        }
    }

    /// Sets the largest MTU whose packets need not be fragmented on any path.
    fn fit(&self) {
        let largest = self.lanes().used().and_then(|bundle| room(bundle.hub.association()));
        let Some(mtu) = largest else { return };
        if self.mtu.swap(mtu, Ordering::Relaxed) == mtu {
            return;
        }
        let (name, has) = (&self.name, self.device.mtu().ok());
        if has == Some(mtu) {
            return;
        }
        match self.device.set_mtu(mtu) {
            Ok(()) => info!(device = %name, mtu, "{name}: MTU {mtu}"),
            // The present MTU is smaller, so packets fit.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && has.is_some_and(|has| has < mtu) => {
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => warn!(
                device = %name, mtu,
                "{name}: to set the MTU takes CAP_NET_ADMIN; packets are cut before ip link set {name} mtu {mtu}"
            ),
            Err(error) => warn!(device = %name, %error, "{name}: cannot set the MTU: {error}"),
        }
    }

    fn leave(&self, hub: &Arc<Hub>, stream: StreamId) {
        self.lanes().leave(hub, stream);
        self.choose();
    }

    /// Selects the association that carries the packets, and logs a change.
    fn choose(&self) {
        let chosen = self.lanes().choose();
        if let Some(hub) = chosen {
            let (name, peer) = (&self.name, peer_of(hub.association()));
            info!(device = %name, %peer, "{name}: its packets go to {peer} from now on");
        }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the failure to open the device. A device in use may become free, and a missing one may be created.
fn refused(name: &str, error: &io::Error) -> Failure {
    let place = format!("--tun {name}");
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::running(format!(
            "it is not there, or was made for another user: ip tuntap add dev {name} mode tun user NAME makes one that needs no \
             capability, and to make one here takes CAP_NET_ADMIN"
        ))
        .at(place),
        ErrorKind::ResourceBusy => Failure::running(error).at(place),
        _ if is_shortage(error) => Failure::running(error).at(place),
        _ => Failure::usage(error).at(place),
    }
}

/// Carries the packets of a device, if there is one. Returns when the device has been removed.
pub(super) async fn carry_packets(tun: Option<&Tun>) -> Failure {
    match tun {
        Some(tun) => tun.carry().await,
        None => std::future::pending().await,
    }
}

/// Returns the length of the largest IP packet that fits one SCTP packet on each active path; `None` without an active path.
fn room(association: &Association) -> Option<u16> {
    let protection = if association.protection_stats().is_some() { PROTECTION } else { 0 };
    let paths = association.path_stats();
    let rooms = paths.iter().filter(|path| path.state == PathState::Active).map(|path| {
        let ip = if path.remote.is_ipv4() { 20 } else { 40 };
        path.mtu.saturating_sub(ip + UDP + COMMON_HEADER + protection + DATA_HEADER + TAG) & !3
    });
    rooms.min().map(|room| u16::try_from(room).unwrap_or(u16::MAX).max(SMALLEST_MTU))
}

/// Headers, bytes (RFC 6951; RFC 9260 sections 3.1 and 3.3.1, RFC 8260 section 2.1 for the longer of both; docs/security.md).
const UDP: usize = 8;
const COMMON_HEADER: usize = 12;
const DATA_HEADER: usize = 20;
const PROTECTION: usize = 28;
/// Bytes before each packet in its message.
const TAG: usize = 2;
/// Smallest MTU of IPv6 (RFC 8200 section 5). If a path carries less, messages are fragmented.
const SMALLEST_MTU: u16 = 1280;
const LARGEST_PACKET: usize = 65_535;
/// Lanes for packets without a mark (bulk).
const BULK_LANES: usize = 14;
/// Lanes of all classes: those for bulk, and one for each other class.
pub(super) const LANES: u16 = BULK_LANES as u16 + 2;
/// Most unsent bytes of a lane.
const MOST_WAITING: usize = 256 * 1024;
/// Time after which an opened device must be up.
const UNTIL_UP: Duration = Duration::from_secs(2);
/// Interval at which the MTU is adapted to the paths.
const BETWEEN_MTUS: Duration = Duration::from_millis(500);
