//! `tresse peer`: a plain endpoint for tests, of this stack or of others, to talk to. Opens or accepts
//! associations, over UDP or raw IP, and discards, echoes or generates messages.

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

/// Streams to ask for: an echo goes on the stream that its message came on, whichever that is.
fn streams_for(mode: Mode, work: &WorkArgs) -> u16 {
    if mode == Mode::Echo { u16::MAX } else { work.streams }
}

/// Reason for which everything is to end now.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Stop {
    /// The time given by the user is over.
    Duration,
    /// The user's wish.
    Interrupt,
}

/// Ready when everything is to end.
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

/// Description of an association that did not go as it should.
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
