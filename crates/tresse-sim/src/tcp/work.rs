//! Work of a TCP host: it sends without end, receives, sends requests, or answers them.
//!
//! Owns the users of web traffic and their think times. Independent of segments: it reads from connections how many
//! bytes have arrived.

use std::time::Duration;

use tresse_proto::Instant;

use super::WebSpec;
use super::connection::{Connection, ENDLESS};
use crate::seed::{Generator, exponential, unit_interval};

/// Task of a host.
#[derive(Debug)]
pub(crate) enum HostRole {
    /// Sends without end, over connections that begin at these times.
    Source { starts: Vec<Instant>, stop: Option<Instant> },
    /// Receives.
    Sink,
    /// Sends requests.
    Client(WebUsers),
    /// Answers requests.
    Server { web: WebSpec, rng: Generator },
}

/// Users, who send a request, wait for the answer, and think.
#[derive(Debug)]
pub(crate) struct WebUsers {
    web: WebSpec,
    stop: Option<Instant>,
    rng: Generator,
    users: Vec<WebUser>,
    /// The port of the connection that was opened last.
    port: u16,
}

#[derive(Copy, Clone, Debug)]
enum WebUser {
    Thinks { until: Instant },
    Waits { port: u16, since: Instant },
}

impl HostRole {
    /// Makes a client whose users begin to think at `start`.
    pub(crate) fn client(web: WebSpec, start: Instant, stop: Option<Instant>, mut rng: Generator) -> Self {
        let users = (0..web.users).map(|_| WebUser::Thinks { until: start + think(&web, &mut rng) });
        let users = users.collect();
        HostRole::Client(WebUsers { web, stop, rng, users, port: FIRST_PORT - 1 })
    }

    /// Returns whether the host accepts connections.
    pub(super) fn accepts(&self) -> bool {
        matches!(self, HostRole::Sink | HostRole::Server { .. })
    }

    /// Returns the time of the next timer.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            HostRole::Source { starts, stop } => starts.iter().chain(stop).min().copied(),
            HostRole::Client(users) => users.due(),
            HostRole::Sink | HostRole::Server { .. } => None,
        }
    }

    /// Returns the port of the next connection to open, and the bytes to send over it first, if one is due.
    pub(super) fn open(&mut self, now: Instant) -> Option<(u16, u64)> {
        match self {
            HostRole::Source { starts, .. } => {
                let position = starts.iter().position(|start| *start <= now)?;
                starts.remove(position);
                Some((FIRST_PORT + starts.len() as u16, ENDLESS))
            }
            HostRole::Client(users) => users.ask(now),
            HostRole::Sink | HostRole::Server { .. } => None,
        }
    }

    /// Returns whether all connections are to end now; true only once.
    pub(super) fn stops(&mut self, now: Instant) -> bool {
        match self {
            HostRole::Source { stop, starts } if stop.is_some_and(|stop| stop <= now) => {
                *stop = None;
                starts.clear();
                true
            }
            _ => false,
        }
    }

    /// Answers a request on the connection if the request is complete.
    pub(super) fn on_arrival(&mut self, connection: &mut Connection) {
        if let HostRole::Server { web, rng } = self
            && connection.receiver.delivered() >= web.request
            && !connection.is_finished()
        {
            connection.hand_over(response(web, rng));
            connection.finish();
        }
    }

    /// Ends the wait of a connection's user; returns the time of the wait if there was an answer.
    pub(super) fn on_over(&mut self, now: Instant, over: u16, answered: bool) -> Option<Duration> {
        let HostRole::Client(users) = self else { return None };
        let (user, since) = users.users.iter_mut().find_map(|user| match *user {
            WebUser::Waits { port, since } if port == over => Some((user, since)),
            _ => None,
        })?;
        *user = WebUser::Thinks { until: now + think(&users.web, &mut users.rng) };
        answered.then(|| now.since(since))
    }
}

impl WebUsers {
    fn due(&self) -> Option<Instant> {
        let thoughts = self.users.iter().filter_map(|user| match user {
            WebUser::Thinks { until } => Some(*until),
            WebUser::Waits { .. } => None,
        });
        thoughts.min().filter(|at| self.stop.is_none_or(|stop| *at < stop))
    }

    fn ask(&mut self, now: Instant) -> Option<(u16, u64)> {
        if self.stop.is_some_and(|stop| stop <= now) {
            return None;
        }
        let taken = |port: u16| {
            self.users.iter().any(|user| matches!(user, WebUser::Waits { port: other, .. } if *other == port))
        };
        // There are far more ports than users.
        let after = |port: u16| if port == u16::MAX { FIRST_PORT } else { port + 1 };
        let mut port = after(self.port);
        while taken(port) {
            port = after(port);
        }
        let user =
            self.users.iter_mut().find(|user| matches!(user, WebUser::Thinks { until } if *until <= now))?;
        *user = WebUser::Waits { port, since: now };
        self.port = port;
        Some((port, self.web.request))
    }
}

/// Returns an exponentially distributed think time.
fn think(web: &WebSpec, rng: &mut Generator) -> Duration {
    exponential(web.think, rng)
}

/// Returns Pareto distributed bytes of an answer, at most [`LONGEST_RESPONSE`] times the mean.
fn response(web: &WebSpec, rng: &mut Generator) -> u64 {
    let (mean, shape) = (web.response as f64, web.response_shape);
    let least = mean * (shape - 1.0) / shape;
    let size = least / libm::pow(1.0 - unit_interval(rng), 1.0 / shape);
    (size.min(mean * LONGEST_RESPONSE) as u64).max(1)
}

const FIRST_PORT: u16 = 1024;
/// Longest answer, as a multiple of the mean.
const LONGEST_RESPONSE: f64 = 1000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    const WEB: WebSpec = WebSpec {
        users: 2,
        think: Duration::from_secs(1),
        request: 300,
        response: 12_000,
        response_shape: 1.5,
    };

    #[test]
    fn thoughts_and_answers_have_their_means() {
        let mut rng = Seed(1).generator("test");
        const DRAWS: u32 = 100_000;
        let thought: Duration = (0..DRAWS).map(|_| think(&WEB, &mut rng)).sum();
        // Standard error 0.3 %.
        assert!((thought.as_secs_f64() / f64::from(DRAWS) - 1.0).abs() < 0.015);
        let mut sizes: Vec<u64> = (0..DRAWS).map(|_| response(&WEB, &mut rng)).collect();
        sizes.sort_unstable();
        // Least: a third of the mean. Median: the least times 2^(2/3).
        assert!(sizes[0].abs_diff(4000) <= 1, "{}", sizes[0]);
        let median = sizes[sizes.len() / 2] as f64;
        assert!((median / 6350.0 - 1.0).abs() < 0.02, "{median}");
        assert!(sizes[sizes.len() - 1] <= 12_000_000);
    }

    #[test]
    fn users_ask_wait_and_think_again() {
        let begin = Instant::ZERO;
        let mut work = HostRole::client(WEB, begin, None, Seed(1).generator("users"));
        let first = work.due().expect("they think");
        assert_eq!(work.open(begin), None);
        assert_eq!(work.open(first), Some((FIRST_PORT, 300)));
        let second = work.due().expect("the other one thinks");
        assert_eq!(work.open(second), Some((FIRST_PORT + 1, 300)));
        assert_eq!(work.due(), None, "both wait");
        let waited = work.on_over(second + Duration::from_secs(1), FIRST_PORT, true);
        assert_eq!(waited, Some(second.since(first) + Duration::from_secs(1)));
        assert_eq!(work.on_over(second, FIRST_PORT + 1, false), None, "no answer came");
        assert!(work.due().is_some());
    }
}
