//! Random scripts from seeds: the quality of the network, the traffic of each host, and faults.
//!
//! Most scripts are short and have a few kinds of faults. They find more errors in a minute than long scripts with all kinds.

mod dice;
mod settings;

use std::time::Duration;

use tresse_proto::{AddressChange, Direction, Reliability};

use crate::script::{Act, Change, Deed, Forgery, Host, HostPlan, Move, PathPlan, Script};

use dice::Dice;

/// Returns the script of a seed.
pub fn draw(seed: u64) -> Script {
    let mut dice = Dice::new(seed);
    let paths = *dice.pick(&[1, 1, 2, 2, 2, 3, 4]);
    let calm = dice.hits(0.3);
    let paths: Vec<PathPlan> = (0..paths).map(|_| path(&mut dice, calm)).collect();
    let damaging = paths.iter().any(|path| path.damage > 0.0);
    // Both hosts often have the same theme, because an extension is used only if both offer it.
    let theme = settings::theme(&mut dice);
    let other = if dice.hits(0.6) { theme } else { settings::theme(&mut dice) };
    let mut script = Script {
        seed,
        hosts: [theme, other].map(|theme| settings::draw(&mut dice, theme, damaging)),
        paths,
        acts: Vec::new(),
    };
    settings::agree(&mut script.hosts);
    let probing =
        script.hosts.iter().all(|plan| plan.settings().is_ok_and(|(config, _)| config.mtu_discovery));
    if probing && dice.hits(0.3) {
        for path in &mut script.paths {
            path.mtu = Some(*dice.pick(PATH_MTUS));
        }
    }
    let span = dice.magnitude(200, 20_000);
    let lossy = dice.hits(0.35);
    let patient = script.hosts.iter().all(takes_many_messages);
    let paths = script.paths.len() as u8;
    // Duplicates are tested only when a path fails, so failures are drawn more often where hosts send duplicates.
    let often = if script.hosts.iter().any(makes_copies) { 2.0 } else { 1.0 };
    let lossy = lossy || dice.hits(0.35 * (often - 1.0));
    let mut acts = Acts { dice: &mut dice, span, acts: Vec::new(), paths, probing, lossy };
    acts.open();
    acts.traffic();
    if patient && acts.dice.hits(0.003) {
        acts.many_messages();
    }
    if acts.dice.hits(0.3) {
        acts.pauses();
    }
    if acts.dice.hits(0.4 * often) {
        acts.troubles();
    }
    if acts.dice.hits(0.2) {
        acts.choices();
    }
    if acts.dice.hits(0.2) {
        acts.streams();
    }
    if acts.dice.hits(0.2) {
        acts.attacks();
    }
    if acts.dice.hits(0.15) {
        acts.ends();
    }
    if acts.dice.hits(0.15 * often) {
        acts.restarts();
    }
    if acts.dice.hits(0.25 * often) {
        acts.addresses();
    }
    script.acts = acts.acts;
    let connects = |host: Host| {
        let call = |act: &Act| matches!(act.deed, Deed::Host(by, Move::Connect { .. }) if by == host);
        script.acts.iter().any(call)
    };
    if connects(Host::Client) && connects(Host::Server) {
        settings::list_addresses(&mut script.hosts);
    }
    encrypt(&mut script);
    script.acts.sort_by_key(|act| act.at);
    script
}

/// Encrypts the associations of a share of all scripts, and adds key changes. The draws are separate, so that the rest
/// of the script does not depend on them.
fn encrypt(script: &mut Script) {
    let mut dice = Dice::about("encryption", script.seed);
    if !dice.hits(0.25) {
        return;
    }
    settings::encrypt(&mut dice, &mut script.hosts);
    let span = script.acts.iter().map(|act| act.at.as_millis() as u64).max().unwrap_or(0);
    for _ in 0..dice.between(0, 5) {
        let (at, host) = (Duration::from_millis(dice.between(0, span)), *dice.pick(&Host::BOTH));
        script.acts.push(Act { at, deed: Deed::Host(host, Move::Rekey) });
    }
}

/// Returns whether a host's buffers are so large that tens of thousands of short messages do not take hours.
fn takes_many_messages(plan: &HostPlan) -> bool {
    plan.settings()
        .is_ok_and(|(config, _)| config.send_buffer.0 >= 16_384 && config.receive_buffer.0 >= 16_384)
}

/// Returns whether a host sends duplicates on several paths.
fn makes_copies(plan: &HostPlan) -> bool {
    plan.settings().is_ok_and(|(config, _)| config.path_scheduler == "redundant")
}

fn path(dice: &mut Dice, calm: bool) -> PathPlan {
    let rate = dice.magnitude(300, 200_000) * 1000;
    // A queue that takes longer to drain than a retransmission timeout would look like a failed path.
    let most = (rate / 12_000 * 6 / 10).clamp(3, 200);
    let mut path = PathPlan {
        rate,
        delay: dice.millis(1, 300),
        queue: dice.magnitude(2, most) as u32,
        marks: 0.0,
        loss: 0.0,
        twice: 0.0,
        late: None,
        damage: 0.0,
        mtu: None,
        ipv6: dice.hits(0.2),
    };
    // ECN marks are also drawn for paths without other faults.
    if dice.hits(0.4) {
        path.marks = dice.share(1.0);
    }
    if calm {
        return path;
    }
    if dice.hits(0.6) {
        let most = *dice.pick(&[0.02, 0.1, 0.3]);
        path.loss = dice.share(most);
    }
    if dice.hits(0.3) {
        path.twice = dice.share(0.3);
    }
    if dice.hits(0.3) {
        path.late = Some((dice.share(0.3), dice.millis(1, 2000)));
    }
    if dice.hits(0.2) {
        // A packet of 12,000 bits is damaged with a probability between one in a hundred and one in five.
        path.damage = *dice.pick(&[0.000_001, 0.000_005, 0.000_02]);
    }
    path
}

/// Path MTUs to draw from: the minimum of IPv6, and larger ones.
const PATH_MTUS: &[u32] = &[1280, 1400, 1500, 9000];

/// Acts at random times within a span.
struct Acts<'d> {
    dice: &'d mut Dice,
    /// Length of the span in milliseconds.
    span: u64,
    acts: Vec<Act>,
    paths: u8,
    /// True if both sides run path MTU discovery.
    probing: bool,
    /// True if some messages are partially reliable.
    lossy: bool,
}

impl Acts<'_> {
    /// Opens an association, sometimes from both sides at once; sometimes opens another one later.
    fn open(&mut self) {
        let connect = |dice: &mut Dice, paths| Move::Connect { addresses: dice.between(1, paths) as u8 };
        let paths = u64::from(self.paths);
        let first = connect(self.dice, paths);
        self.push(0, Deed::Host(Host::Client, first));
        let crosses = self.dice.hits(0.1);
        if crosses {
            let second = connect(self.dice, paths);
            let at = self.dice.between(0, 400);
            self.push(at, Deed::Host(Host::Server, second));
        }
        // Messages that the application sends before the set-up has ended.
        if self.dice.hits(0.3) {
            self.early(Host::Client);
            if crosses {
                self.early(Host::Server);
            }
        }
        if self.dice.hits(0.2) {
            let again = connect(self.dice, paths);
            let at = self.random_time();
            self.push(at, Deed::Host(Host::Client, again));
        }
    }

    fn early(&mut self, host: Host) {
        for _ in 0..self.dice.between(1, 3) {
            let what = Move::Send {
                len: self.dice.magnitude(1, 3000) as u32,
                stream: self.dice.between(0, 7) as u16,
                unordered: self.dice.hits(0.25),
                reliability: if self.lossy { self.reliability() } else { Reliability::Full },
                times: self.dice.magnitude(1, 10) as u16,
            };
            let at = self.dice.magnitude(1, 400) - 1;
            self.push(at, Deed::Host(host, what));
        }
    }

    /// Hosts restart and lose their state; most associations are opened again.
    fn restarts(&mut self) {
        for _ in 0..self.dice.between(1, 2) {
            let (at, host) = (self.random_time(), self.random_host());
            self.push(at, Deed::Host(host, Move::Restart));
            if self.dice.hits(0.8) {
                let addresses = self.dice.between(1, u64::from(self.paths)) as u8;
                let by = if self.dice.hits(0.8) { host } else { host.peer() };
                let then = at + self.dice.magnitude(1, 2000);
                self.push(then, Deed::Host(by, Move::Connect { addresses }));
            }
        }
    }

    fn traffic(&mut self) {
        let most = self.dice.magnitude(2_000, 400_000);
        let mut bytes = 0;
        while bytes < most {
            let host = if self.dice.hits(0.65) { Host::Client } else { Host::Server };
            let len = match self.dice.between(0, 9) {
                0..3 => self.dice.between(1, 20),
                3..7 => self.dice.between(20, 1500),
                7..9 => self.dice.between(1400, 9000),
                _ => self.dice.magnitude(5000, 100_000),
            };
            let times = self.dice.magnitude(1, 30).min(1 + 60_000 / len);
            bytes += (len + 60) * times;
            let what = Move::Send {
                len: len as u32,
                stream: self.dice.between(0, 7) as u16,
                unordered: self.dice.hits(0.25),
                reliability: if self.lossy { self.reliability() } else { Reliability::Full },
                times: times as u16,
            };
            let at = self.random_time();
            self.push(at, Deed::Host(host, what));
        }
    }

    /// Sends more messages on a stream than there are SSNs.
    fn many_messages(&mut self) {
        let (host, stream) = (self.random_host(), self.dice.between(0, 7) as u16);
        for _ in 0..2 {
            let what = Move::Send {
                len: self.dice.between(40, 100) as u32,
                stream,
                unordered: false,
                reliability: Reliability::Full,
                times: 34_000,
            };
            let at = self.random_time();
            self.push(at, Deed::Host(host, what));
        }
    }

    fn reliability(&mut self) -> Reliability {
        match self.dice.between(0, 5) {
            0 | 1 => Reliability::Lifetime(self.dice.millis(1, 3000)),
            2 => Reliability::Retransmissions(self.dice.between(0, 3) as u32),
            3 => Reliability::Priority(self.dice.between(0, 3) as u32),
            _ => Reliability::Full,
        }
    }

    fn pauses(&mut self) {
        for _ in 0..self.dice.between(1, 3) {
            let host = self.random_host();
            let at = self.random_time();
            self.push(at, Deed::Host(host, Move::Pause));
            let until = at + self.dice.magnitude(1, self.span);
            self.push(until, Deed::Host(host, Move::Resume));
        }
    }

    /// Outages, periods of loss, smaller path MTUs, longer delays and lower rates.
    fn troubles(&mut self) {
        for _ in 0..self.dice.between(1, 4) {
            let path = self.dice.between(0, u64::from(self.paths) - 1) as u8;
            let from = if self.dice.hits(0.3) { Some(self.random_host()) } else { None };
            let (worse, better) = match self.dice.between(0, 4) {
                0..2 => (
                    Change { out: Some(true), ..Change::default() },
                    Change { out: Some(false), ..Change::default() },
                ),
                2 => (
                    Change { loss: Some(self.dice.share(0.9)), ..Change::default() },
                    Change { loss: Some(0.0), ..Change::default() },
                ),
                3 if self.probing && self.dice.hits(0.5) => (
                    Change { mtu: Some(1280), ..Change::default() },
                    Change { mtu: Some(*self.dice.pick(PATH_MTUS)), ..Change::default() },
                ),
                3 => (
                    Change { delay: Some(self.dice.millis(10, 450)), ..Change::default() },
                    Change { delay: Some(self.dice.millis(1, 100)), ..Change::default() },
                ),
                _ => (
                    Change { rate: Some(self.dice.magnitude(30, 1000) * 1000), ..Change::default() },
                    Change { rate: Some(self.dice.magnitude(1000, 100_000) * 1000), ..Change::default() },
                ),
            };
            let at = self.random_time();
            self.push(at, Deed::Path { path, from, change: worse });
            if self.dice.hits(0.8) {
                let until = at + self.dice.magnitude(10, self.span);
                self.push(until, Deed::Path { path, from, change: better });
            }
        }
    }

    fn choices(&mut self) {
        for _ in 0..self.dice.between(1, 4) {
            let (at, host) = (self.random_time(), self.random_host());
            let what = match self.dice.between(0, 2) {
                0 => Move::Primary { path: self.dice.between(0, u64::from(self.paths) - 1) as u8 },
                1 => Move::Scheduler { name: (*self.dice.pick(settings::STREAM_SCHEDULERS)).to_owned() },
                _ => Move::UseKey { number: self.dice.between(0, 3) as u16 },
            };
            self.push(at, Deed::Host(host, what));
        }
    }

    /// Streams are reset and added.
    fn streams(&mut self) {
        for _ in 0..self.dice.between(1, 4) {
            let (at, host) = (self.random_time(), self.random_host());
            let what = match self.dice.between(0, 5) {
                0..3 => Move::Reset {
                    stream: if self.dice.hits(0.7) { Some(self.dice.between(0, 7) as u16) } else { None },
                    direction: *self.dice.pick(&[Direction::Outbound, Direction::Inbound, Direction::Both]),
                },
                3 => Move::ResetAssociation,
                _ => Move::AddStreams {
                    outbound: self.dice.between(0, 5) as u16,
                    inbound: self.dice.between(0, 5) as u16,
                },
            };
            self.push(at, Deed::Host(host, what));
        }
    }

    /// Addresses are removed and preferred; most removed addresses are added again.
    fn addresses(&mut self) {
        for _ in 0..self.dice.between(1, 5) {
            let (at, host) = (self.random_time(), self.random_host());
            let path = self.dice.between(0, u64::from(self.paths) - 1) as u8;
            let change = |change| Deed::Host(host, Move::Address { change, path });
            if self.dice.hits(0.2) {
                self.push(at, change(AddressChange::Prefer));
                continue;
            }
            self.push(at, change(AddressChange::Remove));
            if self.dice.hits(0.7) {
                let back = at + self.dice.magnitude(1, self.span);
                self.push(back, change(AddressChange::Add));
            }
        }
    }

    fn attacks(&mut self) {
        for _ in 0..self.dice.between(1, 10) {
            let (at, to) = (self.random_time(), self.random_host());
            let deed = if self.dice.hits(0.5) {
                Deed::Replay { to, back: self.dice.magnitude(1, 60) as u16 - 1 }
            } else {
                Deed::Forge { to, what: self.dice.pick(&Forgery::ALL).0 }
            };
            self.push(at, deed);
        }
    }

    fn ends(&mut self) {
        let (at, host) = (self.random_time(), self.random_host());
        let what = if self.dice.hits(0.7) { Move::Shutdown } else { Move::Abort };
        self.push(at, Deed::Host(host, what));
        if self.dice.hits(0.3) {
            let at = (at + self.dice.between(0, 500)).min(self.span);
            self.push(at, Deed::Host(host.peer(), Move::Shutdown));
        }
    }

    fn random_time(&mut self) -> u64 {
        self.dice.between(0, self.span)
    }

    fn random_host(&mut self) -> Host {
        *self.dice.pick(&Host::BOTH)
    }

    fn push(&mut self, millis: u64, deed: Deed) {
        self.acts.push(Act { at: Duration::from_millis(millis), deed });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_script_reads_back_as_printed() {
        for seed in 0..100 {
            let script = draw(seed);
            assert_eq!(script.to_string().parse(), Ok(script));
        }
    }

    #[test]
    fn a_share_of_all_scripts_is_encrypted_and_changes_keys() {
        let scripts: Vec<Script> = (0..2000).map(draw).collect();
        for settings in [[("encryption", "require")], [("encryption", "offer")]] {
            assert!(drawn(&scripts, &settings) > 100, "{settings:?}: {}", drawn(&scripts, &settings));
        }
        let changes = |act: &Act| matches!(act.deed, Deed::Host(_, Move::Rekey));
        assert!(scripts.iter().filter(|script| script.acts.iter().any(changes)).count() > 200);
    }

    /// Returns the number of scripts in which a host has all these settings.
    fn drawn(scripts: &[Script], settings: &[(&str, &str)]) -> usize {
        let has_all = |plan: &HostPlan| {
            let last = |name| plan.switches.iter().rfind(|(own, _)| own == name).map(|(_, value)| value);
            settings.iter().all(|(name, value)| last(name).is_some_and(|own| own == value))
        };
        scripts.iter().filter(|script| script.hosts.iter().any(has_all)).count()
    }

    #[test]
    fn what_acts_together_is_drawn_together() {
        let scripts: Vec<Script> = (0..2000).map(draw).collect();
        let placed = [
            ("buffer_allocation", "when_short"),
            ("path_suspension", "true"),
            ("chunk_rescheduling", "by_deadline"),
            ("immediate_sack_when_full", "true"),
        ];
        let placed_adaptively = [&placed[..], &[("stream_map", "adaptive")]].concat();
        assert!(drawn(&scripts, &placed_adaptively) > 20, "{}", drawn(&scripts, &placed_adaptively));
        let copying: Vec<Script> =
            scripts.into_iter().filter(|script| script.hosts.iter().any(makes_copies)).collect();
        assert!(copying.len() > 60, "{}", copying.len());
        let with =
            |wanted: fn(&Act) -> bool| copying.iter().filter(|script| script.acts.iter().any(wanted)).count();
        let outages =
            with(|act| matches!(act.deed, Deed::Path { change: Change { out: Some(true), .. }, .. }));
        let restarts = with(|act| matches!(act.deed, Deed::Host(_, Move::Restart)));
        let removals = with(|act| {
            matches!(act.deed, Deed::Host(_, Move::Address { change: AddressChange::Remove, .. }))
        });
        let given_up = with(
            |act| matches!(act.deed, Deed::Host(_, Move::Send { reliability, .. }) if reliability != Reliability::Full),
        );
        let seen = [outages, restarts, removals, given_up];
        assert!(seen.iter().all(|&scripts| scripts * 10 > copying.len()), "{seen:?} of {}", copying.len());
        let short = [[("send_buffer", "4000B")], [("receive_buffer", "3000B")]];
        assert!(short.iter().all(|buffer| drawn(&copying, buffer) * 10 > copying.len()));
    }
}
