//! Whatever happens in whatever order, the books balance (`Bench::check`), nothing is released twice, and a
//! SACK for everything leaves nothing behind.

use proptest::prelude::*;

use super::*;
use crate::config::{LossDetection, SwitchValue};
use crate::interface::reliability::Reliability;

/// Paths of the sender under test.
const PATHS: u8 = 3;

#[derive(Clone, Debug)]
enum Step {
    Send {
        path: u8,
        len: usize,
    },
    /// A message that need not arrive, with a fragment on each of these paths; the end may be missing.
    Offer {
        paths: Vec<u8>,
        reliability: Reliability,
        whole: bool,
    },
    Ahead(Ahead),
    Twice(Twice),
    /// Gives up what is due.
    GiveUp,
    Evict {
        priority: u32,
    },
    Forward {
        path: u8,
        room: usize,
        repeat: bool,
    },
    /// A SACK with a cumulative TSN that far from the last one, and any blocks.
    Sack {
        via: u8,
        ahead: i32,
        renegable: Vec<Block>,
        non_renegable: Vec<Block>,
        packets: u8,
        window: u32,
    },
    Shutdown {
        ahead: i32,
    },
    TimeOut {
        path: u8,
        target: u8,
    },
    Resend {
        path: u8,
    },
    Redirect {
        from: u8,
        to: u8,
    },
    /// A chunk near the cumulative TSN is sent again early.
    Move {
        ahead: u64,
        to: u8,
    },
    /// The peer reports such a chunk as damaged.
    Report {
        ahead: u32,
        to: u8,
    },
    Wait {
        millis: u64,
    },
    Recover {
        recovering: bool,
    },
}

/// Something about what waits for the window of a path.
#[derive(Clone, Debug)]
enum Ahead {
    Assign {
        path: u8,
        len: usize,
    },
    /// The same, and it need not arrive.
    Offer {
        path: u8,
        reliability: Reliability,
    },
    /// The first of it leaves.
    Leave {
        path: u8,
    },
    HandOver {
        from: u8,
        to: u8,
    },
}

/// Something about chunks that are under way on several paths.
#[derive(Clone, Debug)]
enum Twice {
    /// The next that has not had its turn is copied, or not.
    Copy { path: u8, skipped: bool },
    /// The peer reports these as duplicates, counted from the cumulative TSN.
    Duplicates { via: u8, ahead: Vec<i32> },
}

fn any_twice() -> impl Strategy<Value = Twice> {
    let path = 0..PATHS;
    prop_oneof![
        3 => (path.clone(), prop::bool::weighted(0.1)).prop_map(|(path, skipped)| Twice::Copy { path, skipped }),
        1 => (path, prop::collection::vec(-9i32..12, 1..6))
            .prop_map(|(via, ahead)| Twice::Duplicates { via, ahead }),
    ]
}

fn any_ahead() -> impl Strategy<Value = Ahead> {
    let path = 0..PATHS;
    prop_oneof![
        2 => (path.clone(), 1usize..1453).prop_map(|(path, len)| Ahead::Assign { path, len }),
        1 => (path.clone(), any_policy()).prop_map(|(path, reliability)| Ahead::Offer { path, reliability }),
        3 => path.clone().prop_map(|path| Ahead::Leave { path }),
        1 => (path, 0..=PATHS).prop_map(|(from, to)| Ahead::HandOver { from, to }),
    ]
}

fn any_blocks() -> impl Strategy<Value = Vec<Block>> {
    // Mostly near the few chunks there are, sometimes anything, and not always sound.
    let near = (1u16..20, 0u16..6).prop_map(|(start, len)| (start, start + len));
    prop::collection::vec(prop_oneof![12 => near, 1 => any::<Block>()], 0..4)
}

fn any_policy() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        (0u64..3000).prop_map(|millis| Reliability::Lifetime(Duration::from_millis(millis))),
        (0u32..3).prop_map(Reliability::Retransmissions),
        (0u32..4).prop_map(Reliability::Priority),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let path = 0..PATHS;
    let sack =
        (path.clone(), -1i32..4, any_blocks(), any_blocks(), 0u8..5, prop_oneof![0u32..9000, any::<u32>()])
            .prop_map(|(via, ahead, renegable, non_renegable, packets, window)| Step::Sack {
                via,
                ahead,
                renegable,
                non_renegable,
                packets,
                window,
            });
    prop_oneof![
        8 => (path.clone(), 1usize..1453).prop_map(|(path, len)| Step::Send { path, len }),
        8 => sack,
        4 => (prop::collection::vec(path.clone(), 1..4), any_policy(), prop::bool::weighted(0.8))
            .prop_map(|(paths, reliability, whole)| Step::Offer { paths, reliability, whole }),
        7 => any_ahead().prop_map(Step::Ahead),
        7 => any_twice().prop_map(Step::Twice),
        4 => Just(Step::GiveUp),
        1 => (0u32..4).prop_map(|priority| Step::Evict { priority }),
        2 => (path.clone(), 28usize..80, any::<bool>())
            .prop_map(|(path, room, repeat)| Step::Forward { path, room, repeat }),
        1 => (-1i32..3).prop_map(|ahead| Step::Shutdown { ahead }),
        1 => (path.clone(), path.clone()).prop_map(|(path, target)| Step::TimeOut { path, target }),
        4 => path.clone().prop_map(|path| Step::Resend { path }),
        1 => (path.clone(), 0..=PATHS).prop_map(|(from, to)| Step::Redirect { from, to }),
        2 => (0u64..9, path.clone()).prop_map(|(ahead, to)| Step::Move { ahead, to }),
        2 => (0u32..9, path).prop_map(|(ahead, to)| Step::Report { ahead, to }),
        1 => (1u64..3000).prop_map(|millis| Step::Wait { millis }),
        1 => any::<bool>().prop_map(|recovering| Step::Recover { recovering }),
    ]
}

fn any_rules() -> impl Strategy<Value = AssociationConfig> {
    (any::<[bool; 6]>(), 0..CwndUpdate::ALL.len(), 0..BufferSplit::ALL.len()).prop_map(
        |([sfr, dac, frc, smart, overbooking, by_time], cuc, split)| AssociationConfig {
            loss_detection: if by_time { LossDetection::Rack } else { LossDetection::Rfc9260 },
            delayed_ack: dac,
            experiment: Experiment {
                split_fast_retransmit: sfr,
                pseudo_cumulative_recovery: frc,
                smart_fast_retransmit: smart,
                split_overbooking: overbooking,
                cwnd_update: CwndUpdate::ALL[cuc],
                ..Experiment::default()
            },
            buffer_split: BufferSplit::ALL[split],
            ..AssociationConfig::default()
        },
    )
}

impl Bench {
    /// Takes a step; returns the bytes that it sent for the first time, and those that it freed by giving up.
    fn take(&mut self, step: &Step) -> (usize, usize) {
        match step {
            Step::Offer { paths, reliability, whole } => {
                let number = self.sent.outstanding.ring.highest() + 1;
                for (position, &path) in paths.iter().enumerate() {
                    let end = *whole && position + 1 == paths.len();
                    let shape = [if position == 0 { "B" } else { "" }, if end { "E" } else { "" }].concat();
                    self.offer(path, u16::from(path), number, &shape, *reliability);
                }
                return (paths.len() * DATA, 0);
            }
            Step::Ahead(ahead) => return (self.take_ahead(ahead), 0),
            Step::Twice(twice) => self.take_twice(twice),
            Step::GiveUp => {
                let mut freed = 0;
                while let Some(terms) = self.sent.next_condemned(self.now) {
                    freed += self.sent.abandon(&terms, terms.number % 3 == 0, &mut Vec::new());
                    self.check();
                }
                self.sent.advance();
                return (0, freed);
            }
            Step::Evict { priority } => {
                let (freeable, next) =
                    (self.sent.evictable(*priority, 1), self.sent.next_eviction(*priority));
                assert_eq!(freeable > 0, next.is_some());
                let freed = next.map_or(0, |terms| self.sent.abandon(&terms, false, &mut Vec::new()));
                self.sent.advance();
                assert!(freed >= freeable);
                return (0, freed);
            }
            Step::Forward { path, room, repeat } => {
                if *repeat {
                    self.sent.repeat_forward(self.now, Duration::ZERO);
                }
                self.check_forward(*path, *room);
            }
            Step::Send { path, len } => {
                self.send(*path, HEADER + *len);
                return (*len, 0);
            }
            Step::Sack { via, ahead, renegable, non_renegable, packets, window } => {
                let cumulative = self.sent.outstanding.cumulative_tsn().0.wrapping_add_signed(*ahead);
                let outcome = self.hear_window(*via, cumulative, renegable, non_renegable, *packets, *window);
                // A refused one leaves the report as it was, and nobody looks at it.
                if outcome.is_err() {
                    self.report = AckReport::default();
                }
                self.sent.advance();
            }
            Step::Shutdown { ahead } => {
                let tsn = Tsn(self.sent.outstanding.cumulative_tsn().0.wrapping_add_signed(*ahead));
                let mut report = AckReport::default();
                let _ = self.sent.on_shutdown(self.now, tsn, PathId(0), &mut report);
                self.report = report;
                self.sent.advance();
            }
            Step::TimeOut { path, target } => {
                self.time_out(*path, *target);
            }
            Step::Resend { path } => {
                self.resend(*path);
            }
            Step::Move { ahead, to } => {
                self.sent.move_chunk(self.sent.outstanding.ring.cumulative() + ahead, PathId(*to));
            }
            Step::Report { ahead, to } => {
                let tsn = Tsn(self.sent.outstanding.cumulative_tsn().0.wrapping_add(*ahead));
                if let Some(dropped) = self.sent.outstanding.reported(tsn, &[0; 1452]) {
                    self.sent.on_reported(dropped, PathId(*to));
                }
            }
            Step::Redirect { from, to } => self.sent.redirect(PathId(*from), PathId(*to), true),
            Step::Wait { millis } => self.wait(*millis),
            Step::Recover { recovering } => self.recovering = *recovering,
        }
        (0, 0)
    }

    /// Does nothing where nothing is copied.
    fn take_twice(&mut self, step: &Twice) {
        match step {
            Twice::Copy { path, skipped } => {
                let found = self.sent.copy_candidate(PathId(*path)).is_some();
                if found && *skipped {
                    self.sent.copies.skip(PathId(*path));
                } else {
                    let (now, path) = (self.now, PathId(*path));
                    assert_eq!(self.sent.send_copy(now, path).is_some(), found);
                }
            }
            Twice::Duplicates { via, ahead } => {
                let base = self.sent.outstanding.cumulative_tsn().0;
                let tsns: Vec<Tsn> =
                    ahead.iter().map(|&ahead| Tsn(base.wrapping_add_signed(ahead))).collect();
                let (now, via, list) = (self.now, PathId(*via), List::Values(&tsns));
                if self.sent.on_late_duplicates(now, list, via, &mut self.report) {
                    self.check_report();
                    assert_eq!(self.report.released, 0);
                }
            }
        }
    }

    /// Returns the bytes that are new.
    fn take_ahead(&mut self, step: &Ahead) -> usize {
        match step {
            Ahead::Assign { path, len } => {
                self.assign(*path, HEADER + *len);
                return *len;
            }
            Ahead::Offer { path, reliability } => {
                self.offer_ahead(*path, self.sent.outstanding.ring.highest() + 1, *reliability);
                return DATA;
            }
            Ahead::Leave { path } => {
                self.leave(*path);
            }
            Ahead::HandOver { from, to } => self.sent.outstanding.hand_over(PathId(*from), PathId(*to)),
        }
        0
    }

    /// A FORWARD TSN moves the peer over what was given up and nothing else.
    fn check_forward(&mut self, path: u8, room: usize) {
        let due = self.sent.forward_is_due();
        let told = self.forward_in(path, room);
        assert_eq!(told.is_some(), due, "a packet of its own takes it");
        if let Some((tsn, _)) = told {
            let ahead = u64::from(tsn.wrapping_sub(self.sent.outstanding.cumulative_tsn().0));
            let first = self.sent.outstanding.ring.cumulative() + 1;
            assert!((first..first + ahead).all(|index| {
                self.sent
                    .outstanding
                    .ring
                    .get(index)
                    .is_some_and(|sent| sent.standing == ChunkState::Abandoned)
            }));
            assert_eq!(self.sent.forward_path(), Some(PathId(path)));
        }
    }

    /// Checks that a SACK leaves sound what readers of the report rely on.
    fn check_report(&self) {
        for (ack, progress) in self.report.acks.iter().zip(&self.report.progress) {
            assert_eq!(ack.path, progress.path, "in step");
            assert_eq!(ack.flight_after, self.sent.outstanding.flight_on(ack.path));
            assert!(ack.acked + progress.uncredited > 0 || ack.lost, "an entry says something");
            assert!(ack.recovered_to <= self.sent.outstanding.ring.highest());
        }
        assert_eq!(self.report.acks.len(), self.report.progress.len());
    }
}

proptest! {
    #[test]
    fn the_books_balance_whatever_happens(
        config in any_rules(),
        initial in prop_oneof![Just(1u32), Just(u32::MAX - 5), any::<u32>()],
        copying: bool,
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let mut bench = Bench::starting_at(Tsn(initial), usize::from(PATHS), &config);
        if copying {
            bench.sent.start_copying(CopyScope::Everything);
            bench.sent.copies.tell_trip(PathId(1), ResponseTime { shortest: Duration::from_millis(9), usual: None });
        }
        let (mut sent, mut released) = (0, 0);
        for step in &steps {
            let (new, freed) = bench.take(step);
            sent += new;
            released += freed;
            bench.check();
            if matches!(step, Step::Sack { .. } | Step::Shutdown { .. }) {
                bench.check_report();
                released += bench.report.released;
            }
            for path in 0..PATHS {
                // A verdict is never more than the peer can take, except for one probe.
                if let Verdict::Go(allowance) = bench.sent.verdict(PathId(path), 20_000, 1468, usize::from(PATHS), || false) {
                    prop_assert!(allowance <= bench.sent.peer_window().max(1468));
                }
            }
        }
        let held = bench.sent.outstanding.user_data();
        prop_assert_eq!(released + held, sent, "released once each under {}", config.experiment.cwnd_update.print());

        for path in 0..PATHS {
            while bench.leave(path).is_some() {}
        }
        let all = Tsn(initial.wrapping_add(bench.sent.outstanding.ring.highest() as u32).wrapping_sub(1));
        bench.sack(0, all.0, &[]);
        bench.sent.advance();
        prop_assert!(bench.sent.outstanding.is_empty() && bench.sent.outstanding.flight() == 0 && !bench.sent.outstanding.has_lost());
        prop_assert!(!bench.sent.forward_is_due() && bench.sent.forward_path().is_none());
        prop_assert_eq!(released + bench.report.released, sent);
        for path in 0..PATHS {
            // What was sent again and is acknowledged by a copy may never be reported as a duplicate.
            bench.sent.copies.give_up(&mut bench.sent.outstanding, PathId(path));
            let load = bench.load(path);
            prop_assert_eq!((load.flight, load.queued, load.promised, load.timed.index()), (0, 0, 0, None));
        }
    }
}
