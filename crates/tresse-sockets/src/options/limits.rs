//! Timers, buffers and bounds of associations (RFC 6458 §8.1.1, 8.1.2, 8.1.8, 8.1.16, 8.1.19, 8.1.24).

use std::time::Duration;

use rustix::io::Errno;
use tresse_proto::{Adjustment, PacketSize};

use super::{Target, int};
use crate::layout::{Fields, Filled};
use crate::settings::{PACKET_OVERHEAD, Style, some_millis};

pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

impl Target<'_> {
    /// Changes settings of the associations that the ID `number` selects, future ones included.
    pub(super) fn adjust(&mut self, number: i32, adjustment: &Adjustment) -> Result<(), Errno> {
        let scope = self.scope(number)?;
        if scope.future {
            self.configure(|config| adjustment.apply(config))?;
        }
        for id in scope.ids {
            self.association(id)?.adjust(*adjustment).map_err(|_| Errno::INVAL)?;
        }
        Ok(())
    }
}

/// A threshold of RFC 7829 that is never reached.
pub(super) const NEVER: u32 = 65_535;

/// `struct sctp_rtoinfo`.
pub(super) fn rto(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let config = target.config(id)?;
    Ok(Filled::new(16)
        .i32(0, target.number(id))
        .u32(4, millis(config.rto_initial))
        .u32(8, millis(config.rto_max))
        .u32(12, millis(config.rto_min))
        .bytes())
}

pub(super) fn set_rto(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let [initial, max, min] = [value.u32_at(4)?, value.u32_at(8)?, value.u32_at(12)?].map(some_millis);
    let adjustment = Adjustment::default().with(|a| {
        a.rto_initial = initial;
        a.rto_max = max;
        a.rto_min = min;
    });
    target.adjust(value.i32_at(0)?, &adjustment)
}

/// `struct sctp_assocparams`.
pub(super) fn association(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let config = target.config(id)?;
    let cookie_life = target.socket()?.options.cookie_life;
    let now = target.now;
    let stats = id.and_then(|id| target.association(id).ok()?.stats(now));
    let peers = id.and_then(|id| target.state.associations.get(&id)).map_or(0, |entry| entry.peers.len());
    let retransmissions = u16::try_from(config.association_max_retrans).unwrap_or(u16::MAX);
    Ok(Filled::new(20)
        .i32(0, target.number(id))
        .u16(4, retransmissions)
        .u16(6, u16::try_from(peers).unwrap_or(u16::MAX))
        .size(8, stats.as_ref().map_or(0, |stats| stats.peer_window))
        .size(12, stats.as_ref().map_or(config.receive_buffer.0, |stats| stats.own_window))
        .u32(16, cookie_life)
        .bytes())
}

pub(super) fn set_association(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (most, cookie_life) = (value.u16_at(4)?, value.u32_at(16)?);
    let adjustment =
        Adjustment::default().with(|a| a.association_max_retrans = (most != 0).then_some(u32::from(most)));
    target.adjust(value.i32_at(0)?, &adjustment)?;
    if cookie_life != 0 {
        target.socket()?.options.cookie_life = cookie_life;
    }
    Ok(())
}

pub(super) fn autoclose(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    if target.call.socket().style == Style::OneToOne {
        return Err(Errno::OPNOTSUPP);
    }
    let pause = target.socket()?.autoclose;
    Ok(int(pause.map_or(0, |pause| u32::try_from(pause.as_secs()).unwrap_or(u32::MAX))))
}

pub(super) fn set_autoclose(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    if target.call.socket().style == Style::OneToOne {
        return Err(Errno::OPNOTSUPP);
    }
    let seconds = value.u32_at(0)?;
    target.state.closes_idle |= seconds != 0;
    target.socket()?.autoclose = (seconds != 0).then(|| Duration::from_secs(u64::from(seconds)));
    // The idle time of existing associations is counted from now on.
    let (key, now) = (target.key, target.now);
    for entry in target.state.associations.values_mut().filter(|entry| entry.owner == key) {
        entry.last_used = now;
    }
    Ok(())
}

pub(super) fn max_segment(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    // The older interface has an `int`.
    if value.len() < 8 {
        return Ok(int(target.socket()?.settings.max_segment));
    }
    let id = target.asked(value)?;
    let size = target.settings(id)?.max_segment;
    Ok(Filled::new(8).i32(0, target.number(id)).u32(4, size).bytes())
}

/// Bounds the user data of a chunk through the size of packets: the core fills a packet with one chunk if there is enough data.
pub(super) fn set_max_segment(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, size) =
        if value.len() < 8 { (0, value.u32_at(0)?) } else { (value.i32_at(0)?, value.u32_at(4)?) };
    let bounded = |size: u32| size as usize + PACKET_OVERHEAD;
    for id in target.scope(number)?.each() {
        let (config, settings) = (target.config(id)?, target.settings(id)?);
        let (mtu, discovers) = (config.mtu.0, config.mtu_discovery);
        let holds = mtu == bounded(settings.max_segment);
        let before = settings.unbounded.filter(|_| holds).map(|(before, did)| (before, did || discovers));
        let sizes = match (size, before) {
            (0, Some((before, true))) => vec![PacketSize::Fixed(before), PacketSize::Discovered],
            (0, Some((before, false))) => vec![PacketSize::Fixed(before)],
            (0, None) => Vec::new(),
            _ => vec![PacketSize::Fixed(bounded(size))],
        };
        for packet in sizes {
            let adjustment = Adjustment::default().with(|a| a.paths.packet_size = Some(packet));
            target.adjust(target.number(id), &adjustment)?;
        }
        let settings = target.settings(id)?;
        settings.max_segment = size;
        settings.unbounded = (size != 0).then(|| before.unwrap_or((mtu, discovers)));
    }
    Ok(())
}

/// `struct sctp_sack_info`, or the older `struct sctp_assoc_value`, which has the delay alone.
pub(super) fn delayed_sack(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let config = target.config(id)?;
    // SACKs without delay are reported as delay 0 and frequency 1 (RFC 6458 §8.1.19).
    let (delay, frequency) =
        if config.sack_frequency == 1 { (0, 1) } else { (millis(config.sack_delay), config.sack_frequency) };
    let filled = Filled::new(12).i32(0, target.number(id)).u32(4, delay).u32(8, frequency).bytes();
    Ok(if value.len() < 12 { filled[..8].to_vec() } else { filled })
}

pub(super) fn set_delayed_sack(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let delay = value.u32_at(4)?;
    // In the older structure a delay of 0 turns delays off.
    let frequency = if value.len() < 12 { u32::from(delay == 0) } else { value.u32_at(8)? };
    if delay > 500 {
        return Err(Errno::INVAL);
    }
    let adjustment = Adjustment::default().with(|a| {
        a.sack_delay = some_millis(delay);
        a.sack_frequency = (frequency != 0).then_some(frequency);
    });
    let number = value.i32_at(0)?;
    if frequency == 1 {
        for id in target.scope(number)?.each() {
            let frequency = target.config(id)?.sack_frequency;
            target.settings(id)?.pause_delayed_sacks(frequency);
        }
    }
    target.adjust(number, &adjustment)
}

pub(super) fn max_burst(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    if value.len() < 8 {
        return Ok(int(target.socket()?.config.max_burst));
    }
    let id = target.asked(value)?;
    let burst = target.config(id)?.max_burst;
    Ok(Filled::new(8).i32(0, target.number(id)).u32(4, burst).bytes())
}

pub(super) fn set_max_burst(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, burst) =
        if value.len() < 8 { (0, value.u32_at(0)?) } else { (value.i32_at(0)?, value.u32_at(4)?) };
    target.adjust(number, &Adjustment::default().with(|a| a.max_burst = Some(burst)))
}
