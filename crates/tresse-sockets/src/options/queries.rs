//! Queries about associations and addresses (RFC 6458 §8.2, and the counters of Linux).

use rustix::io::Errno;
use tresse_proto::{AssociationId, PathState, PathStats};

use super::{Target, int};
use crate::layout::{Fields, Filled, STORAGE, SocketName};
use crate::settings::PACKET_OVERHEAD;
use crate::settings::Style;

/// Returns the number of `enum sctp_spinfo_state` for a path state.
fn state_of(state: PathState) -> i32 {
    match state {
        PathState::Inactive => 0,
        PathState::PotentiallyFailed => 1,
        PathState::Active => 2,
        _ => 3,
    }
}

/// Returns the number of `enum sctp_sstat_state` for an association state.
fn association_state(name: &str) -> i32 {
    let states = [
        "CLOSED",
        "COOKIE-WAIT",
        "COOKIE-ECHOED",
        "ESTABLISHED",
        "SHUTDOWN-PENDING",
        "SHUTDOWN-SENT",
        "SHUTDOWN-RECEIVED",
        "SHUTDOWN-ACK-SENT",
    ];
    let at = states.iter().position(|state| state.eq_ignore_ascii_case(name));
    at.map_or(0, |at| at as i32 + 1)
}

impl Target<'_> {
    /// Returns a path of an association to this address of the peer; the primary path for no address.
    pub(super) fn path_to(
        &mut self,
        id: AssociationId,
        name: Option<SocketName>,
    ) -> Result<PathStats, Errno> {
        let now = self.now;
        let paths = self.association(id)?.path_stats(now);
        let mut paths = paths.into_iter();
        let found = match name {
            Some(name) => paths.find(|path| path.remote == name.address),
            None => paths.find(|path| path.primary),
        };
        found.ok_or(Errno::INVAL)
    }

    /// Reads the name in an option's `struct sockaddr_storage`; `None` for the wildcard, and if there is no name.
    pub(super) fn name_in(value: &[u8], at: usize) -> Result<Option<SocketName>, Errno> {
        let storage = value.get(at..at + STORAGE).ok_or(Errno::INVAL)?;
        if storage.u16_at(0)? == 0 {
            return Ok(None);
        }
        SocketName::read(storage).map(|name| Some(name).filter(|name| !name.is_wildcard()))
    }

    /// `struct sctp_paddrinfo`.
    fn address_info(&mut self, id: AssociationId, path: &PathStats) -> Result<Vec<u8>, Errno> {
        let mapped = self.socket()?.writes_mapped();
        let port = self.state.associations.get(&id).map_or(0, |entry| entry.remote_port);
        let srtt = path.srtt.map_or(0, |srtt| srtt.as_millis() as usize);
        Ok(Filled::new(152)
            .i32(0, self.number(Some(id)))
            .put(4, &SocketName { address: path.remote, port }.write(mapped))
            .i32(4 + STORAGE, state_of(path.state))
            .size(136, path.cwnd)
            .size(140, srtt)
            .size(144, path.rto.as_millis() as usize)
            .size(148, path.mtu)
            .bytes())
    }
}

/// `struct sctp_status`.
pub(super) fn status(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.one(value)?;
    let now = target.now;
    let association = target.association(id)?;
    let (name, (outbound, inbound)) = (association.state_name(), association.streams());
    let stats = association.stats(now);
    let filled = Filled::new(176)
        .i32(0, target.number(Some(id)))
        .i32(4, association_state(name))
        .u16(16, inbound)
        .u16(18, outbound);
    // During the set-up there is neither a receiver window nor a path.
    let Some(stats) = stats else { return Ok(filled.bytes()) };
    let short = |bytes: usize, each: usize| u16::try_from(bytes.div_ceil(each.max(1))).unwrap_or(u16::MAX);
    let primary = target.path_to(id, None)?;
    let fragment = primary.mtu.saturating_sub(PACKET_OVERHEAD);
    let info = target.address_info(id, &primary)?;
    Ok(filled
        .size(8, stats.peer_window)
        // Chunks are not counted: these are bytes, in chunks of full length.
        .u16(12, short(stats.flight, fragment))
        .u16(14, short(stats.unsent, fragment))
        .size(20, fragment)
        .put(24, &info)
        .bytes())
}

/// `struct sctp_paddrinfo`.
pub(super) fn peer_address(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let name = Target::name_in(value, 4)?;
    let id = match name {
        Some(name) => target.state.with_peer(target.key, value.i32_at(0)?, name)?,
        None => target.one(value)?,
    };
    let path = target.path_to(id, name)?;
    target.address_info(id, &path)
}

/// Checks that the socket is a one-to-many socket (RFC 6458 §8.2.5, §8.2.6); `OPNOTSUPP` otherwise, as in Linux.
fn one_to_many(target: &Target<'_>) -> Result<(), Errno> {
    if target.call.socket().style == Style::OneToMany { Ok(()) } else { Err(Errno::OPNOTSUPP) }
}

pub(super) fn association_count(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    one_to_many(target)?;
    let count = target.scope(super::CURRENT)?.ids.len();
    Ok(int(u32::try_from(count).unwrap_or(u32::MAX)))
}

/// `struct sctp_assoc_ids`.
pub(super) fn association_list(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    one_to_many(target)?;
    let ids = target.scope(super::CURRENT)?.ids;
    let mut numbers: Vec<i32> = ids.iter().map(|&id| target.number(Some(id))).collect();
    numbers.sort_unstable();
    if value.len() < 4 + 4 * numbers.len() {
        return Err(Errno::INVAL);
    }
    let list: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    Ok(Filled::new(4).size(0, numbers.len()).tail(&list).bytes())
}

/// `struct sctp_assoc_stats`. Counters that the core does not have are 0: gaps, and chunks by order and kind.
pub(super) fn counters(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.one(value)?;
    let (now, mapped) = (target.now, target.socket()?.writes_mapped());
    let port = target.state.associations.get(&id).map_or(0, |entry| entry.remote_port);
    let association = target.association(id)?;
    let stats = association.stats(now).ok_or(Errno::NOTCONN)?;
    let paths = association.path_stats(now);
    let sum = |of: fn(&PathStats) -> u64| paths.iter().map(of).sum::<u64>();
    let slowest = paths.iter().max_by_key(|path| path.rto).ok_or(Errno::NOTCONN)?;
    let name = SocketName { address: slowest.remote, port }.write(mapped);
    Ok(Filled::new(256)
        .i32(0, target.number(Some(id)))
        .put(8, &name)
        .u64(136, slowest.rto.as_millis() as u64)
        .u64(144, stats.sacks_received)
        .u64(152, stats.sacks_sent)
        .u64(160, sum(|path| path.packets_sent))
        .u64(168, sum(|path| path.packets_received))
        .u64(176, sum(|path| path.chunks_resent))
        .u64(192, stats.duplicates)
        .u64(224, sum(|path| path.chunks_sent))
        .bytes())
}
