//! Lines of the log about paths that fail, and that work again.
//!
//! A path that is only suspected (potentially failed) has no line, because a few losses are enough for that. A path that never worked has
//! none either: behind a NAT the peer names addresses that nobody can reach.

use std::collections::BTreeMap;
use std::convert::Infallible;

use tracing::{info, warn};
use tresse::{Association, Event, PathState};

/// Logs the failures of paths, and their ends; never returns.
pub(super) async fn watch(association: &Association) -> Infallible {
    let mut events = association.events();
    let mut works = BTreeMap::new();
    loop {
        for path in association.path_stats() {
            let (local, remote) = (path.local, path.remote);
            // A later path may have the number of one that was removed.
            let key = (path.id, local, remote);
            match path.state {
                PathState::Active if works.insert(key, true) == Some(false) => {
                    info!(%local, %remote, "path {local} -> {remote} works again");
                }
                PathState::Inactive if works.get(&key) == Some(&true) => {
                    works.insert(key, false);
                    warn!(%local, %remote, "path {local} -> {remote} has failed");
                }
                _ => {}
            }
        }
        loop {
            match events.next().await {
                // If events were missed, the present states show what they said.
                Some(Ok(Event::PathChanged { .. }) | Err(_)) => break,
                Some(Ok(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }
}
