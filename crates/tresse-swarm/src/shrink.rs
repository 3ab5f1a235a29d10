//! Shortening of failing scripts: removes all parts that are not needed for the failure.
//!
//! A shorter script is accepted if it violates the same rule in the same way. The steps, from coarse to fine: halves of
//! the acts and smaller runs down to single ones, then single paths, settings and impairments, then numbers of messages
//! and their lengths. The limit is a number of events and not a time, so that the result is the same on every machine.

use crate::breach::Breach;
use crate::script::{Deed, Move, Script};
use crate::world::Trial;

/// The shortest script found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// Shortest script found that still fails.
    pub script: Script,
    /// Violation of a rule by this script.
    pub breach: Breach,
    /// Number of scripts that were run to find it.
    pub tries: usize,
    /// Events in the run of this script.
    events: u64,
    /// Events that further runs may still have.
    left: u64,
}

/// Shortens `script`, which violates a rule as in `breach`. All runs together have at most about `limit` events.
/// `attempt` runs a script with at most the given number of events.
pub fn shrink(script: Script, breach: Breach, limit: u64, attempt: impl Fn(&Script, u64) -> Trial) -> Shrunk {
    let mut shrunk = Shrunk { script, breach, tries: 0, events: limit, left: limit };
    shrunk.events = shrunk.play(&shrunk.script.clone(), &attempt).events;
    while shrunk.left > 0 {
        let before = shrunk.script.clone();
        shrunk.drop_runs(&attempt);
        for step in STEPS {
            shrunk.each(&attempt, *step);
        }
        if shrunk.script == before {
            break;
        }
    }
    shrunk
}

/// Number of events that take as long as the set-up of a simulation.
const SET_UP: u64 = 50;

/// Makes the script smaller at an index; returns `false` if nothing can be made smaller at that index or beyond.
type Step = fn(&mut Script, usize) -> bool;

const STEPS: &[Step] = &[drop_path, drop_switch, calm_path, fewer_messages, shorter_messages];

impl Shrunk {
    /// Runs a candidate and keeps it if it fails in the same way. Returns whether it was kept.
    fn attempt(&mut self, candidate: Script, attempt: impl Fn(&Script, u64) -> Trial) -> bool {
        if candidate == self.script {
            return false;
        }
        self.tries += 1;
        let Trial { events, breach } = self.play(&candidate, attempt);
        match breach {
            Some(breach) if breach.is_like(&self.breach) => {
                self.script = candidate;
                self.breach = breach;
                self.events = events;
                true
            }
            _ => false,
        }
    }

    /// Runs a script; stops if the run takes much longer than that of the current script.
    fn play(&mut self, script: &Script, attempt: impl Fn(&Script, u64) -> Trial) -> Trial {
        let trial = attempt(script, self.left.min(2 * self.events + 1000));
        self.left = self.left.saturating_sub(SET_UP + trial.events);
        trial
    }

    /// Drops runs of acts: half of all acts, a quarter, and so on down to single acts.
    fn drop_runs(&mut self, attempt: &impl Fn(&Script, u64) -> Trial) {
        let mut run = self.script.acts.len().div_ceil(2);
        while run > 0 {
            let mut start = 0;
            while start < self.script.acts.len() && self.left > 0 {
                let mut candidate = self.script.clone();
                let end = (start + run).min(candidate.acts.len());
                candidate.acts.drain(start..end);
                if !self.attempt(candidate, attempt) {
                    start += run;
                }
            }
            run /= 2;
        }
    }

    fn each(&mut self, attempt: &impl Fn(&Script, u64) -> Trial, step: Step) {
        let mut position = 0;
        while self.left > 0 {
            let mut candidate = self.script.clone();
            if !step(&mut candidate, position) {
                return;
            }
            if !self.attempt(candidate, attempt) {
                position += 1;
            }
        }
    }
}

fn drop_path(script: &mut Script, position: usize) -> bool {
    let last = script.paths.len().saturating_sub(1);
    if position > 0 || last == 0 {
        return false;
    }
    script.paths.pop();
    script.acts.retain(|act| !matches!(act.deed, Deed::Path { path, .. } if usize::from(path) == last));
    true
}

fn drop_switch(script: &mut Script, position: usize) -> bool {
    let [client, server] = &mut script.hosts;
    let count = client.switches.len();
    let (plan, position) = if position < count { (client, position) } else { (server, position - count) };
    if position >= plan.switches.len() {
        return false;
    }
    plan.switches.remove(position);
    true
}

fn calm_path(script: &mut Script, position: usize) -> bool {
    let Some(path) = script.paths.get_mut(position / 6) else { return false };
    match position % 6 {
        0 => path.loss = 0.0,
        1 => path.twice = 0.0,
        2 => path.late = None,
        3 => path.damage = 0.0,
        4 => path.marks = 0.0,
        _ => path.ipv6 = false,
    }
    true
}

fn fewer_messages(script: &mut Script, position: usize) -> bool {
    change_send(script, position, |_, times| *times = times.div_ceil(2))
}

fn shorter_messages(script: &mut Script, position: usize) -> bool {
    change_send(script, position, |len, _| *len = len.div_ceil(2))
}

fn change_send(script: &mut Script, position: usize, change: impl Fn(&mut u32, &mut u16)) -> bool {
    let sends = script.acts.iter_mut().filter_map(|act| match &mut act.deed {
        Deed::Host(_, Move::Send { len, times, .. }) => Some((len, times)),
        _ => None,
    });
    match sends.into_iter().nth(position) {
        Some((len, times)) => {
            change(len, times);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use tresse_proto::Instant;

    use super::*;
    use crate::draw;
    use crate::script::Host;

    /// Returns a breach if the server pauses while the client has a setting of its send buffer.
    fn judge(script: &Script) -> Option<Breach> {
        let pauses = script.moves(Host::Server).any(|(_, what)| *what == Move::Pause);
        let small = script.hosts[0].switches.iter().any(|(name, _)| name == "send_buffer");
        let breach = Breach { at: Instant::ZERO, rule: "test", what: String::new() };
        (pauses && small).then_some(breach)
    }

    /// A script may violate a rule for one reason, and a shortened script for another.
    #[test]
    fn an_end_of_another_kind_is_another_failure() {
        let script = (0..1000).map(draw).find(|script| script.acts.len() > 4).expect("one of them");
        let end =
            |what: &str| Breach { at: Instant::ZERO, rule: "ends have a reason", what: what.to_owned() };
        let play = |script: &Script, _| {
            let what = if script.acts.len() > 2 { "PathsLost at 3 s" } else { "PeerFault(..) at 1 s" };
            Trial { events: 1, breach: Some(end(what)) }
        };
        let Shrunk { script, breach, .. } = shrink(script, end("PathsLost at 5 s"), 1_000_000, play);
        assert_eq!((script.acts.len(), breach), (3, end("PathsLost at 3 s")));
    }

    #[test]
    fn only_what_matters_is_left() {
        let failing = (0..1000).map(draw).find(|script| judge(script).is_some()).expect("one of them fails");
        let breach = judge(&failing).expect("it fails");
        let play = |script: &Script, _| Trial { events: 1, breach: judge(script) };
        let Shrunk { script, .. } = shrink(failing.clone(), breach.clone(), 1_000_000, play);
        assert_eq!(script.acts.len(), 1, "{script}");
        assert_eq!((script.paths.len(), script.hosts[0].switches.len()), (1, 1), "{script}");
        assert!(script.hosts[1].switches.is_empty(), "{script}");
        let Shrunk { script, tries, .. } = shrink(failing.clone(), breach, 1, play);
        assert_eq!((script, tries), (failing, 0), "no event was left");
    }
}
