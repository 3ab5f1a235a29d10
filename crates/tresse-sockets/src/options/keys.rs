//! Options about authentication (RFC 6458 §8.1.21 and later, §8.3).

use rustix::io::Errno;
use tresse_proto::config::{AuthHash, SwitchValue};
use tresse_proto::{AssociationConfig, EndpointConfig, KeyError};

use super::Target;
use super::addresses::offers;
use crate::key_change::KeyChange;
use crate::layout::{Fields, Filled};
use crate::notify;
use crate::shared::endpoint;

offers! {
    supported, set_supported: authentication;
}

fn error_of(error: &KeyError) -> Errno {
    match error {
        KeyError::NotAgreed => Errno::ACCESS,
        _ => Errno::INVAL,
    }
}

/// `struct sctp_authchunk`: adds a type of chunk that has to be authenticated.
pub(super) fn set_chunk(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let kind = tresse_wire::ChunkKind(value.u8_at(0)?);
    if !target.socket()?.config.authentication {
        return Err(Errno::ACCESS);
    }
    let name = kind.name().ok_or(Errno::INVAL)?.to_lowercase().replace([' ', '-'], "_");
    let listed = target.socket()?.config.authenticated_chunks.print();
    let all = if listed == "none" { name } else { format!("{listed},{name}") };
    // The core refuses types that cannot be authenticated.
    target.configure_text("authenticated_chunks", &all)
}

const SHA1: u16 = 1;
const SHA256: u16 = 3;

/// `struct sctp_hmacalgo`: both hashes, the preferred one first; SHA-1 alone if the program chose it.
pub(super) fn hash(target: &mut Target<'_>, _value: &[u8]) -> Result<Vec<u8>, Errno> {
    let hashes: &[u16] = match target.socket()?.config.authentication_hash {
        AuthHash::Sha256 => &[SHA256, SHA1],
        AuthHash::Sha1 => &[SHA1],
    };
    let list: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_ne_bytes()).collect();
    Ok(Filled::new(4).size(0, hashes.len()).tail(&list).bytes())
}

pub(super) fn set_hash(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let count = value.u32_at(0)? as usize;
    let hashes: Vec<u16> = (0..count.min(8)).map(|at| value.u16_at(4 + 2 * at)).collect::<Result<_, _>>()?;
    // SHA-1 has to be in the list (RFC 4895 §6.1).
    if count != hashes.len()
        || !hashes.contains(&SHA1)
        || hashes.iter().any(|&hash| hash != SHA1 && hash != SHA256)
    {
        return Err(Errno::INVAL);
    }
    let hash = if hashes[0] == SHA256 { AuthHash::Sha256 } else { AuthHash::Sha1 };
    target.configure(|config| config.authentication_hash = hash)
}

/// Changes the keys for future associations and for existing ones. A socket that is not bound has no endpoint yet: it keeps the
/// change for the endpoint to come, if the change is valid.
fn change(target: &mut Target<'_>, number: i32, change: &KeyChange) -> Result<(), Errno> {
    let scope = target.scope(number)?;
    if scope.future {
        if !target.socket()?.config.authentication {
            return Err(Errno::ACCESS);
        }
        if let Some(core) = &mut target.state.endpoint {
            change.of_endpoint(core).map_err(|error| error_of(&error))?;
        } else {
            let socket = target.socket()?;
            let mut trial = endpoint(EndpointConfig::default(), AssociationConfig::default())?;
            for one in socket.keys.iter().chain([change]) {
                one.of_endpoint(&mut trial).map_err(|error| error_of(&error))?;
            }
            change.join(&mut socket.keys);
        }
    }
    for id in scope.ids {
        change.of_association(&mut target.association(id)?).map_err(|error| error_of(&error))?;
    }
    Ok(())
}

/// `struct sctp_authkey`.
pub(super) fn set_key(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, key, length) = (value.i32_at(0)?, value.u16_at(4)?, value.u16_at(6)?);
    let secret = value.get(8..8 + usize::from(length)).ok_or(Errno::INVAL)?;
    change(target, number, &KeyChange::Set(key, secret.to_vec()))
}

/// `struct sctp_authkeyid`.
pub(super) fn active(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let key = target.settings(id)?.active_key;
    Ok(Filled::new(8).i32(0, target.number(id)).u16(4, key).bytes())
}

pub(super) fn set_active(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, key) = (value.i32_at(0)?, value.u16_at(4)?);
    change(target, number, &KeyChange::Use(key))?;
    target.change(number, |settings| settings.active_key = key)
}

pub(super) fn delete(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, key) = (value.i32_at(0)?, value.u16_at(4)?);
    change(target, number, &KeyChange::Remove(key))
}

/// Succeeds for any key but the active one: no chunk waits that needs it, so its notification is due at once (RFC 6458 §8.3.4).
pub(super) fn deactivate(target: &mut Target<'_>, value: &[u8]) -> Result<(), Errno> {
    let (number, key) = (value.i32_at(0)?, value.u16_at(4)?);
    change(target, number, &KeyChange::Deactivate(key))?;
    for id in target.scope(number)?.ids {
        target
            .state
            .notify(id, notify::AUTHENTICATION, |number| notify::authentication(number, key, FREE_KEY));
    }
    Ok(())
}

const FREE_KEY: u32 = 1;

/// `struct sctp_authchunks`: the types that the peer requires to be authenticated.
pub(super) fn peer_chunks(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.one(value)?;
    let association = target.association(id)?;
    if !association.agreed_chunks().contains(&tresse_wire::ChunkKind::AUTH) {
        return Err(Errno::ACCESS);
    }
    let chunks: Vec<u8> = association.authenticated_for_peer().iter().map(|kind| kind.0).collect();
    Ok(Filled::new(8).i32(0, target.number(Some(id))).size(4, chunks.len()).tail(&chunks).bytes())
}

/// `struct sctp_authchunks`: the types that were set, and those of ASCONF (RFC 5061 §4.1.1).
pub(super) fn local_chunks(target: &mut Target<'_>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    let id = target.asked(value)?;
    let config = target.config(id)?;
    if !config.authentication {
        return Err(Errno::ACCESS);
    }
    let mut chunks: Vec<u8> = config.authenticated_chunks.0.iter().map(|kind| kind.0).collect();
    if config.dynamic_addresses {
        chunks.extend(
            [ASCONF, ASCONF_ACK].iter().filter(|kind| !chunks.contains(kind)).copied().collect::<Vec<u8>>(),
        );
    }
    Ok(Filled::new(8).i32(0, target.number(id)).size(4, chunks.len()).tail(&chunks).bytes())
}

const ASCONF: u8 = 0xc1;
const ASCONF_ACK: u8 = 0x80;
