//! How much may be sent: congestion controllers over all windows of an association.
//!
//! A controller sees windows and what a SACK said about each path, in bytes of user data, and
//! answers by changing the windows. One controller serves all paths, so that coupled algorithms
//! (LIA, OLIA, BALIA, CMT/RP) are files like any other. Refuses to know chunks, timers and packets.

mod balia;
mod cmt_rp_v1;
mod cmt_rp_v2;
mod cubic;
mod group;
mod initial;
mod lia;
mod olia;
mod pooled;
mod recovery;
mod rfc9260;
mod steps;
mod window;

pub(crate) use window::{PathAck, Window};

use crate::config::{AssociationConfig, ConfigError};
use crate::path_id::PathId;
use crate::time::Instant;

use balia::Balia;
use cubic::Cubic;
use lia::Lia;
use olia::Olia;
use rfc9260::Rfc9260;

/// Decides over the windows of one association. `windows[p]` is the window of path `p`.
pub(crate) trait CongestionControl: Send {
    /// A path was added, perhaps in the place of one that is gone. Its window stands at the initial values of
    /// RFC 9260 §7.2.1; an algorithm that shares one initial window among all paths changes that here.
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        let _ = (windows, path);
    }

    /// A SACK was processed; called once per SACK, with at most one entry for each path.
    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]);

    /// T3 expired on `path` (RFC 9260 §6.3.3 E1).
    fn on_timeout(&mut self, now: Instant, windows: &mut [Window], path: PathId);

    /// Another retransmission timeout has passed without data sent on `path` (RFC 9260 §7.2.1).
    /// Called until it leaves the window as it is.
    fn on_idle(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        let _ = now;
        if let Some(window) = windows.get_mut(path.index()) {
            window.decay();
        }
    }
}

/// The names that [`build`] knows.
pub(crate) const NAMES: &[&str] = &["rfc9260", "cubic", "cmt_rp_v1", "cmt_rp_v2", "lia", "olia", "balia"];

/// The controller that the switch `congestion_control` names.
///
/// # Errors
/// An unknown name; the error lists the known ones.
pub(crate) fn build(config: &AssociationConfig) -> Result<Box<dyn CongestionControl>, ConfigError> {
    match config.congestion_control.as_str() {
        "rfc9260" => Ok(Box::new(Rfc9260)),
        "cubic" => Ok(Box::new(Cubic::default())),
        "cmt_rp_v1" => Ok(Box::new(cmt_rp_v1::controller())),
        "cmt_rp_v2" => Ok(Box::new(cmt_rp_v2::controller())),
        "lia" => Ok(Box::new(Lia)),
        "olia" => Ok(Box::new(Olia::default())),
        "balia" => Ok(Box::new(Balia)),
        unknown => Err(ConfigError::BadValue {
            name: "congestion_control".to_owned(),
            value: unknown.to_owned(),
            accepted: format!("one of {}", NAMES.join(", ")),
        }),
    }
}

#[cfg(test)]
mod tests;
