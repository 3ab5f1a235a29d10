//! Ancillary data of messages (RFC 6458 §5.3): a sequence of headers, each followed by a structure.

use rustix::io::Errno;

use crate::layout::{Fields, Filled, SocketName};
use crate::message_info::{Received, SendInfo};

/// Size of `struct cmsghdr`: length, level and kind.
pub(crate) const HEADER: usize = 16;
/// Alignment of headers, in bytes.
const STEP: usize = 8;

const INIT: i32 = 0;
const SNDRCV: i32 = 1;
const SNDINFO: i32 = 2;
const RCVINFO: i32 = 3;
const NXTINFO: i32 = 4;
const PRINFO: i32 = 5;
const AUTHINFO: i32 = 6;
const DSTADDRV4: i32 = 7;
const DSTADDRV6: i32 = 8;

/// Reads the ancillary data that the program passes with a message. Further addresses of the peer are in `name` of the result, with
/// port 0. As in Linux, SCTP_SNDINFO and SCTP_PRINFO supersede SCTP_SNDRCV in any order.
///
/// # Errors
/// `INVAL` for a truncated or unknown item.
pub(crate) fn read(mut control: &[u8]) -> Result<SendInfo, Errno> {
    let (mut info, mut older) = (SendInfo::default(), SendInfo::default());
    while control.len() >= HEADER {
        let length = usize::from_ne_bytes(control.array(0)?);
        let body = control.get(HEADER..length).ok_or(Errno::INVAL)?;
        let (level, kind) = (control.i32_at(8)?, control.i32_at(12)?);
        if level == libc::IPPROTO_SCTP {
            match kind {
                SNDRCV => older = SendInfo::of_sndrcv(body)?,
                _ => read_one(&mut info, kind, body)?,
            }
        }
        control = control.get(length.next_multiple_of(STEP)..).unwrap_or_default();
    }
    info.number = info.number.or(older.number);
    info.fields = info.fields.or(older.fields);
    info.policy = info.policy.or(older.policy);
    Ok(info)
}

fn read_one(info: &mut SendInfo, kind: i32, body: &[u8]) -> Result<(), Errno> {
    match kind {
        INIT => info.init = body.get(..8).ok_or(Errno::INVAL)?.to_vec(),
        SNDINFO => {
            let one = SendInfo::of_sndinfo(body)?;
            (info.number, info.fields) = (one.number, one.fields);
        }
        PRINFO => info.policy = Some((body.u16_at(0)?, body.u32_at(4)?)),
        // The key number is ignored: data is authenticated with the active key.
        AUTHINFO => {
            body.u16_at(0)?;
        }
        DSTADDRV4 => {
            let name = Filled::new(16).u16(0, libc::AF_INET as u16).put(4, &body.array::<4>(0)?);
            info.name.extend(name.bytes());
        }
        DSTADDRV6 => {
            let name = Filled::new(28).u16(0, libc::AF_INET6 as u16).put(8, &body.array::<16>(0)?);
            info.name.extend(name.bytes());
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(())
}

/// Returns `name`, followed by the further addresses of the ancillary data, which get its port.
///
/// # Errors
/// `INVAL` for further addresses without a name.
pub(crate) fn with_others(name: &[u8], others: &[u8]) -> Result<Vec<u8>, Errno> {
    if others.is_empty() {
        return Ok(name.to_vec());
    }
    let first = SocketName::read(name)?;
    let mut all = first.write(false);
    for other in SocketName::read_all(others)? {
        all.extend(SocketName { port: first.port, ..other }.write(false));
    }
    Ok(all)
}

/// Writes the ancillary data of a received message. Returns the number of bytes written, and whether an item did not fit. As in
/// Linux, such an item is truncated, or left out if its header does not fit.
pub(crate) fn write(received: &Received, room: &mut [u8]) -> (usize, bool) {
    // In the order of Linux: some programs read only the first item.
    let mut items: Vec<_> = received.next.iter().map(|next| (NXTINFO, next.bytes())).collect();
    if let Some(info) = &received.info {
        if received.wants_info {
            items.push((RCVINFO, info.bytes()));
        }
        if received.wants_old_info {
            items.push((SNDRCV, info.older_bytes()));
        }
    }
    let (mut used, mut cut) = (0, false);
    for (kind, body) in items {
        // As in Linux, the last item needs no padding, which only aligns the next header.
        let left = room.len() - used;
        let length = (HEADER + body.len()).min(left);
        cut |= length < HEADER + body.len();
        if left < HEADER {
            break;
        }
        let item = Filled::new(length.next_multiple_of(STEP).min(left))
            .put(0, &length.to_ne_bytes())
            .i32(8, libc::IPPROTO_SCTP)
            .i32(12, kind)
            .put(HEADER, &body[..length - HEADER])
            .bytes();
        room[used..used + item.len()].copy_from_slice(&item);
        used += item.len();
    }
    (used, cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_info::SendFields;
    use crate::message_info::{NextInfo, ReceiveInfo};

    fn item(kind: i32, body: &[u8]) -> Vec<u8> {
        let length = HEADER + body.len();
        Filled::new(length.next_multiple_of(STEP))
            .put(0, &length.to_ne_bytes())
            .i32(8, libc::IPPROTO_SCTP)
            .i32(12, kind)
            .put(HEADER, body)
            .bytes()
    }

    #[test]
    fn what_a_program_gives_is_read_in_any_order() {
        let sndinfo = Filled::new(16).u16(0, 3).u16(2, 1).u32(4, 7).u32(8, 9).i32(12, 5).bytes();
        let prinfo = Filled::new(8).u16(0, 0x10).u32(4, 250).bytes();
        let address = item(DSTADDRV4, &[10, 0, 0, 2]);
        let control = [item(PRINFO, &prinfo), item(SNDINFO, &sndinfo), address].concat();
        let info = read(&control).expect("in order");
        assert_eq!(info.fields, Some(SendFields { stream: 3, flags: 1, ppid: 7, context: 9 }));
        assert_eq!((info.number, info.policy), (Some(5), Some((0x10, 250))));
        let first = SocketName { address: [10, 0, 0, 1].into(), port: 77 };
        let names = with_others(&first.write(false), &info.name).expect("names");
        let names = SocketName::read_all(&names).expect("names");
        assert_eq!(names, [first, SocketName { address: [10, 0, 0, 2].into(), port: 77 }]);
    }

    #[test]
    fn newer_structures_supersede_the_older_one_in_any_order() {
        let older = item(SNDRCV, &Filled::new(32).u16(0, 7).u16(4, 0x10).u32(16, 20).i32(28, 5).bytes());
        let newer = item(SNDINFO, &Filled::new(16).u16(0, 3).bytes());
        let policy = item(PRINFO, &Filled::new(8).u16(0, 0x20).u32(4, 2).bytes());
        let stream = |info: &SendInfo| info.fields.map(|fields| fields.stream);
        for control in [[older.clone(), newer.clone()].concat(), [newer, older.clone()].concat()] {
            let info = read(&control).expect("both");
            assert_eq!((stream(&info), info.number, info.policy), (Some(3), Some(5), Some((0x10, 20))));
        }
        for control in [[older.clone(), policy.clone()].concat(), [policy, older].concat()] {
            let info = read(&control).expect("both");
            assert_eq!((stream(&info), info.policy), (Some(7), Some((0x20, 2))));
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_refused() {
        let short = item(SNDRCV, &[0; 31]);
        for bad in [item(99, &[0; 8]), item(SNDINFO, &[0; 12]), item(INIT, &[0; 7]), short] {
            assert_eq!(read(&bad), Err(Errno::INVAL));
        }
        let mut long = item(PRINFO, &[0; 8]);
        long[0] = 200;
        assert_eq!(read(&long), Err(Errno::INVAL));
        assert_eq!(read(&[1; 7]), Ok(SendInfo::default()), "no header");
    }

    #[test]
    fn what_has_no_room_is_cut_or_left_out_and_told() {
        let received = Received {
            info: Some(ReceiveInfo { stream: 4, ..ReceiveInfo::default() }),
            next: Some(NextInfo { length: 6, ..NextInfo::default() }),
            wants_info: true,
            ..Received::default()
        };
        let mut room = [0; 80];
        assert_eq!(write(&received, &mut room), (80, false));
        assert_eq!((room.i32_at(12), room.u32_at(HEADER + 8)), (Ok(NXTINFO), Ok(6)));
        assert_eq!((room.i32_at(32 + 12), room.u16_at(32 + HEADER)), (Ok(RCVINFO), Ok(4)));
        assert_eq!(write(&received, &mut room[..76]), (76, false), "without the padding of the last");
        assert_eq!(write(&received, &mut room[..75]), (75, true));
        assert_eq!(room[32..].array(0).map(usize::from_ne_bytes), Ok(43), "the part that fits");
        assert_eq!(write(&received, &mut room[..47]), (32, true), "no header");
        assert_eq!(write(&received, &mut []), (0, true));
    }
}
