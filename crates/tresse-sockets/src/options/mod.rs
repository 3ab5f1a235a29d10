//! Options of sockets and associations: `setsockopt`, `getsockopt` and `sctp_opt_info`, by the numbers and structures of Linux.
//!
//! An option about associations changes one of them, all existing ones, future ones, or both (RFC 6458 §7): the association ID in
//! its structure selects them. Future associations get the settings of the socket.

mod addresses;
mod keys;
mod legacy;
mod limits;
mod numbers;
mod own;
mod queries;
mod sending;
mod sockets;
mod streams;

use std::sync::MutexGuard;

use rustix::io::Errno;
use tresse_proto::{AssociationConfig, AssociationHandle, AssociationId, Instant};

use crate::call::Call;
use crate::engine::State;
use crate::layout::Fields;
use crate::names::{ALL, CURRENT, FUTURE};
use crate::parent;
use crate::settings::{Settings, Style};
use crate::socket::SocketState;

pub use numbers::{OPTIONS as ALL_OPTIONS, SocketOption};
pub(crate) use own::is_short_name;

/// `setsockopt(2)`. An option that creates a descriptor or an association returns the descriptor or the association ID.
///
/// # Errors
/// Those of that call and of RFC 6458 §8.
pub fn set(fd: i32, level: i32, name: i32, value: &[u8]) -> Result<i32, Errno> {
    if level == libc::IPPROTO_SCTP
        && let Some(made) = legacy::set(fd, name, value)
    {
        return made;
    }
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.set_option(fd, level, name, value);
    }
    let call = Call::on(fd)?;
    match level {
        libc::SOL_SOCKET => {
            let set = sockets::set(&call, name, value);
            call.leave();
            set
        }
        libc::IPPROTO_SCTP => {
            let mut target = Target::new(&call);
            let set = set_sctp(&mut target, name, value);
            target.state.refresh();
            drop(target);
            call.leave();
            set
        }
        libc::IPPROTO_IPV6 if name == libc::IPV6_V6ONLY => sockets::set_six_only(&call, value),
        _ => Err(Errno::NOPROTOOPT),
    }
    .map(|()| 0)
}

/// `getsockopt(2)`; `value` is the program's input in the buffer, for instance an association ID.
///
/// # Errors
/// Those of that call and of RFC 6458 §8.
pub fn get(fd: i32, level: i32, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
    if level == libc::IPPROTO_SCTP
        && let Some(got) = legacy::get(fd, name, value)
    {
        return got;
    }
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.option(fd, level, name, value);
    }
    let call = Call::on(fd)?;
    match level {
        libc::SOL_SOCKET => sockets::get(&call, name, value),
        libc::IPPROTO_SCTP => get_sctp(&mut Target::new(&call), name, value),
        libc::IPPROTO_IPV6 if name == libc::IPV6_V6ONLY => sockets::six_only(&call),
        _ => Err(Errno::NOPROTOOPT),
    }
}

/// Reads an option as [`get`] does, with `room` as input and output; returns the number of bytes written.
///
/// # Errors
/// As for [`get`]; EINVAL if the structure of an SCTP option does not fit, as in Linux. The value of an option of SOL_SOCKET is
/// truncated.
pub(crate) fn get_into(fd: i32, level: i32, name: i32, room: &mut [u8]) -> Result<usize, Errno> {
    let bytes = get(fd, level, name, room)?;
    let fits = bytes.len().min(room.len());
    let may_be_cut = level != libc::IPPROTO_SCTP || numbers::find(name).is_some_and(|known| known.grew);
    if fits < bytes.len() && !may_be_cut {
        return Err(Errno::INVAL);
    }
    room[..fits].copy_from_slice(&bytes[..fits]);
    Ok(fits)
}

fn set_sctp(target: &mut Target<'_>, name: i32, value: &[u8]) -> Result<(), Errno> {
    let known = numbers::find(name).ok_or(Errno::NOPROTOOPT)?;
    let set = known.set.ok_or(Errno::NOPROTOOPT)?;
    set(target, value)
}

fn get_sctp(target: &mut Target<'_>, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let known = numbers::find(name).ok_or(Errno::NOPROTOOPT)?;
    let get = known.get.ok_or(Errno::NOPROTOOPT)?;
    get(target, value)
}

/// Returns the offset of the association ID in the structure of an option, for `sctp_opt_info`; `None` if it has none.
pub(crate) fn association_offset(option: i32) -> Option<usize> {
    numbers::find(option).and_then(|known| known.association_at)
}

/// The socket of a call on options, with its engine locked.
pub(crate) struct Target<'a> {
    pub(crate) call: &'a Call,
    pub(crate) key: u64,
    pub(crate) now: Instant,
    pub(crate) state: MutexGuard<'a, State>,
}

/// The associations that an option is to change.
pub(crate) struct Scope {
    /// True if future associations are among them.
    pub(crate) future: bool,
    pub(crate) ids: Vec<AssociationId>,
}

impl Scope {
    /// Returns each of them; `None` stands for future associations.
    pub(crate) fn each(self) -> impl Iterator<Item = Option<AssociationId>> {
        self.future.then_some(None).into_iter().chain(self.ids.into_iter().map(Some))
    }
}

impl<'a> Target<'a> {
    fn new(call: &'a Call) -> Self {
        Target { call, key: call.key(), now: call.stack.now(), state: call.lock() }
    }

    pub(crate) fn socket(&mut self) -> Result<&mut SocketState, Errno> {
        self.state.socket(self.key)
    }

    /// Returns the associations that the ID `number` selects for an option that is set.
    ///
    /// # Errors
    /// `INVAL` for an unknown association ID.
    pub(crate) fn scope(&mut self, number: i32) -> Result<Scope, Errno> {
        if self.call.socket().style == Style::OneToOne {
            let id = self.socket()?.association;
            return Ok(Scope { future: id.is_none(), ids: id.into_iter().collect() });
        }
        let key = self.key;
        let present = |state: &State| {
            let own = state.associations.iter().filter(|(_, entry)| entry.owner == key && !entry.is_over());
            own.map(|(&id, _)| id).collect()
        };
        match number {
            FUTURE => Ok(Scope { future: true, ids: Vec::new() }),
            CURRENT => Ok(Scope { future: false, ids: present(&self.state) }),
            ALL => Ok(Scope { future: true, ids: present(&self.state) }),
            _ => {
                let id = self.state.by_number(self.key, number).ok_or(Errno::INVAL)?;
                Ok(Scope { future: false, ids: vec![id] })
            }
        }
    }

    /// Returns the association for which an option is read; `None` for future ones.
    ///
    /// # Errors
    /// `INVAL` for an unknown association ID; also for CURRENT and ALL, which select no single value.
    pub(crate) fn asked(&mut self, value: &[u8]) -> Result<Option<AssociationId>, Errno> {
        let number = value.i32_at(0)?;
        if self.call.socket().style == Style::OneToMany && matches!(number, CURRENT | ALL) {
            return Err(Errno::INVAL);
        }
        self.state.named(self.key, number)
    }

    /// Returns the association of an option that needs one.
    ///
    /// # Errors
    /// `INVAL` if there is none.
    pub(crate) fn one(&mut self, value: &[u8]) -> Result<AssociationId, Errno> {
        self.asked(value)?.ok_or(Errno::INVAL)
    }

    /// Returns the core's handle of an association.
    ///
    /// # Errors
    /// `NOTCONN` if the association has been released.
    pub(crate) fn association(&mut self, id: AssociationId) -> Result<AssociationHandle<'_>, Errno> {
        self.state.endpoint.as_mut().and_then(|core| core.association(id)).ok_or(Errno::NOTCONN)
    }

    /// Returns the ID of an association; 0 for none.
    pub(crate) fn number(&self, id: Option<AssociationId>) -> i32 {
        id.and_then(|id| self.state.associations.get(&id)).map_or(0, |entry| entry.number)
    }

    /// Returns the settings of an association, or of the socket for future ones.
    pub(crate) fn settings(&mut self, id: Option<AssociationId>) -> Result<&mut Settings, Errno> {
        match id {
            Some(id) => {
                self.state.associations.get_mut(&id).map(|entry| &mut entry.settings).ok_or(Errno::INVAL)
            }
            None => self.socket().map(|socket| &mut socket.settings),
        }
    }

    /// Changes the settings of all associations that the ID `number` selects.
    pub(crate) fn change(&mut self, number: i32, change: impl Fn(&mut Settings)) -> Result<(), Errno> {
        let scope = self.scope(number)?;
        if scope.future {
            change(&mut self.socket()?.settings);
        }
        for id in scope.ids {
            change(self.settings(Some(id))?);
        }
        Ok(())
    }

    /// Returns the core's settings of an association, or of future ones.
    pub(crate) fn config(&mut self, id: Option<AssociationId>) -> Result<AssociationConfig, Errno> {
        match id {
            Some(id) => self.association(id).map(|association| association.config().clone()),
            None => self.socket().map(|socket| socket.config.clone()),
        }
    }

    /// Changes the core's settings for future associations.
    ///
    /// # Errors
    /// `INVAL` for settings that contradict each other; then nothing is changed.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut AssociationConfig)) -> Result<(), Errno> {
        let mut config = self.socket()?.config.clone();
        change(&mut config);
        config.check().map_err(|_| Errno::INVAL)?;
        if let Some(endpoint) = &mut self.state.endpoint {
            endpoint.set_template(config.clone()).map_err(|_| Errno::INVAL)?;
        }
        self.socket()?.config = config;
        Ok(())
    }
}

/// Reads an `int` that means on or off.
pub(crate) fn on(value: &[u8]) -> Result<bool, Errno> {
    value.i32_at(0).map(|value| value != 0)
}

/// Returns an `int` as the bytes of an option.
pub(crate) fn int(value: u32) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}
