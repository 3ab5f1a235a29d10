//! Options that tresse adds: the scheduler interface of the paper on pluggable multi-stream scheduling (its figure 6), the bytes
//! queued on each stream, and the policies of concurrent multipath transfer by their names.

use rustix::io::Errno;
use tresse_proto::StreamId;
use tresse_proto::config::{StreamMap, SwitchValue};

use super::Target;
use crate::layout::{Fields, Filled};

/// SCTP_SCHED_NAME_MAX of `tresse_sctp.h`.
const SCHEDULER_NAME: usize = 32;
const SETTING_NAME: usize = 64;
const SETTING_VALUE: usize = 188;

/// Returns the text before the first zero byte.
fn text(bytes: &[u8]) -> Result<&str, Errno> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).map_err(|_| Errno::INVAL)
}

/// Short names of the paper's schedulers, and tresse's names.
const SHORT_NAMES: [(&str, &str); 6] = [
    ("fcfs", "first_come"),
    ("prio", "priority"),
    ("wfq", "weighted_fair"),
    ("rr", "round_robin"),
    ("rr_pkt", "round_robin_packet"),
    ("fb", "fair_bandwidth"),
];

/// Returns whether SCTP_SCHED takes this name for a built-in scheduler.
pub(crate) fn is_short_name(name: &str) -> bool {
    SHORT_NAMES.iter().any(|(short, _)| *short == name)
}

/// `struct sctp_sched`: the name, the length of the configuration, and the configuration.
pub(super) fn scheduler(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.state.named(target.key, 0)?;
    let name = target.scheduler_of(id)?;
    let short = SHORT_NAMES.iter().find(|(_, long)| *long == name).map_or(name.as_str(), |(short, _)| short);
    let config = target.settings(id)?.scheduler_config.clone();
    let bytes = short.as_bytes();
    if bytes.len() >= SCHEDULER_NAME || value.len() < SCHEDULER_NAME + 2 {
        return Err(Errno::INVAL);
    }
    // `get_into` truncates the configuration to the room that there is; the length is that of all of it.
    let length = u16::try_from(config.len()).unwrap_or(u16::MAX);
    Ok(Filled::new(SCHEDULER_NAME + 2).put(0, bytes).u16(SCHEDULER_NAME, length).tail(&config).bytes())
}

/// Chooses the scheduler for future associations, or on a one-to-one socket for its association. The configuration has a value for
/// each stream from 0 on; values of streams that are not negotiated have no effect. A registered scheduler gets the bytes as
/// hexadecimal text.
pub(super) fn set_scheduler(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let name = text(value.get(..SCHEDULER_NAME).ok_or(Errno::INVAL)?)?;
    let name = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long).to_owned();
    let length = usize::from(value.u16_at(SCHEDULER_NAME)?);
    let config = value.get(SCHEDULER_NAME + 2..).and_then(|rest| rest.get(..length)).ok_or(Errno::INVAL)?;
    let words = match name.as_str() {
        "priority" | "weighted_fair" => {
            if !length.is_multiple_of(2) {
                return Err(Errno::INVAL);
            }
            let values = config.chunks_exact(2).enumerate();
            let pairs = values
                .map(|(stream, value)| format!("{stream}={}", u16::from_ne_bytes([value[0], value[1]])));
            pairs.collect::<Vec<_>>().join(",")
        }
        "first_come" | "round_robin" | "round_robin_packet" | "fair_bandwidth" if length == 0 => {
            String::new()
        }
        "first_come" | "round_robin" | "round_robin_packet" | "fair_bandwidth" => return Err(Errno::INVAL),
        _ => config.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let number = 0;
    // An invalid configuration fails here, and not at the next set-up.
    crate::shared::registry().build_stream_scheduler(&name, &words).map_err(|_| Errno::INVAL)?;
    target.choose_scheduler(number, &name, &words)?;
    let config = config.to_vec();
    target.change(number, |settings| settings.scheduler_config.clone_from(&config))
}

/// `struct sctp_tresse_stream_queue`: the size of the send buffer, the bytes in it, those of them that are unsent, and the unsent
/// bytes of each stream, as far as there is room.
pub(super) fn stream_queue(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.one(value)?;
    let association = target.association(id)?;
    let (queue, (streams, _)) = (association.send_queue(), association.streams());
    let room = value.len().saturating_sub(20) / 4;
    let each = (0..streams).take(room).map(|stream| association.unsent_on(StreamId(stream)));
    let each: Vec<u8> =
        each.flat_map(|unsent| u32::try_from(unsent).unwrap_or(u32::MAX).to_ne_bytes()).collect();
    Ok(Filled::new(20)
        .i32(0, target.number(Some(id)))
        .size(4, queue.limit)
        .size(8, queue.used)
        .size(12, queue.unsent)
        .u32(16, u32::from(streams))
        .tail(&each)
        .bytes())
}

/// `struct sctp_tresse_low_water`: SCTP_TRESSE_STREAM_LOW is queued when no more than these bytes are unsent on the stream.
pub(super) fn set_low_water(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (id, stream, bytes) = (target.one(value)?, value.u16_at(4)?, value.u32_at(8)?);
    let mark = (bytes != u32::MAX).then_some(bytes as usize);
    target.association(id)?.set_low_water(StreamId(stream), mark).map_err(|_| Errno::INVAL)
}

impl Target<'_> {
    /// Sets a setting of future associations by its name.
    ///
    /// # Errors
    /// `NOENT` for an unknown name, `INVAL` for a value that the setting does not accept.
    pub(super) fn configure_text(&mut self, name: &str, value: &str) -> Result<(), Errno> {
        let mut config = self.socket()?.config.clone();
        config.set(name, value).map_err(|error| match error {
            tresse_proto::ConfigError::UnknownSwitch { .. } => Errno::NOENT,
            _ => Errno::INVAL,
        })?;
        let policies = crate::shared::registry();
        let known = policies
            .build_stream_scheduler(&config.stream_scheduler, &config.stream_scheduler_config)
            .is_ok()
            && policies.build_path_scheduler(&config.path_scheduler, &config.path_scheduler_config).is_ok()
            && policies
                .build_controller(&config.congestion_control, &config.congestion_control_config)
                .is_ok();
        if !known {
            return Err(Errno::INVAL);
        }
        self.configure(|settings| *settings = config)
    }

    fn setting_text(&mut self, id: Option<tresse_proto::AssociationId>, name: &str) -> Result<String, Errno> {
        let values = self.config(id)?.values();
        values.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value).ok_or(Errno::NOENT)
    }

    /// Returns the value of the setting `name`, for an option whose structure is an association ID and a text of 60 bytes.
    fn named_choice(&mut self, value: &[u8], name: &str) -> Result<Vec<u8>, Errno> {
        let id = self.asked(value)?;
        let chosen = self.setting_text(id, name)?;
        let fits = chosen.len().min(CHOICE - 1);
        Ok(Filled::new(4 + CHOICE).i32(0, self.number(id)).put(4, &chosen.as_bytes()[..fits]).bytes())
    }

    fn choose(&mut self, value: &[u8], name: &str) -> Result<(), Errno> {
        if !self.scope(value.i32_at(0)?)?.future {
            return Err(Errno::INVAL);
        }
        let chosen = text(value.get(4..).ok_or(Errno::INVAL)?)?.to_owned();
        self.configure_text(name, &chosen)
    }
}

const CHOICE: usize = 60;

/// `struct sctp_tresse_setting`: a setting of docs/switches.md by its name.
pub(super) fn setting(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let name = text(value.get(4..4 + SETTING_NAME).ok_or(Errno::INVAL)?)?.to_owned();
    let chosen = target.setting_text(id, &name)?;
    let fits = chosen.len().min(SETTING_VALUE - 1);
    Ok(Filled::new(4 + SETTING_NAME + SETTING_VALUE)
        .i32(0, target.number(id))
        .put(4, name.as_bytes())
        .put(4 + SETTING_NAME, &chosen.as_bytes()[..fits])
        .bytes())
}

pub(super) fn set_setting(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    if !target.scope(value.i32_at(0)?)?.future {
        return Err(Errno::INVAL);
    }
    let name = text(value.get(4..4 + SETTING_NAME).ok_or(Errno::INVAL)?)?.to_owned();
    let chosen = text(value.get(4 + SETTING_NAME..).ok_or(Errno::INVAL)?)?.to_owned();
    target.configure_text(&name, &chosen)
}

/// Values of SCTP_CMT_ON_OFF (draft-dreibholz-tsvwg-sctpsocket-multipath), by index: off, plain CMT, and CMT with resource pooling.
const CMT: [(bool, &str); 5] =
    [(false, PLAIN), (true, PLAIN), (true, "cmt_rp_v1"), (true, "cmt_rp_v2"), (true, "olia")];

/// The default controller; it does not pool the resources of all paths.
const PLAIN: &str = "coupled_cubic";

/// `struct sctp_assoc_value`.
pub(super) fn concurrent(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let config = target.config(id)?;
    let mode = match config.congestion_control.as_str() {
        _ if !config.concurrent => 0,
        "cmt_rp_v1" => 2,
        "cmt_rp_v2" => 3,
        "lia" | "olia" | "balia" => 4,
        _ => 1,
    };
    Ok(Filled::new(8).i32(0, target.number(id)).u32(4, mode).bytes())
}

pub(super) fn set_concurrent(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (on, controller) = *CMT.get(value.u32_at(4)? as usize).ok_or(Errno::INVAL)?;
    if !target.scope(value.i32_at(0)?)?.future {
        return Err(Errno::INVAL);
    }
    target.configure(|config| {
        config.concurrent = on;
        // A controller that does not pool all paths stays as it is.
        if controller != PLAIN || CMT.iter().skip(2).any(|(_, coupled)| *coupled == config.congestion_control)
        {
            controller.clone_into(&mut config.congestion_control);
        }
    })
}

/// `struct sctp_tresse_choice`, as for the next two options.
pub(super) fn path_scheduler(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    target.named_choice(value, "path_scheduler")
}

pub(super) fn set_path_scheduler(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    target.choose(value, "path_scheduler")
}

pub(super) fn stream_map(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    target.named_choice(value, "stream_map")
}

/// A stream map can also be changed in an existing association.
pub(super) fn set_stream_map(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let scope = target.scope(value.i32_at(0)?)?;
    let chosen = text(value.get(4..).ok_or(Errno::INVAL)?)?.to_owned();
    let map = StreamMap::parse(&chosen).ok_or(Errno::INVAL)?;
    if scope.future {
        target.configure_text("stream_map", &chosen)?;
    }
    for id in scope.ids {
        target.association(id)?.set_stream_map(map.clone()).map_err(|_| Errno::INVAL)?;
    }
    Ok(())
}

pub(super) fn congestion(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    target.named_choice(value, "congestion_control")
}

pub(super) fn set_congestion(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    target.choose(value, "congestion_control")
}
