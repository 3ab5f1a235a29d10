//! Actions on an association while it runs, at the times that the user gave.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tresse::{Association, Direction, Event, Events, Streams};

use super::args::WorkArgs;

/// Action on an association.
#[derive(Clone)]
enum Action {
    ResetStreams(Streams),
    AddStreams(u16),
    End(End),
}

/// End of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    Shutdown,
    Abort,
}

/// Performs each action at its time, but not before the peer has answered the one before. `on_refusal` is called for actions that could
/// not begin. Returns when the association is to end; never if no time is given for that.
pub(super) async fn follow(association: &Association, work: &WorkArgs, on_refusal: impl Fn(String)) -> End {
    let started = Instant::now();
    for (after, action) in steps(work) {
        sleep_until(started + after).await;
        let mut events = association.events();
        let begun = match action {
            Action::ResetStreams(streams) => association
                .reset_streams(streams, Direction::Outbound)
                .map_err(|error| format!("streams could not be reset: {error}")),
            Action::AddStreams(count) => association
                .add_streams(count, 0)
                .map_err(|error| format!("streams could not be added: {error}")),
            Action::End(end) => return end,
        };
        match begun {
            Ok(()) => answered(&mut events).await,
            Err(refusal) => on_refusal(refusal),
        }
    }
    pending().await
}

/// Waits until the peer has answered a request; forever if the association ends before.
async fn answered(events: &mut Events) {
    loop {
        match events.next().await {
            Some(Ok(Event::Reconfigured { .. })) => return,
            Some(_) => {}
            None => pending().await,
        }
    }
}

/// Returns all actions with their times, the earliest first.
fn steps(work: &WorkArgs) -> Vec<(Duration, Action)> {
    let resets = work.reset_streams.iter().map(|at| (at.after, Action::ResetStreams(at.what.clone())));
    let additions = work.add_streams.iter().map(|at| (at.after, Action::AddStreams(at.what)));
    let end = |after: Option<Duration>, end| after.map(|after| (after, Action::End(end)));
    let ends = [end(work.shutdown_after, End::Shutdown), end(work.abort_after, End::Abort)];
    let mut steps: Vec<_> = resets.chain(additions).chain(ends.into_iter().flatten()).collect();
    steps.sort_by_key(|(after, _)| *after);
    steps
}
