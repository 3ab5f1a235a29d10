//! Options about streams: partial reliability (RFC 7496 §4), reconfiguration (RFC 6525 §6), scheduling (RFC 8260 §4.3).

use std::collections::BTreeSet;

use rustix::io::Errno;
use tresse_proto::{Abandonments, Adjustment, ReconfigurationError, StreamId, Streams};

use super::Target;
use super::addresses::offers;
use crate::events::direction_of;
use crate::layout::{Fields, Filled};
use crate::settings::{PR_MASK, PR_PRIO, PR_RTX, PR_TTL, policy_of, reliability};

offers! {
    pr_supported, set_pr_supported: partial_reliability;
    reconfig, set_reconfig: stream_reconfiguration;
    interleaving, set_interleaving: interleaving;
}

/// `struct sctp_default_prinfo`.
pub(super) fn default_policy(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let (policy, number) = policy_of(target.settings(id)?.send.reliability);
    Ok(Filled::new(12).i32(0, target.number(id)).u32(4, number).u16(8, policy).bytes())
}

pub(super) fn set_default_policy(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, policy) = (value.u32_at(4)?, value.u16_at(8)?);
    if policy & !PR_MASK != 0 {
        return Err(Errno::INVAL);
    }
    let policy = reliability(policy, number)?;
    target.change(value.i32_at(0)?, |settings| settings.send.reliability = policy)
}

/// `struct sctp_prstatus`.
fn status(
    target: &Target<'_>,
    value: &[u8],
    id: tresse_proto::AssociationId,
    all: Abandonments,
) -> Result<Vec<u8>, Errno> {
    let policy = value.u16_at(6)?;
    let count = match policy & PR_MASK {
        _ if policy & PR_ALL != 0 => all.total(),
        PR_TTL => all.lifetime,
        PR_RTX => all.retransmissions,
        PR_PRIO => all.priority,
        _ => return Err(Errno::INVAL),
    };
    Ok(Filled::new(24)
        .i32(0, target.number(Some(id)))
        .u16(4, value.u16_at(4)?)
        .u16(6, policy)
        .u64(8, count.unsent)
        .u64(16, count.sent)
        .bytes())
}

const PR_ALL: u16 = 0x80;

pub(super) fn abandoned(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.one(value)?;
    let now = target.now;
    let all = target.association(id)?.stats(now).map(|stats| stats.abandoned).unwrap_or_default();
    status(target, value, id, all)
}

pub(super) fn abandoned_on_stream(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let (id, stream) = (target.one(value)?, value.u16_at(4)?);
    let association = target.association(id)?;
    if stream >= association.streams().0 {
        return Err(Errno::INVAL);
    }
    let all = association.abandoned_on(StreamId(stream));
    status(target, value, id, all)
}

/// `struct sctp_assoc_value`: bit 1 accepts stream resets, bit 2 association resets, bit 4 added streams.
pub(super) fn reset_mask(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let config = target.config(id)?;
    let bits = [config.accept_stream_resets, config.accept_association_resets, config.accept_added_streams];
    let mask = bits.iter().enumerate().map(|(place, &bit)| u32::from(bit) << place).sum();
    Ok(Filled::new(8).i32(0, target.number(id)).u32(4, mask).bytes())
}

pub(super) fn set_reset_mask(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let mask = value.u32_at(4)?;
    if mask & !7 != 0 {
        return Err(Errno::INVAL);
    }
    let change = Adjustment::default().with(|a| {
        a.accept_stream_resets = Some(mask & 1 != 0);
        a.accept_association_resets = Some(mask & 2 != 0);
        a.accept_added_streams = Some(mask & 4 != 0);
    });
    target.adjust(value.i32_at(0)?, &change)
}

fn error_of(error: &ReconfigurationError) -> Errno {
    match error {
        ReconfigurationError::NotNegotiated => Errno::OPNOTSUPP,
        ReconfigurationError::NotOpen { .. } => Errno::NOTCONN,
        ReconfigurationError::Busy => Errno::INPROGRESS,
        ReconfigurationError::TooSoon { .. } => Errno::AGAIN,
        _ => Errno::INVAL,
    }
}

/// `struct sctp_reset_streams`.
pub(super) fn reset(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (id, count) = (target.one(value)?, usize::from(value.u16_at(6)?));
    let direction = direction_of(value.u16_at(4)?).ok_or(Errno::INVAL)?;
    let named: BTreeSet<StreamId> =
        (0..count).map(|at| value.u16_at(8 + 2 * at).map(StreamId)).collect::<Result<_, _>>()?;
    let streams = if named.is_empty() { Streams::All } else { Streams::These(named) };
    let now = target.now;
    target.association(id)?.reset_streams(now, streams, direction).map_err(|error| error_of(&error))
}

pub(super) fn reset_association(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (id, now) = (target.one(value)?, target.now);
    target.association(id)?.reset_association(now).map_err(|error| error_of(&error))
}

/// `struct sctp_add_streams`.
pub(super) fn add(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (id, now) = (target.one(value)?, target.now);
    let (inbound, outbound) = (value.u16_at(4)?, value.u16_at(6)?);
    target.association(id)?.add_streams(now, outbound, inbound).map_err(|error| error_of(&error))
}

/// Schedulers by the number of `enum sctp_sched_type`; the last two exist in newer kernels only.
const SCHEDULERS: [&str; 5] = ["first_come", "priority", "round_robin", "fair_bandwidth", "weighted_fair"];

/// `struct sctp_assoc_value`. A scheduler without a number in Linux is reported as 255.
pub(super) fn scheduler(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let name = target.scheduler_of(id)?;
    let at = SCHEDULERS.iter().position(|&known| known == name);
    Ok(Filled::new(8).i32(0, target.number(id)).u32(4, at.map_or(255, |at| at as u32)).bytes())
}

pub(super) fn set_scheduler(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let name = *SCHEDULERS.get(value.u32_at(4)? as usize).ok_or(Errno::INVAL)?;
    target.choose_scheduler(value.i32_at(0)?, name, "")
}

impl Target<'_> {
    /// Returns the name of the stream scheduler of an association, or of future ones.
    pub(super) fn scheduler_of(&mut self, id: Option<tresse_proto::AssociationId>) -> Result<String, Errno> {
        let chosen = self.settings(id)?.scheduler.clone();
        match chosen {
            Some(name) => Ok(name),
            None => Ok(self.config(id)?.stream_scheduler),
        }
    }

    /// Sets the stream scheduler of all associations that the ID `number` selects.
    pub(super) fn choose_scheduler(&mut self, number: i32, name: &str, config: &str) -> Result<(), Errno> {
        let scope = self.scope(number)?;
        if scope.future {
            self.configure(|settings| {
                name.clone_into(&mut settings.stream_scheduler);
                config.clone_into(&mut settings.stream_scheduler_config);
            })?;
        }
        for id in scope.ids {
            self.association(id)?.set_stream_scheduler(name, config).map_err(|_| Errno::INVAL)?;
        }
        self.change(number, |settings| settings.scheduler = Some(name.to_owned()))
    }
}

/// `struct sctp_stream_value`.
pub(super) fn value(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let (id, stream) = (target.one(value)?, value.u16_at(4)?);
    let number = target.association(id)?.stream_value(StreamId(stream)).ok_or(Errno::INVAL)?;
    Ok(Filled::new(8).i32(0, target.number(Some(id))).u16(4, stream).u16(6, number).bytes())
}

pub(super) fn set_value(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (stream, number) = (value.u16_at(4)?, value.u16_at(6)?);
    let scope = target.scope(value.i32_at(0)?)?;
    if scope.ids.is_empty() {
        return Err(Errno::INVAL);
    }
    for id in scope.ids {
        target.association(id)?.set_stream_value(StreamId(stream), number).map_err(|_| Errno::INVAL)?;
    }
    Ok(())
}
