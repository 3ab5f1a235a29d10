//! Settings that change while an association runs, and their distribution to the modules that use them.

use tresse_policy::PathId;

use super::{Association, State};
use crate::config::{AssociationConfig, ConfigError};
use crate::context::Context;
use crate::interface::adjustment::{AdjustError, Adjustment, PathAdjustment};
use crate::interface::error::NoSuchPath;
use crate::interface::event::Event;

/// Changes settings of an association.
///
/// # Errors
/// Values that are not usable, or contradict others; nothing is changed then.
pub(crate) fn adjust(association: &mut Association, change: &Adjustment) -> Result<(), ConfigError> {
    let config = association.sender.config.with(|config| change.apply(config));
    config.check()?;
    association.reception.adjust(&config);
    association.sender.transmission.set_send_buffer(config.send_buffer.0);
    if association.sender.outbound.buffer.resize(config.send_buffer.0) {
        association.tell(Event::Writable);
    }
    association.sender.paths.adjust(config.path_rules(), &config, &change.paths);
    association.sender.config = config;
    association.stir();
    Ok(())
}

/// Changes settings of one path.
///
/// # Errors
/// No such path, or values that are not usable; nothing is changed then.
pub(crate) fn adjust_path(
    association: &mut Association,
    path: PathId,
    change: &PathAdjustment,
) -> Result<(), AdjustError> {
    association.sender.joined(path)?;
    let mut config = AssociationConfig::clone(&association.sender.config);
    change.apply(&mut config);
    config.check()?;
    association.change_paths(|all| all.adjust_one(path, change));
    Ok(())
}

/// Sends a heartbeat on a path, due or not (RFC 9260 §8.3, §11.1.8).
///
/// # Errors
/// No such path.
pub(crate) fn request_heartbeat(
    association: &mut Association,
    cx: &mut Context<'_>,
    path: PathId,
) -> Result<(), NoSuchPath> {
    association.sender.joined(path)?;
    // A shutdown sends none (RFC 9260 §8.3), and the answer to one under way is that to this one.
    if association.state == State::Established && !association.sender.paths.get(path).awaits_heartbeat() {
        association.send_heartbeat(cx, path);
        association.stir();
    }
    Ok(())
}
