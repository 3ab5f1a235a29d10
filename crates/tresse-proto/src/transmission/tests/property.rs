//! Whatever happens in whatever order, the books balance (`Bench::check`), nothing is released twice, and a
//! SACK for everything leaves nothing behind.

use proptest::prelude::*;

use super::*;
use crate::config::SwitchValue;

/// Paths of the sender under test.
const PATHS: u8 = 3;

#[derive(Clone, Debug)]
enum Step {
    Send {
        path: u8,
        len: usize,
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
    Wait {
        millis: u64,
    },
    Recover {
        recovering: bool,
    },
}

fn any_blocks() -> impl Strategy<Value = Vec<Block>> {
    // Mostly near the few chunks there are, sometimes anything, and not always sound.
    let near = (1u16..20, 0u16..6).prop_map(|(start, len)| (start, start + len));
    prop::collection::vec(prop_oneof![12 => near, 1 => any::<Block>()], 0..4)
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
        1 => (-1i32..3).prop_map(|ahead| Step::Shutdown { ahead }),
        1 => (path.clone(), path.clone()).prop_map(|(path, target)| Step::TimeOut { path, target }),
        4 => path.clone().prop_map(|path| Step::Resend { path }),
        1 => (path, 0..=PATHS).prop_map(|(from, to)| Step::Redirect { from, to }),
        1 => (1u64..3000).prop_map(|millis| Step::Wait { millis }),
        1 => any::<bool>().prop_map(|recovering| Step::Recover { recovering }),
    ]
}

fn any_rules() -> impl Strategy<Value = AssociationConfig> {
    (any::<[bool; 5]>(), 0..CwndUpdate::ALL.len(), 0..BufferSplit::ALL.len()).prop_map(
        |([sfr, dac, frc, smart, overbooking], cuc, split)| AssociationConfig {
            split_fast_retransmit: sfr,
            delayed_ack: dac,
            pseudo_cumulative_recovery: frc,
            smart_fast_retransmit: smart,
            split_overbooking: overbooking,
            cwnd_update: CwndUpdate::ALL[cuc],
            buffer_split: BufferSplit::ALL[split],
            ..AssociationConfig::default()
        },
    )
}

impl Bench {
    /// Takes a step; answers the bytes that it sent for the first time.
    fn take(&mut self, step: &Step) -> usize {
        match step {
            Step::Send { path, len } => {
                self.send(*path, *len);
                return *len;
            }
            Step::Sack { via, ahead, renegable, non_renegable, packets, window } => {
                let cumulative = self.sent.cumulative_tsn().0.wrapping_add_signed(*ahead);
                let outcome = self.hear_window(*via, cumulative, renegable, non_renegable, *packets, *window);
                // A refused one leaves the report as it was, and nobody looks at it.
                if outcome.is_err() {
                    self.report = AckReport::default();
                }
            }
            Step::Shutdown { ahead } => {
                let tsn = Tsn(self.sent.cumulative_tsn().0.wrapping_add_signed(*ahead));
                let mut report = AckReport::default();
                let _ = self.sent.on_shutdown(self.now, tsn, PathId(0), &mut report);
                self.report = report;
            }
            Step::TimeOut { path, target } => {
                self.time_out(*path, *target);
            }
            Step::Resend { path } => {
                self.resend(*path);
            }
            Step::Redirect { from, to } => self.sent.redirect(PathId(*from), PathId(*to), true),
            Step::Wait { millis } => self.wait(*millis),
            Step::Recover { recovering } => self.recovering = *recovering,
        }
        0
    }

    /// What any SACK must leave sound for those who read the report.
    fn check_report(&self) {
        for (ack, progress) in self.report.acks.iter().zip(&self.report.progress) {
            assert_eq!(ack.path, progress.path, "in step");
            assert_eq!(ack.flight_after, self.sent.flight_on(ack.path));
            assert!(ack.acked > 0 || ack.lost, "an entry says something");
            assert!(ack.recovered_to <= self.sent.ring.highest());
        }
        assert_eq!(self.report.acks.len(), self.report.progress.len());
    }
}

proptest! {
    #[test]
    fn the_books_balance_whatever_happens(
        config in any_rules(),
        initial in prop_oneof![Just(1u32), Just(u32::MAX - 5), any::<u32>()],
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let mut bench = Bench::starting_at(Tsn(initial), usize::from(PATHS), &config);
        let (mut sent, mut released) = (0, 0);
        for step in &steps {
            sent += bench.take(step);
            bench.check();
            if matches!(step, Step::Sack { .. } | Step::Shutdown { .. }) {
                bench.check_report();
                released += bench.report.released;
            }
            for path in 0..PATHS {
                // A verdict is never more than the peer can take, except for one probe.
                if let Verdict::Go(allowance) = bench.sent.verdict(PathId(path), 20_000, 1452, usize::from(PATHS)) {
                    prop_assert!(allowance <= bench.sent.peer_window().max(1452));
                }
            }
        }
        let held: usize = (0..PATHS).map(|path| bench.queued(path)).sum();
        prop_assert_eq!(released + held, sent, "released once each under {}", config.cwnd_update.print());

        let all = Tsn(initial.wrapping_add(bench.sent.ring.highest() as u32).wrapping_sub(1));
        bench.sack(0, all.0, &[]);
        prop_assert!(bench.sent.is_empty() && bench.sent.flight() == 0 && !bench.sent.has_lost());
        prop_assert_eq!(released + bench.report.released, sent);
        for path in 0..PATHS {
            let load = bench.load(path);
            prop_assert_eq!((load.flight, load.queued, load.timed), (0, 0, None));
        }
    }
}
