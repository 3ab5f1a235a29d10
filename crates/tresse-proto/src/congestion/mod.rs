//! How much may be sent: congestion controllers over all windows of an association.
//!
//! A controller sees windows and what a SACK said about each path, in bytes of user data, and
//! answers by changing the windows. One controller serves all paths, so that coupled algorithms
//! (LIA, OLIA, BALIA, CMT/RP) are files like any other. Refuses to know chunks, timers and packets.

mod recovery;
mod rfc9260;
mod window;

pub(crate) use window::{PathAck, Window};

use crate::config::{AssociationConfig, ConfigError};
use crate::path_id::PathId;
use crate::time::Instant;

use rfc9260::Rfc9260;

/// Decides over the windows of one association. `windows[p]` is the window of path `p`.
pub(crate) trait CongestionControl: Send {
    /// A path was added. Its window stands at the initial values of RFC 9260 §7.2.1; an algorithm
    /// that shares one initial window among all paths changes that here.
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        let _ = (windows, path);
    }

    /// A SACK was processed; called once per SACK, with at most one entry for each path.
    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]);

    /// T3 expired on `path` (RFC 9260 §6.3.3 E1).
    fn on_timeout(&mut self, now: Instant, windows: &mut [Window], path: PathId);

    /// Another retransmission timeout has passed without data sent on `path` (RFC 9260 §7.2.1).
    /// Called until it leaves the window as it is.
    fn on_idle(&mut self, now: Instant, windows: &mut [Window], path: PathId);
}

/// The names that [`build`] knows.
pub(crate) const NAMES: &[&str] = &["rfc9260"];

/// The controller that the switch `congestion_control` names.
///
/// # Errors
/// An unknown name; the error lists the known ones.
pub(crate) fn build(config: &AssociationConfig) -> Result<Box<dyn CongestionControl>, ConfigError> {
    match config.congestion_control.as_str() {
        "rfc9260" => Ok(Box::new(Rfc9260)),
        unknown => Err(ConfigError::BadValue {
            name: "congestion_control".to_owned(),
            value: unknown.to_owned(),
            accepted: format!("one of {}", NAMES.join(", ")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_builds_a_controller() {
        for &name in NAMES {
            let config =
                AssociationConfig { congestion_control: name.to_owned(), ..AssociationConfig::default() };
            assert!(build(&config).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let config =
            AssociationConfig { congestion_control: "reno".to_owned(), ..AssociationConfig::default() };
        let error = build(&config).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "setting \"congestion_control\": \"reno\" is not one of rfc9260");
    }
}
