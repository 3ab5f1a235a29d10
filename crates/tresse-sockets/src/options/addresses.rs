//! Options about addresses and paths (RFC 6458 §8.1.10, 8.1.11, 8.1.12, RFC 7829 §7, RFC 6951 §6).

use std::time::Duration;

use rustix::io::Errno;
use tresse_proto::{
    AddressError, Adjustment, AssociationConfig, AssociationId, PacketSize, PathAdjustment, PathId,
};

use super::limits::{NEVER, millis};
use super::{Target, int, on};
use crate::layout::{Fields, Filled, STORAGE, SocketName};
use crate::settings::{Settings, some_millis};

/// Declares options of future associations that are on or off: `struct sctp_assoc_value`.
macro_rules! offers {
    ($($get:ident, $set:ident: $field:ident;)+) => {$(
        pub(crate) fn $get(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
            let id = target.asked(value)?;
            let has = target.config(id)?.$field;
            Ok(Filled::new(8).i32(0, target.number(id)).u32(4, u32::from(has)).bytes())
        }

        /// Fails for an association whose value would change: features are offered at the set-up only.
        pub(crate) fn $set(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
            let on = value.u32_at(4)? != 0;
            let scope = target.scope(value.i32_at(0)?)?;
            for id in scope.ids {
                if target.config(Some(id))?.$field != on {
                    return Err(Errno::INVAL);
                }
            }
            if scope.future { target.configure(|config| config.$field = on) } else { Ok(()) }
        }
    )+};
}
pub(super) use offers;

offers! {
    asconf, set_asconf: dynamic_addresses;
    ecn, set_ecn: ecn;
}

fn error_of(error: &AddressError) -> Errno {
    match error {
        AddressError::NotAgreed => Errno::PERM,
        AddressError::NotOpen { .. } => Errno::NOTCONN,
        AddressError::Unknown { .. } | AddressError::NotBound { .. } => Errno::ADDRNOTAVAIL,
        AddressError::TooManyRequests => Errno::BUSY,
        _ => Errno::INVAL,
    }
}

/// `struct sctp_setpeerprim`.
pub(super) fn set_peer_primary(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let id = target.one(value)?;
    let name = Target::name_in(value, 4)?.ok_or(Errno::INVAL)?;
    let now = target.now;
    target.association(id)?.set_peer_primary(now, name.address).map_err(|error| error_of(&error))
}

/// `struct sctp_prim`.
pub(super) fn primary(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.one(value)?;
    let path = target.path_to(id, None)?;
    let mapped = target.socket()?.writes_mapped();
    let port = target.state.associations.get(&id).map_or(0, |entry| entry.remote_port);
    let name = SocketName { address: path.remote, port }.write(mapped);
    Ok(Filled::new(4 + STORAGE).i32(0, target.number(Some(id))).put(4, &name).bytes())
}

pub(super) fn set_primary(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let name = Target::name_in(value, 4)?.ok_or(Errno::INVAL)?;
    let id = target.state.with_peer(target.key, value.i32_at(0)?, name)?;
    let path = target.path_to(id, Some(name))?;
    target.association(id)?.set_primary(path.id).map_err(|_| Errno::INVAL)?;
    let now = target.now;
    target.state.note_peers(now, id);
    Ok(())
}

const HB_ENABLE: u32 = 1;
const HB_DISABLE: u32 = 2;
const HB_DEMAND: u32 = 4;
const PMTUD_ENABLE: u32 = 8;
const PMTUD_DISABLE: u32 = 0x10;
const SACKDELAY_ENABLE: u32 = 0x20;
const SACKDELAY_DISABLE: u32 = 0x40;
const HB_TIME_IS_ZERO: u32 = 0x80;
const FLOWLABEL_OR_DSCP: u32 = 0x300;

/// Interval for SPP_HB_TIME_IS_ZERO: a heartbeat in each RTO. It is not 0, which turns heartbeats off in the core.
const EACH_RTO: Duration = Duration::from_nanos(1);

/// Returns the interval of heartbeats; if they are off, the interval for when they are on again.
fn heartbeat_interval(config: &AssociationConfig, settings: &Settings) -> Duration {
    let on = Some(config.heartbeat_interval).filter(|interval| !interval.is_zero());
    let usual = || AssociationConfig::default().heartbeat_interval;
    on.or(settings.paused_heartbeats).unwrap_or_else(usual)
}

/// `struct sctp_paddrparams`.
pub(super) fn parameters(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let (id, path) = match Target::name_in(value, 4)? {
        Some(name) => {
            let id = target.state.with_peer(target.key, value.i32_at(0)?, name)?;
            (Some(id), Some(target.path_to(id, Some(name))?))
        }
        None => (target.asked(value)?, None),
    };
    let config = target.config(id)?;
    let mut flags = if config.heartbeat_interval.is_zero() { HB_DISABLE } else { HB_ENABLE };
    flags |= if config.mtu_discovery { PMTUD_ENABLE } else { PMTUD_DISABLE };
    flags |= if config.sack_frequency == 1 { SACKDELAY_DISABLE } else { SACKDELAY_ENABLE };
    let most = u16::try_from(config.path_max_retrans).unwrap_or(u16::MAX);
    let mtu = path.map_or(if config.mtu_discovery { 0 } else { config.mtu.0 }, |path| path.mtu);
    let storage = value.get(4..4 + STORAGE).ok_or(Errno::INVAL)?;
    Ok(Filled::new(156)
        .i32(0, target.number(id))
        .put(4, storage)
        .u32(132, millis(heartbeat_interval(&config, target.settings(id)?)))
        .u16(136, most)
        .size(138, mtu)
        .u32(142, millis(config.sack_delay))
        .u32(146, flags)
        .bytes())
}

/// `struct sctp_paddrparams` to be set, as Linux reads it: a value that has a flag takes effect with that flag only, and 0 leaves a
/// setting unchanged.
struct PathParams {
    flags: u32,
    interval: Option<Duration>,
    max_retrans: Option<u32>,
    mtu: Option<usize>,
    sack_delay: Option<Duration>,
}

impl PathParams {
    fn read(value: &[u8]) -> Result<Self, Errno> {
        let (interval, most, mtu) = (value.u32_at(132)?, value.u16_at(136)?, value.u32_at(138)?);
        let (delay, flags) = (value.u32_at(142)?, value.u32_at(146)?);
        let both = |pair: u32| flags & pair == pair;
        if both(HB_ENABLE | HB_DISABLE)
            || both(PMTUD_ENABLE | PMTUD_DISABLE)
            || both(SACKDELAY_ENABLE | SACKDELAY_DISABLE)
            || delay > 500
        {
            return Err(Errno::INVAL);
        }
        if flags & FLOWLABEL_OR_DSCP != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let interval = if flags & HB_TIME_IS_ZERO != 0 { Some(EACH_RTO) } else { some_millis(interval) };
        Ok(PathParams {
            flags,
            interval: interval.filter(|_| flags & HB_ENABLE != 0),
            max_retrans: (most != 0).then_some(u32::from(most)),
            mtu: (mtu != 0).then_some(mtu as usize),
            sack_delay: some_millis(delay).filter(|_| flags & SACKDELAY_ENABLE != 0),
        })
    }

    /// Returns the new interval for the core, or `None` if it does not change. `usual` is the interval of heartbeats that are on.
    fn heartbeats(&self, usual: Duration) -> Option<Duration> {
        match self.flags {
            flags if flags & HB_DISABLE != 0 => Some(Duration::ZERO),
            flags if flags & HB_ENABLE != 0 => Some(self.interval.unwrap_or(usual)),
            _ => None,
        }
    }

    /// Returns the changes of paths whose MTU is `mtu` now.
    fn paths(&self, heartbeat_interval: Option<Duration>, mtu: usize) -> PathAdjustment {
        PathAdjustment::default().with(|a| {
            a.heartbeat_interval = heartbeat_interval;
            a.max_retrans = self.max_retrans;
            a.packet_size = match self.flags {
                flags if flags & PMTUD_DISABLE != 0 => Some(PacketSize::Fixed(self.mtu.unwrap_or(mtu))),
                flags if flags & PMTUD_ENABLE != 0 => Some(PacketSize::Discovered),
                _ => None,
            };
        })
    }

    /// Applies the parameters to all paths of an association, or to future associations.
    fn set_on_all(&self, target: &mut Target<'_>, id: Option<AssociationId>) -> Result<(), Errno> {
        let (config, now) = (target.config(id)?, target.now);
        let usual = heartbeat_interval(&config, target.settings(id)?);
        let paths =
            id.and_then(|id| target.association(id).ok()).map(|association| association.path_stats(now));
        let smallest = paths.and_then(|paths| paths.iter().map(|path| path.mtu).min());
        if self.flags & SACKDELAY_DISABLE != 0 {
            target.settings(id)?.pause_delayed_sacks(config.sack_frequency);
        }
        let paused = target.settings(id)?.paused_sack_frequency;
        let adjustment = Adjustment::default().with(|a| {
            a.sack_delay = self.sack_delay;
            a.sack_frequency = match self.flags {
                flags if flags & SACKDELAY_DISABLE != 0 => Some(1),
                flags if flags & SACKDELAY_ENABLE != 0 && config.sack_frequency == 1 => {
                    paused.or(Some(AssociationConfig::default().sack_frequency))
                }
                _ => None,
            };
            a.paths = self.paths(self.heartbeats(usual), smallest.unwrap_or(config.mtu.0));
        });
        // The association ID 0 means future associations. A one-to-one socket has at most one association, whatever the ID.
        target.adjust(target.number(id), &adjustment)?;
        let settings = target.settings(id)?;
        settings.paused_heartbeats = Some(self.interval.unwrap_or(usual));
        if self.interval.is_some() {
            settings.address_heartbeats.clear();
        }
        Ok(())
    }

    /// Applies the parameters to the paths to one address.
    fn set_on_address(&self, target: &mut Target<'_>, number: i32, name: SocketName) -> Result<(), Errno> {
        let (key, now) = (target.key, target.now);
        let id = target.state.with_peer(key, number, name)?;
        let config = target.config(Some(id))?;
        let settings = target.settings(Some(id))?;
        let own = settings.address_heartbeats.iter().find(|(address, _)| *address == name.address);
        let usual = own.map_or_else(|| heartbeat_interval(&config, settings), |&(_, interval)| interval);
        let mut stats = target.association(id)?.path_stats(now);
        stats.retain(|path| path.remote == name.address);
        for path in paths_to(target, id, name)? {
            let mtu = stats.iter().find(|one| one.id == path).map_or(config.mtu.0, |one| one.mtu);
            let change = self.paths(self.heartbeats(usual), mtu);
            target.association(id)?.adjust_path(path, change).map_err(|_| Errno::INVAL)?;
        }
        if let Some(interval) = self.interval {
            let settings = target.settings(Some(id))?;
            settings.address_heartbeats.retain(|(address, _)| *address != name.address);
            settings.address_heartbeats.push((name.address, interval));
        }
        Ok(())
    }
}

pub(super) fn set_parameters(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (wanted, number, name) = (PathParams::read(value)?, value.i32_at(0)?, Target::name_in(value, 4)?);
    match name {
        Some(name) => wanted.set_on_address(target, number, name)?,
        None => {
            for id in target.scope(number)?.each() {
                wanted.set_on_all(target, id)?;
            }
        }
    }
    demand(target, number, name, wanted.flags)
}

/// Returns the paths to this address; `INVAL` if there is none.
fn paths_to(target: &mut Target<'_>, id: AssociationId, name: SocketName) -> Result<Vec<PathId>, Errno> {
    let now = target.now;
    let paths = target.association(id)?.path_stats(now);
    let to: Vec<PathId> =
        paths.iter().filter(|path| path.remote == name.address).map(|path| path.id).collect();
    if to.is_empty() { Err(Errno::INVAL) } else { Ok(to) }
}

/// Sends the heartbeats that SPP_HB_DEMAND asks for.
fn demand(target: &mut Target<'_>, number: i32, name: Option<SocketName>, flags: u32) -> Result<(), Errno> {
    if flags & HB_DEMAND == 0 {
        return Ok(());
    }
    let (now, key) = (target.now, target.key);
    let id =
        target.state.named(key, number)?.or_else(|| target.state.by_name(key, name?)).ok_or(Errno::INVAL)?;
    let paths = match name {
        Some(name) => paths_to(target, id, name)?,
        None => target.association(id)?.path_stats(now).iter().map(|path| path.id).collect(),
    };
    for path in paths {
        target.association(id)?.request_heartbeat(now, path).map_err(|_| Errno::INVAL)?;
    }
    Ok(())
}

/// `struct sctp_paddrthlds`; with `switchover`, that of version 2.
fn read_thresholds(target: &mut Target<'_>, value: &[u8], switchover: bool) -> Result<Vec<u8>, Errno> {
    let id = match Target::name_in(value, 8)? {
        Some(name) => {
            let id = target.state.with_peer(target.key, value.i32_at(0)?, name)?;
            target.path_to(id, Some(name)).map(|_| Some(id))?
        }
        None => target.asked(value)?,
    };
    let config = target.config(id)?;
    let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let failed = if config.potentially_failed { config.potentially_failed_max_retrans } else { NEVER };
    let storage = value.get(8..8 + STORAGE).ok_or(Errno::INVAL)?;
    let filled = Filled::new(144)
        .i32(0, target.number(id))
        .put(8, storage)
        .u16(136, short(config.path_max_retrans))
        .u16(138, short(failed));
    let switch = short(config.primary_switchover_max_retrans);
    Ok(if switchover { filled.u16(140, switch) } else { filled }.bytes())
}

fn write_thresholds(target: &mut Target<'_>, value: &[u8], switchover: bool) -> Result<(), Errno> {
    let (most, failed) = (value.u16_at(136)?, value.u16_at(138)?);
    let switched = if switchover { Some(u32::from(value.u16_at(140)?)) } else { None };
    let paths = PathAdjustment::default().with(|a| {
        a.max_retrans = (most != 0).then_some(u32::from(most));
        a.potentially_failed_max_retrans = Some(u32::from(failed));
        a.primary_switchover_max_retrans = switched;
    });
    let number = value.i32_at(0)?;
    let Some(name) = Target::name_in(value, 8)? else {
        return target.adjust(number, &Adjustment::default().with(|a| a.paths = paths));
    };
    let id = target.state.with_peer(target.key, number, name)?;
    for path in paths_to(target, id, name)? {
        target.association(id)?.adjust_path(path, paths).map_err(|_| Errno::INVAL)?;
    }
    Ok(())
}

pub(super) fn thresholds(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    read_thresholds(target, value, false)
}

pub(super) fn set_thresholds(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    write_thresholds(target, value, false)
}

pub(super) fn thresholds_v2(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    read_thresholds(target, value, true)
}

pub(super) fn set_thresholds_v2(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    write_thresholds(target, value, true)
}

pub(super) fn automatic(_target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    Ok(int(0))
}

/// Fails if it is to be turned on: interfaces are not watched, so a program adds and removes addresses by `sctp_bindx`.
pub(super) fn set_automatic(_target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    if on(value)? { Err(Errno::OPNOTSUPP) } else { Ok(()) }
}

/// `struct sctp_assoc_value`.
pub(super) fn exposes(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let exposes = target.settings(id)?.exposes_pf;
    Ok(Filled::new(8).i32(0, target.number(id)).u32(4, u32::from(exposes)).bytes())
}

pub(super) fn set_exposes(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let on = value.u32_at(4)? != 0;
    target.change(value.i32_at(0)?, |settings| settings.exposes_pf = on)
}

/// `struct sctp_udpencaps`; the port is in network byte order.
pub(super) fn encapsulation(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let usual = target.call.stack.shared.carrier.peer_port();
    let port = target.socket()?.options.encapsulation_port.unwrap_or(usual);
    let storage = value.get(8..8 + STORAGE).ok_or(Errno::INVAL)?;
    let number = target.number(id);
    Ok(Filled::new(144).i32(0, number).put(8, storage).put(136, &port.to_be_bytes()).bytes())
}

/// For future associations only: the others learned the port from their peers. Over raw IP only the port 0 is accepted.
pub(super) fn set_encapsulation(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let port = value.array(136).map(u16::from_be_bytes)?;
    if !target.scope(value.i32_at(0)?)?.future {
        return Err(Errno::OPNOTSUPP);
    }
    if (port == 0) != (target.call.stack.shared.carrier == crate::lower::Encapsulation::RawIp) {
        return Err(Errno::OPNOTSUPP);
    }
    target.socket()?.options.encapsulation_port = Some(port);
    Ok(())
}

/// `struct sctp_probeinterval`: 0 if the core does not probe. Otherwise the core determines the times of probes (RFC 8899).
pub(super) fn probing(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let storage = value.get(8..8 + STORAGE).ok_or(Errno::INVAL)?;
    let interval = if target.config(id)?.mtu_discovery { PROBE_INTERVAL } else { 0 };
    Ok(Filled::new(144).i32(0, target.number(id)).put(8, storage).u32(136, interval).bytes())
}

pub(super) fn set_probing(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let packet_size = match value.u32_at(136)? {
        0 => PacketSize::Fixed(target.socket()?.config.mtu.0),
        PROBE_INTERVAL => PacketSize::Discovered,
        _ => return Err(Errno::INVAL),
    };
    target.adjust(value.i32_at(0)?, &Adjustment::default().with(|a| a.paths.packet_size = Some(packet_size)))
}

/// PMTU_RAISE_TIMER of RFC 8899 §5.1.1, in milliseconds.
const PROBE_INTERVAL: u32 = 600_000;
