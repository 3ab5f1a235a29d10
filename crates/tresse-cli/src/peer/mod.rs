//! `tresse peer`: a plain endpoint for tests of this stack and of others. Opens or accepts associations, over UDP or raw IP, and
//! discards, echoes or generates messages.

mod args;
mod client;
mod event_log;
mod message;
mod server;
mod session;
mod summary;
mod timeline;

use std::future::pending;
use std::time::Duration;

use tokio::time::sleep;
use tresse::{BindError, CloseReason, Ended};

pub(crate) use args::PeerArgs;

use args::{Mode, WorkArgs};

use crate::failure::Failure;
use crate::signal;
use session::Session;

pub(crate) async fn run(args: PeerArgs) -> Result<(), Failure> {
    match args.role {
        args::Role::Server(args) => server::run(args).await,
        args::Role::Client(args) => client::run(args).await,
    }
}

/// Returns the number of streams to request. An echo is sent on the stream of its message, which may be any.
fn streams_for(mode: Mode, work: &WorkArgs) -> u16 {
    if mode == Mode::Echo { u16::MAX } else { work.streams }
}

/// Reason for which all associations are to end now.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Stop {
    /// The time given by the user is over.
    Duration,
    /// The user interrupted the command.
    Interrupt,
}

/// Waits until all associations are to end, and returns the reason.
async fn stopped(duration: Option<Duration>) -> Stop {
    let time = async {
        match duration {
            Some(duration) => sleep(duration).await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = time => Stop::Duration,
        () = signal::interrupted() => Stop::Interrupt,
    }
}

/// Returns the failure of an association that did not end as it should.
fn trouble(session: &Session) -> Option<Failure> {
    if let Some(wrong) = &session.tally.first_wrong {
        let others = session.tally.wrong - 1;
        return Some(Failure::running(format!("{wrong} ({others} further messages were wrong)")));
    }
    match &session.reason {
        CloseReason::Graceful if !session.complete => {
            Some(Failure::running("the peer shut the association down before everything was done"))
        }
        CloseReason::Aborted if !session.complete => Some(Failure::from(Ended(CloseReason::Aborted))),
        CloseReason::Graceful | CloseReason::Aborted => {
            let missing = session.tally.not_echoed;
            (missing > 0).then(|| Failure::running(format!("messages that were not echoed: {missing}")))
        }
        reason => Some(Failure::from(Ended(reason.clone()))),
    }
}

fn refused(error: BindError) -> Failure {
    let hint = matches!(error, BindError::RawNotPermitted);
    let failure = Failure::from(error);
    if hint { failure.followed_by("leave out --raw for that") } else { failure }
}
