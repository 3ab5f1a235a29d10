//! Actions on an association while it runs, at the times that the user gave.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tresse::{Association, Direction, Event, Events, StreamId, Streams, units};

use super::args::WorkArgs;

/// A time after set-up, with the argument of an action.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    after: Duration,
    what: T,
}

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

/// Parses `TIME:WHAT`.
fn at<T>(text: &str, what: impl FnOnce(&str) -> Option<T>, accepted: &str) -> Result<At<T>, String> {
    let refused = || format!("\"{text}\" is not a time and {accepted}, with a colon between");
    let (after, rest) = text.split_once(':').ok_or_else(refused)?;
    let after = units::parse_duration(after.trim()).map_err(|error| error.to_string())?;
    Ok(At { after, what: what(rest.trim()).ok_or_else(refused)? })
}

/// Parses `2s:all` or `2s:0,3`.
pub(super) fn streams(text: &str) -> Result<At<Streams>, String> {
    let list = |text: &str| {
        if text == "all" {
            return Some(Streams::All);
        }
        let numbers: Result<_, _> =
            text.split(',').map(|number| number.trim().parse().map(StreamId)).collect();
        numbers.ok().map(Streams::These)
    };
    at(text, list, "numbers of streams such as 0,3, or all")
}

/// Parses `2s:16`.
pub(super) fn count(text: &str) -> Result<At<u16>, String> {
    at(text, |text| text.parse().ok().filter(|&count| count > 0), "a number of streams from 1 to 65535")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_comes_before_what_is_done_then() {
        let reset = streams("1500ms:0,3").expect("sound");
        assert_eq!(reset.after, Duration::from_millis(1500));
        assert_eq!(reset.what, Streams::These([StreamId(0), StreamId(3)].into()));
        assert_eq!(streams("2s:all").expect("sound").what, Streams::All);
        assert_eq!(count("1s:4").expect("sound").what, 4);
    }

    #[test]
    fn mistakes_say_what_is_accepted() {
        let refused = "is not a time and numbers of streams such as 0,3, or all, with a colon between";
        for text in ["2s", "2s:", "2s:x", "2s:0,70000"] {
            assert_eq!(streams(text).err(), Some(format!("\"{text}\" {refused}")));
        }
        assert!(count("1s:0").is_err() && streams("soon:all").is_err());
    }
}
