//! Defaults of sending and receiving, and subscriptions to notifications (RFC 6458 §6.2, §8.1).

use rustix::io::Errno;
use tresse_proto::AssociationId;
use tresse_proto::config::Size;

use super::{Target, int, on};
use crate::layout::{Fields, Filled};
use crate::message_info::KNOWN;
use crate::notify;
use crate::settings::{PR_MASK, Style, init_message, older_policy, policy_of, reliability};

/// Declares options that are on or off and concern the socket alone.
macro_rules! switches {
    ($($get:ident, $set:ident: $field:ident;)+) => {$(
        pub(super) fn $get(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
            Ok(int(u32::from(target.socket()?.options.$field)))
        }

        pub(super) fn $set(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
            target.socket()?.options.$field = on(value)?;
            Ok(())
        }
    )+};
}

switches! {
    nodelay, set_nodelay: nodelay;
    whole_only, set_whole_only: whole_only;
    mapped, set_mapped: mapped;
    receive_info, set_receive_info: receive_info;
    next_info, set_next_info: next_info;
    explicit, set_explicit: explicit_eor;
}

pub(super) fn init(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    let socket = target.socket()?;
    let attempts = u16::try_from(socket.config.max_init_retransmits).unwrap_or(u16::MAX);
    Ok(Filled::new(8)
        .u16(0, socket.config.outbound_streams)
        .u16(2, socket.config.inbound_streams)
        .u16(4, attempts)
        .u16(6, socket.options.init_timeout)
        .bytes())
}

pub(super) fn set_init(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let socket = target.socket()?;
    let timeout = init_message(&mut socket.config, value)?;
    if timeout != 0 {
        socket.options.init_timeout = timeout;
    }
    // The settings also apply to associations that peers set up.
    target.configure(|_| {})
}

pub(super) fn adaptation(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    Ok(int(target.socket()?.config.adaptation.unwrap_or(0)))
}

pub(super) fn set_adaptation(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let code = value.u32_at(0)?;
    target.configure(|config| config.adaptation = Some(code))
}

pub(super) fn reuse_port(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    Ok(int(u32::from(target.socket()?.options.reuse_port)))
}

/// Only for one-to-one sockets, and before `bind` (RFC 6458 §8.1.27).
pub(super) fn set_reuse_port(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    if target.call.socket().style == Style::OneToMany {
        return Err(Errno::OPNOTSUPP);
    }
    if target.state.place.is_some() {
        return Err(Errno::INVAL);
    }
    target.socket()?.options.reuse_port = on(value)?;
    Ok(())
}

pub(super) fn interleave(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    Ok(int(target.socket()?.options.interleave))
}

/// Level 2 requires SCTP_RECVRCVINFO or the older event: without them a program could not tell messages apart (RFC 6458 §8.1.20).
pub(super) fn set_interleave(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let level = value.u32_at(0)?;
    let socket = target.socket()?;
    let tells = socket.options.receive_info || socket.settings.wants(notify::DATA_IO);
    if level > 2 || (level == 2 && !tells) {
        return Err(Errno::INVAL);
    }
    socket.options.interleave = level;
    Ok(())
}

pub(super) fn partial(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    Ok(int(target.socket()?.options.partial_point))
}

pub(super) fn set_partial(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let point = value.u32_at(0)?;
    if point as usize > target.socket()?.config.receive_buffer.0 {
        return Err(Errno::INVAL);
    }
    target.configure(|config| config.partial_delivery_point = Size(point as usize))?;
    target.socket()?.options.partial_point = point;
    Ok(())
}

/// `struct sctp_assoc_value`.
pub(super) fn context(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let context = target.settings(id)?.receive_context;
    Ok(Filled::new(8).i32(0, target.number(id)).u32(4, context).bytes())
}

pub(super) fn set_context(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let context = value.u32_at(4)?;
    target.change(value.i32_at(0)?, |settings| settings.receive_context = context)
}

/// `struct sctp_sndrcvinfo`.
pub(super) fn default_old(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(&value.array::<4>(28)?)?;
    let send = target.settings(id)?.send.clone();
    let (policy, lifetime) = policy_of(send.reliability);
    Ok(Filled::new(32)
        .u16(0, send.stream)
        .u16(4, send.flags | policy)
        .u32(8, send.ppid)
        .u32(12, send.context)
        .u32(16, lifetime)
        .i32(28, target.number(id))
        .bytes())
}

pub(super) fn set_default_old(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (stream, flags, ppid) = (value.u16_at(0)?, value.u16_at(4)?, value.u32_at(8)?);
    let (context, lifetime, number) = (value.u32_at(12)?, value.u32_at(16)?, value.i32_at(28)?);
    check_flags(flags)?;
    let policy = reliability(older_policy(flags, lifetime), lifetime)?;
    target.change(number, |settings| {
        let send = &mut settings.send;
        (send.stream, send.flags, send.ppid, send.context) = (stream, flags & !PR_MASK, ppid, context);
        send.reliability = policy;
    })
}

fn check_flags(flags: u16) -> Result<(), Errno> {
    if flags & !KNOWN == 0 { Ok(()) } else { Err(Errno::INVAL) }
}

/// `struct sctp_sndinfo`.
pub(super) fn default_new(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(&value.array::<4>(12)?)?;
    let send = target.settings(id)?.send.clone();
    Ok(Filled::new(16)
        .u16(0, send.stream)
        .u16(2, send.flags)
        .u32(4, send.ppid)
        .u32(8, send.context)
        .i32(12, target.number(id))
        .bytes())
}

pub(super) fn set_default_new(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (stream, flags, ppid) = (value.u16_at(0)?, value.u16_at(2)?, value.u32_at(4)?);
    let (context, number) = (value.u32_at(8)?, value.i32_at(12)?);
    check_flags(flags)?;
    target.change(number, |settings| {
        let send = &mut settings.send;
        (send.stream, send.flags, send.ppid, send.context) = (stream, flags, ppid, context);
    })
}

/// `struct sctp_event_subscribe`: a byte for each kind, in the order of the kinds except for the last ones.
const SUBSCRIPTIONS: [u16; 14] = [
    notify::DATA_IO,
    notify::ASSOC_CHANGE,
    notify::PEER_ADDR_CHANGE,
    notify::SEND_FAILED,
    notify::REMOTE_ERROR,
    notify::SHUTDOWN_EVENT,
    notify::PARTIAL_DELIVERY,
    notify::ADAPTATION,
    notify::AUTHENTICATION,
    notify::SENDER_DRY,
    notify::STREAM_RESET,
    notify::ASSOC_RESET,
    notify::STREAM_CHANGE,
    notify::SEND_FAILED_EVENT,
];

pub(super) fn events(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    let settings = &target.socket()?.settings;
    Ok(SUBSCRIPTIONS.iter().map(|&kind| u8::from(settings.wants(kind))).collect())
}

/// Applies to the socket and all its associations (RFC 6458 §6.2.1). A program compiled for an older structure passes fewer bytes.
pub(super) fn set_events(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    if value.is_empty() || value.len() > SUBSCRIPTIONS.len() {
        return Err(Errno::INVAL);
    }
    let change = |settings: &mut crate::settings::Settings| {
        for (&kind, &wanted) in SUBSCRIPTIONS.iter().zip(value) {
            settings.want(kind, wanted != 0);
        }
    };
    change(&mut target.socket()?.settings);
    let ids = target.scope(super::CURRENT)?.ids;
    for &id in &ids {
        change(target.settings(Some(id))?);
    }
    if SUBSCRIPTIONS.iter().zip(value).any(|(&kind, &wanted)| kind == notify::SENDER_DRY && wanted != 0) {
        notify_dry_again(target, &ids);
    }
    Ok(())
}

fn kind_of(value: &[u8]) -> Result<u16, Errno> {
    let kind = value.u16_at(4)?;
    if notify::KINDS.contains(&kind) || kind == notify::STREAM_LOW { Ok(kind) } else { Err(Errno::INVAL) }
}

/// `struct sctp_event`.
pub(super) fn event(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let (id, kind) = (target.asked(value)?, kind_of(value)?);
    let wanted = target.settings(id)?.wants(kind);
    Ok(Filled::new(8).i32(0, target.number(id)).u16(4, kind).u8(6, u8::from(wanted)).bytes())
}

pub(super) fn set_event(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, kind, wanted) = (value.i32_at(0)?, kind_of(value)?, value.u8_at(6)? != 0);
    target.change(number, |settings| settings.want(kind, wanted))?;
    if wanted && kind == notify::SENDER_DRY {
        let ids = target.scope(number)?.ids;
        notify_dry_again(target, &ids);
    }
    Ok(())
}

/// Queues SCTP_SENDER_DRY_EVENT again for associations that have nothing to send, at each subscription, as in Linux (RFC 6458
/// §6.1.9).
fn notify_dry_again(target: &mut Target<'_>, ids: &[AssociationId]) {
    target.state.tells_dry = true;
    for id in ids {
        if let Some(entry) = target.state.associations.get_mut(id) {
            entry.is_dry = false;
        }
    }
}
