//! Events of paths while a measurement runs.

use std::cell::RefCell;
use std::convert::Infallible;
use std::time::Instant;

use serde::Serialize;
use tresse::{Association, Event};

/// Change of the state of a path.
#[derive(Clone, Serialize)]
pub(super) struct PathEvent {
    at_s: f64,
    path: usize,
    state: &'static str,
}

impl PathEvent {
    /// Returns the event as a line of text.
    pub(super) fn line(&self) -> String {
        format!("{:>7.1} s  path {}: {}", self.at_s, self.path, self.state.replace('_', " "))
    }
}

/// Passes each event to `say` and adds it to `kept`; never returns.
pub(super) async fn watch(
    (association, began): (&Association, Instant),
    kept: &RefCell<Vec<PathEvent>>,
    say: impl Fn(&PathEvent),
) -> Infallible {
    let mut events = association.events();
    while let Some(event) = events.next().await {
        if let Ok(Event::PathChanged { path, state }) = event {
            let event =
                PathEvent { at_s: began.elapsed().as_secs_f64(), path: path.index(), state: state.name() };
            say(&event);
            kept.borrow_mut().push(event);
        }
    }
    std::future::pending().await
}
