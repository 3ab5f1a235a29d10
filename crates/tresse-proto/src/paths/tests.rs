//! The set of paths as a whole: timers, counters and windows in worked sequences.

use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng;

use super::*;
use crate::config::LossDetection;
use crate::interface::stats::Limit;

/// A full DATA chunk.
const M: usize = 1468;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(7)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Confirmed paths 10.n.0.1 > 10.n.0.2 with an MTU of 1500 bytes.
fn paths_with(count: u8, config: &AssociationConfig) -> Paths {
    let config = AssociationConfig { mtu_discovery: false, ..config.clone() };
    let rules = Arc::new(PathRules::new(&config));
    let mut paths = Paths::new(&config, &Registry::default(), rules, DataFormat::Data, at(0), 0).unwrap();
    for n in 0..count {
        let (local, remote) = (IpAddr::from([10, n, 0, 1]), IpAddr::from([10, n, 0, 2]));
        assert_eq!(paths.add(at(0), local, remote, None, true), Some(PathId(n)));
    }
    paths.on_established(at(0), &mut rng());
    paths
}

/// Loss detection and timeouts of RFC 9260 (§7.2.4, §16), and the defaults for the rest.
fn by_reports() -> AssociationConfig {
    AssociationConfig {
        loss_detection: LossDetection::Rfc9260,
        rto_min: Duration::from_secs(1),
        association_max_retrans: 10,
        path_max_retrans: 5,
        ..AssociationConfig::default()
    }
}

fn paths(count: u8) -> Paths {
    paths_with(count, &AssociationConfig { congestion_control: "rfc9260".to_owned(), ..by_reports() })
}

fn one_at_a_time(count: u8) -> Paths {
    paths_with(count, &AssociationConfig::preset("rfc9260").unwrap())
}

fn ack(path: PathId, acked: usize, flight_before: usize, flight_after: usize) -> PathAck {
    let (may_grow, lost, exit_point, recovered_to) = (true, false, 100, 10);
    let lost_bytes = flight_before - flight_after - acked;
    PathAck {
        path,
        acked,
        lost_bytes,
        rtt: None,
        flight_before,
        flight_after,
        may_grow,
        lost,
        exit_point,
        recovered_to,
    }
}

fn progress(path: PathId, earliest_acked: bool, flight_after: usize) -> PathProgress {
    PathProgress {
        path,
        rtt: None,
        shortest: None,
        via: path,
        earliest_acked,
        proven: true,
        longest_proven: 0,
        uncredited: 0,
        user_data: 0,
        flight_after,
        awaits: flight_after > 0,
        late: false,
        look_again: None,
        lost_retransmission: false,
    }
}

/// Returns the timers that expire until `end`, with their times.
fn run_until(paths: &mut Paths, end: Instant) -> Vec<(Instant, PathTimer)> {
    let mut fired = Vec::new();
    while let Some(deadline) = paths.next_deadline().filter(|&deadline| deadline <= end) {
        while let Some(timer) = paths.pop_due(deadline) {
            fired.push((deadline, timer));
        }
    }
    fired
}

fn changes(paths: &mut Paths) -> Vec<(PathId, PathState)> {
    std::iter::from_fn(|| paths.pop_state_change()).collect()
}

/// Paths without heartbeats, whose timers would mix with others.
fn silent(count: u8) -> Paths {
    let heartbeat_interval = Duration::ZERO;
    paths_with(count, &AssociationConfig { heartbeat_interval, ..by_reports() })
}

const A: PathId = PathId(0);
const B: PathId = PathId(1);
const C: PathId = PathId(2);

mod set {
    use super::*;

    #[test]
    fn paths_are_found_by_their_addresses() {
        let paths = paths(2);
        assert_eq!(paths.len(), 2);
        assert_eq!(paths.find(address("10.1.0.1"), address("10.1.0.2")), Some(B));
        assert_eq!(paths.find(address("10.0.0.1"), address("10.1.0.2")), None);
        assert_eq!(paths.find_remote(address("10.0.0.2")), Some(A));
        assert_eq!(paths.get(B).local(), address("10.1.0.1"));
    }

    #[test]
    fn there_are_no_more_than_allowed() {
        let mut paths = paths_with(1, &AssociationConfig { max_paths: 1, ..AssociationConfig::default() });
        let remote = address("10.9.0.2");
        assert_eq!(paths.add(at(0), address("10.9.0.1"), remote, None, true), None);
        assert_eq!(paths.len(), 1);
    }

    #[test]
    fn an_unknown_controller_is_refused() {
        let config =
            AssociationConfig { congestion_control: "vegas".to_owned(), ..AssociationConfig::default() };
        let rules = Arc::new(PathRules::new(&config));
        assert!(Paths::new(&config, &Registry::default(), rules, DataFormat::Data, at(0), 0).is_err());
    }

    #[test]
    fn a_port_that_moves_changes_what_a_packet_holds() {
        let mut paths = paths(2);
        assert_eq!(paths.window(A).pmdcs, M);
        paths.on_packet_received(A, at(0), 100, Some(9899));
        assert_eq!(paths.get(A).encapsulation_port(), Some(9899));
        assert_eq!((paths.window(A).pmdcs, paths.window(B).pmdcs), (M - 8, M));
        assert_eq!((paths.smallest_chunk(), paths.smallest_payload()), (M - 8, M - 24));
        paths.on_packet_received(A, at(0), 100, None);
        assert_eq!((paths.smallest_chunk(), paths.smallest_payload()), (M, M - 16));
    }

    #[test]
    fn slow_start_ends_at_the_peers_first_window() {
        let mut paths = paths(1);
        paths.windows.limit_ssthresh(65_536);
        assert_eq!(paths.window(A).ssthresh, 65_536);
        paths.windows.limit_ssthresh(1 << 20);
        assert_eq!(paths.window(A).ssthresh, 65_536);
        paths.windows.limit_ssthresh(0);
        assert_eq!(paths.window(A).ssthresh, M);
    }

    #[test]
    fn views_and_statistics_show_the_same_path() {
        let mut paths = paths(2);
        paths.on_rtt(B, Duration::from_millis(100));
        paths.on_data_sent(B, at(5), 1000, false);
        paths.on_packet_sent(B, 1480, true);
        paths.path_mut_quietly(B).note_limit(at(10), Limit::CongestionWindow, false);
        let view = paths.view(B, M, true);
        assert_eq!((view.id, view.primary, view.state), (B, false, PathState::Active));
        assert_eq!((view.cwnd, view.flight, view.room), (3 * M, M, 2 * M));
        assert_eq!((view.srtt, view.rttvar), (Some(Duration::from_millis(100)), Duration::from_millis(50)));
        assert_eq!((view.mtu, view.last_sent), (1500, at(5)));
        let stats = paths.stats(B, at(30));
        assert_eq!((stats.cwnd, stats.srtt, stats.rto), (view.cwnd, view.srtt, view.rto));
        assert_eq!((stats.packets_sent, stats.packet_bytes_sent), (1, 1480));
        assert_eq!(stats.limited_by.of(Limit::CongestionWindow), Duration::from_millis(20));
        assert!(paths.view(A, 0, true).primary && paths.stats(A, at(0)).primary);
    }
}

mod choice {
    use super::*;

    fn fail(paths: &mut Paths, id: PathId) {
        for _ in 0..6 {
            paths.on_t3(id, at(0));
        }
        assert!(!paths.usable(id));
    }

    #[test]
    fn control_chunks_take_the_primary_else_a_usable_path_else_the_least_failed() {
        let primary = |paths: &Paths| {
            paths.iter().map(|path| path.id).find(|&id| paths.view(id, 0, true).primary).unwrap()
        };
        let mut paths = paths(3);
        paths.set_primary(B);
        paths.set_primary(PathId(9));
        assert_eq!((primary(&paths), paths.best_for_control()), (B, B));
        fail(&mut paths, B);
        assert_eq!((primary(&paths), paths.best_for_control()), (B, A));
        fail(&mut paths, A);
        assert_eq!(paths.best_for_control(), C);
        fail(&mut paths, C);
        assert_eq!(paths.best_for_control(), B, "all alike: the primary");
    }

    #[test]
    fn new_data_goes_on_all_usable_paths_or_on_one() {
        let eligible =
            |paths: &Paths| (0..3).filter(|&n| paths.may_carry_new_data(PathId(n))).collect::<Vec<_>>();
        let mut all = paths(3);
        assert_eq!(eligible(&all), [0, 1, 2]);
        fail(&mut all, B);
        assert_eq!(eligible(&all), [0, 2]);
        fail(&mut all, A);
        fail(&mut all, C);
        assert_eq!(eligible(&all), [0], "never none at all");
        let mut one = one_at_a_time(3);
        assert_eq!(eligible(&one), [0]);
        fail(&mut one, A);
        assert_eq!(eligible(&one), [1]);
    }

    #[test]
    fn a_timeout_turns_to_the_path_that_shares_least() {
        let mut mesh = paths(1);
        for (local, remote) in [("10.0.0.1", "10.1.0.2"), ("10.1.0.1", "10.0.0.2"), ("10.1.0.1", "10.1.0.2")]
        {
            mesh.add(at(0), address(local), address(remote), None, true);
        }
        assert_eq!(mesh.alternate(A), PathId(3));
        fail(&mut mesh, PathId(3));
        assert_eq!(mesh.alternate(A), B);
        let mut three = paths(3);
        assert_eq!([A, B, C].map(|id| three.alternate(id)), [B, C, A]);
        fail(&mut three, C);
        assert_eq!([A, B, C].map(|id| three.alternate(id)), [B, A, A]);
        fail(&mut three, B);
        assert_eq!(three.alternate(A), A);
    }

    #[test]
    fn a_sack_avoids_paths_that_cannot_be_used() {
        let mut paths = paths_with(
            2,
            &AssociationConfig { sack_path: SackPath::RoundRobin, ..AssociationConfig::default() },
        );
        assert_eq!(paths.ack_path(A, B, [A, B]), A);
        paths.path_mut_quietly(A).on_sack_sent(at(5));
        assert_eq!(paths.ack_path(A, B, [A, B]), B);
        fail(&mut paths, B);
        assert_eq!(paths.ack_path(A, B, [A, B]), A);
        let unconfirmed = paths.add(at(0), address("10.7.0.1"), address("10.7.0.2"), None, false).unwrap();
        assert_eq!(paths.ack_path(unconfirmed, unconfirmed, [unconfirmed]), A);
    }
}

mod t3 {
    use super::*;

    #[test]
    fn starts_with_data_and_keeps_running_while_more_is_sent() {
        let mut paths = silent(1);
        paths.on_data_sent(A, at(100), 1000, false);
        paths.on_data_sent(A, at(600), 1000, false);
        assert_eq!(run_until(&mut paths, at(1099)), []);
        assert_eq!(run_until(&mut paths, at(1100)), [(at(1100), PathTimer::T3(A))]);
        assert_eq!(paths.pop_due(at(1100)), None);
    }

    #[test]
    fn restarts_when_the_earliest_chunk_is_acknowledged_and_stops_when_none_is_left() {
        let mut paths = silent(1);
        paths.on_data_sent(A, at(0), 1000, false);
        paths.on_sack(at(300), &[ack(A, M, 3 * M, 2 * M)], &[progress(A, true, 2 * M)]);
        assert_eq!(run_until(&mut paths, at(1299)), []);
        paths.on_sack(at(1299), &[ack(A, M, 2 * M, M)], &[progress(A, false, M)]);
        assert_eq!(run_until(&mut paths, at(1300)), [(at(1300), PathTimer::T3(A))]);

        paths.on_data_sent(A, at(1300), 1000, false);
        paths.on_sack(at(1400), &[ack(A, M, M, 0)], &[progress(A, true, 0)]);
        assert!(!paths.get(A).t3_runs());
        assert_eq!(run_until(&mut paths, at(60_000)), []);
    }

    #[test]
    fn runs_whenever_a_sack_leaves_something_in_flight() {
        let mut paths = silent(1);
        paths.on_sack(at(300), &[], &[progress(A, false, M)]);
        assert_eq!(run_until(&mut paths, at(1300)), [(at(1300), PathTimer::T3(A))]);
    }

    #[test]
    fn doubles_the_timeout_until_a_round_trip_is_measured() {
        let mut paths = silent(1);
        let mut expirations = Vec::new();
        let mut now = at(0);
        for _ in 0..4 {
            paths.on_data_sent(A, now, 1000, false);
            let fired = run_until(&mut paths, at(100_000));
            now = fired[0].0;
            expirations.push(now);
            paths.on_t3(A, now);
        }
        assert_eq!(expirations, [at(1000), at(3000), at(7000), at(15_000)]);
        let sample = PathProgress { rtt: Some(Duration::from_millis(40)), ..progress(A, true, 0) };
        paths.on_sack(now, &[ack(A, M, M, 0)], &[sample]);
        assert_eq!(paths.get(A).rto(), Duration::from_secs(1));
        assert_eq!(paths.window(A).srtt, Some(Duration::from_millis(40)));
    }

    #[test]
    fn an_expiration_on_one_path_leaves_the_others_alone() {
        let mut paths = silent(2);
        paths.on_data_sent(A, at(0), 1000, false);
        paths.on_data_sent(B, at(500), 1000, false);
        assert_eq!(paths.pop_due(at(1000)), Some(PathTimer::T3(A)));
        paths.on_t3(A, at(1000));
        assert_eq!((paths.window(A).cwnd, paths.window(B).cwnd), (M, 3 * M));
        assert_eq!(paths.next_deadline(), Some(at(1500)));
    }
}

mod errors {
    use super::*;

    #[test]
    fn six_timeouts_make_a_path_inactive_and_an_acknowledgement_brings_it_back() {
        let mut paths = silent(2);
        for expected in 1..=5 {
            let failure = paths.on_t3(A, at(0));
            assert_eq!((failure.association_errors, failure.association_lost), (expected, false));
        }
        assert_eq!(changes(&mut paths), []);
        paths.on_t3(A, at(0));
        assert_eq!(changes(&mut paths), [(A, PathState::Inactive)]);
        assert!(!paths.window(A).usable);
        assert_eq!(paths.stats(A, at(0)).timeouts, 6);

        paths.on_sack(at(0), &[ack(A, M, M, 0)], &[progress(A, true, 0)]);
        assert_eq!(changes(&mut paths), [(A, PathState::Active)]);
        assert!(paths.window(A).usable);
        assert_eq!(paths.on_t3(A, at(0)).association_errors, 1);
    }

    #[test]
    fn eleven_timeouts_in_a_row_lose_the_association() {
        let mut paths = silent(1);
        for _ in 0..10 {
            assert!(!paths.on_t3(A, at(0)).association_lost);
        }
        assert!(paths.on_t3(A, at(0)).association_lost);
    }

    #[test]
    fn an_acknowledgement_on_any_path_clears_the_associations_errors() {
        let mut paths = silent(2);
        for _ in 0..5 {
            paths.on_t3(A, at(0));
        }
        paths.on_sack(at(0), &[ack(B, M, M, 0)], &[progress(B, true, 0)]);
        let failure = paths.on_t3(A, at(0));
        assert_eq!(failure.association_errors, 1);
        assert!(!paths.usable(A), "the path's own counter went on");
    }

    #[test]
    fn probes_of_a_closed_window_are_no_errors() {
        let mut paths = silent(1);
        for turn in 0..20 {
            // It is not known yet whether the first probe will be answered.
            assert_eq!(paths.on_t3(A, at(0)).association_errors, u32::from(turn == 0));
            paths.on_probe_answered(A);
        }
        assert!(paths.usable(A));
        assert_eq!(paths.get(A).rto(), Duration::from_secs(60));
    }

    #[test]
    fn an_unanswered_heartbeat_speaks_for_the_association_where_data_would_go() {
        let mut concurrent = paths(2);
        assert_eq!(concurrent.on_heartbeat_expired(B).association_errors, 1);
        let mut single = one_at_a_time(2);
        assert_eq!(single.on_heartbeat_expired(B).association_errors, 0);
        assert_eq!(single.on_heartbeat_expired(A).association_errors, 1);
    }

    #[test]
    fn silence_on_the_only_path_ends_the_association() {
        let mut paths = paths(1);
        let lost = (1..).find(|_| paths.on_heartbeat_expired(A).association_lost);
        assert_eq!(lost, Some(11));
        assert_eq!(paths.get(A).state(), PathState::Inactive);
    }
}

mod heartbeats {
    use super::*;

    fn add_unconfirmed(paths: &mut Paths, n: u8) -> PathId {
        let (local, remote) = (IpAddr::from([10, n, 0, 1]), IpAddr::from([10, n, 0, 2]));
        paths.add(at(0), local, remote, None, false).unwrap()
    }

    #[test]
    fn an_idle_path_is_probed_and_measured() {
        let mut paths = paths(1);
        let fired = run_until(&mut paths, at(32_000));
        let [(due, PathTimer::Heartbeat(A))] = fired[..] else { panic!("{fired:?}") };
        assert!((at(30_500)..at(31_500)).contains(&due), "{due:?}");
        assert_eq!(paths.next_deadline(), None, "until it has left");

        let info = paths.heartbeat(A, due, &mut rng());
        assert_eq!(paths.next_deadline(), Some(due + Duration::from_secs(1)));
        let answered = due + Duration::from_millis(30);
        assert_eq!(paths.on_heartbeat_ack(answered, &info), Ok(A));
        assert_eq!(paths.get(A).srtt(), Some(Duration::from_millis(30)));
        let next = paths.next_deadline().unwrap();
        assert!((30.5..31.5).contains(&(next - due).as_secs_f64()));
        let stats = paths.stats(A, answered);
        assert_eq!((stats.heartbeats_sent, stats.heartbeats_acked), (1, 1));
    }

    #[test]
    fn an_unanswered_heartbeat_backs_off_and_a_late_answer_still_counts() {
        let config = AssociationConfig { sack_path: SackPath::LastData, ..AssociationConfig::default() };
        let mut paths = paths_with(2, &config);
        let info = paths.heartbeat(A, at(0), &mut rng());
        assert_eq!(paths.pop_due(at(1000)), Some(PathTimer::HeartbeatExpired(A)));
        assert_eq!(paths.on_heartbeat_expired(A).association_errors, 1);
        assert_eq!(paths.get(A).rto(), Duration::from_secs(2));
        assert_eq!(paths.on_heartbeat_ack(at(1200), &info), Ok(A));
        assert_eq!(paths.on_heartbeat_expired(A).association_errors, 1, "it was cleared in between");
    }

    #[test]
    fn strays_change_nothing() {
        let mut paths = paths(1);
        let info = paths.heartbeat(A, at(0), &mut rng());
        let mut other_path = info;
        other_path[0] = 9;
        for stray in [&info[..16], &[][..], &other_path[..], &[0; 17][..]] {
            assert_eq!(paths.on_heartbeat_ack(at(10), stray), Err(timers::StrayHeartbeatAck));
        }
        assert_eq!(paths.get(A).srtt(), None);
        assert_eq!(paths.on_heartbeat_ack(at(10), &info), Ok(A));
        assert_eq!(paths.on_heartbeat_ack(at(10), &info), Err(timers::StrayHeartbeatAck), "a second time");
    }

    #[test]
    fn an_answer_does_not_hide_that_data_is_not_acknowledged() {
        let mut paths = paths(2);
        paths.on_data_sent(A, at(0), 1000, false);
        paths.on_t3(A, at(1000));
        paths.on_data_sent(A, at(1000), 1000, false);
        let info = paths.heartbeat(B, at(1000), &mut rng());
        paths.on_heartbeat_ack(at(1010), &info).unwrap();
        assert_eq!(paths.on_t3(A, at(3000)).association_errors, 2);
        let info = paths.heartbeat(B, at(3000), &mut rng());
        paths.on_heartbeat_ack(at(3010), &info).unwrap();
        assert_eq!(paths.on_t3(A, at(7000)).association_errors, 1, "nothing was outstanding");
    }

    #[test]
    fn unconfirmed_paths_are_probed_one_an_rto() {
        let mut paths = silent(1);
        let (b, c) = (add_unconfirmed(&mut paths, 1), add_unconfirmed(&mut paths, 2));
        assert!(!paths.usable(b) && !paths.usable(c));
        assert_eq!(run_until(&mut paths, at(0)), [(at(0), PathTimer::Heartbeat(b))]);
        let info = paths.heartbeat(b, at(0), &mut rng());
        assert_eq!(paths.on_heartbeat_ack(at(40), &info), Ok(b));
        assert_eq!(changes(&mut paths), [(b, PathState::Active)]);
        assert!(paths.usable(b) && paths.window(b).usable);
        assert_eq!(run_until(&mut paths, at(1000)), [(at(1000), PathTimer::Heartbeat(c))]);

        paths.heartbeat(c, at(1000), &mut rng());
        assert_eq!(paths.pop_due(at(2000)), Some(PathTimer::HeartbeatExpired(c)));
        paths.on_heartbeat_expired(c);
        assert_eq!(paths.pop_due(at(2000)), Some(PathTimer::Heartbeat(c)), "at once");
        paths.heartbeat(c, at(2000), &mut rng());
        assert_eq!(paths.next_deadline(), Some(at(4000)), "twice as patient");
    }

    #[test]
    fn a_path_that_is_never_confirmed_turns_inactive_and_stays_probed() {
        let mut paths = paths(1);
        let b = add_unconfirmed(&mut paths, 1);
        let mut now = at(0);
        for _ in 0..6 {
            let fired = run_until(&mut paths, now + Duration::from_secs(61));
            now = fired.iter().find(|(_, timer)| *timer == PathTimer::Heartbeat(b)).unwrap().0;
            paths.heartbeat(b, now, &mut rng());
            paths.on_heartbeat_expired(b);
            paths.paths[1].heartbeats.on_expired();
        }
        assert_eq!(changes(&mut paths), [(b, PathState::Inactive)]);
        assert!(paths.paths[1].heartbeat_due(Duration::from_secs(30), now, None, false).is_some());
        let info = paths.heartbeat(b, now, &mut rng());
        paths.on_heartbeat_ack(now, &info).unwrap();
        assert_eq!(changes(&mut paths), [(b, PathState::Active)]);
    }

    #[test]
    fn a_path_that_brings_data_is_measured_again_where_sacks_take_the_fastest() {
        let after_data = |settings: &[(&str, &str)]| {
            let mut config = AssociationConfig::default();
            settings.iter().for_each(|(name, value)| config.set(name, value).unwrap());
            let mut paths = paths_with(2, &config);
            [A, B].into_iter().for_each(|path| paths.on_rtt(path, Duration::from_millis(20)));
            assert!(paths.next_deadline().is_none_or(|due| due > at(30_000)), "nothing asks for it at rest");
            paths.on_data_received(B);
            run_until(&mut paths, at(1000))
        };
        assert_eq!(after_data(&[("sack_path", "fastest")]), [(at(500), PathTimer::Heartbeat(B))]);
        assert_eq!(after_data(&[("sack_path", "round_robin")]), []);
        assert_eq!(after_data(&[("sack_path", "fastest"), ("sack_path_probes", "0s")]), []);
        assert_eq!(after_data(&[("sack_path", "fastest"), ("heartbeat_interval", "0s")]), []);
    }

    #[test]
    fn a_shutdown_ends_all_heartbeats() {
        let mut paths = paths(1);
        add_unconfirmed(&mut paths, 1);
        paths.heartbeat(A, at(0), &mut rng());
        paths.stop_heartbeats();
        assert_eq!(paths.next_deadline(), None);
        assert_eq!(paths.pop_due(at(100_000)), None);
    }
}

mod windows {
    use super::*;

    #[test]
    fn a_sack_reaches_every_window_at_once() {
        let mut paths = silent(2);
        let lost = PathAck { lost: true, ..ack(B, M, 10 * M, 8 * M) };
        paths.on_sack(at(0), &[ack(A, M, 3 * M, 2 * M), lost], &[]);
        assert_eq!((paths.window(A).cwnd, paths.window(A).recovery), (4 * M, None));
        assert_eq!((paths.window(B).cwnd, paths.window(B).recovery), (4 * M, Some(100)));
        paths.on_t3(B, at(2));
        assert_eq!((paths.window(B).cwnd, paths.window(B).recovery), (M, None));
    }

    #[test]
    fn a_window_decays_each_rto_without_data() {
        let config = AssociationConfig {
            initial_window: crate::config::Size(20 * M),
            heartbeat_interval: Duration::ZERO,
            ..AssociationConfig::default()
        };
        let mut paths = paths_with(1, &config);
        paths.on_data_sent(A, at(0), 1000, false);
        paths.on_sack(at(50), &[ack(A, M, M, 0)], &[progress(A, true, 0)]);
        let mut seen = Vec::new();
        while let Some(deadline) = paths.next_deadline() {
            assert_eq!(paths.pop_due(deadline), None);
            seen.push((deadline, paths.window(A).cwnd / M));
        }
        assert_eq!(seen, [(at(1000), 10), (at(2000), 5), (at(3000), 4), (at(4000), 4)]);
        assert_eq!(paths.window(A).ssthresh, 20 * M);
        paths.on_data_sent(A, at(9000), 1000, false);
        assert!(!paths.window(A).decayed);
    }

    /// RFC 9260 §7.2.3.
    #[test]
    fn a_timeout_lets_one_packet_be_in_flight_until_the_path_has_answered() {
        let mut paths = silent(2);
        paths.on_t3(A, at(0));
        let room = |paths: &Paths, flight| paths.window(A).room(flight);
        assert_eq!([room(&paths, 0), room(&paths, 17)], [M, 0]);
        paths.on_sack(at(10), &[ack(B, M, M, 0)], &[progress(B, true, 0)]);
        assert_eq!(room(&paths, 17), 0, "another path has answered");
        paths.on_sack(at(20), &[ack(A, 17, 17, 0)], &[progress(A, true, 0)]);
        assert_eq!(room(&paths, 17), M - 17);
    }

    #[test]
    fn what_neither_arrived_nor_is_in_flight_was_lost() {
        let mut paths = silent(1);
        paths.on_sack(
            at(0),
            &[PathAck { lost: true, ..ack(A, 3 * M, 10 * M, 6 * M) }],
            &[PathProgress { user_data: 3 * 1452, ..progress(A, true, 6 * M) }],
        );
        assert_eq!(paths.view(A, 0, true).loss, 0.25);
        assert_eq!(paths.stats(A, at(0)).bytes_acked, 3 * 1452);
    }
}

/// Effect on a path of a chunk that is reinjected on another one.
mod moved_chunks {
    use super::*;

    #[test]
    fn a_window_shrinks_by_the_chunk_and_keeps_a_packet() {
        let mut paths = paths(2);
        paths.windows[0].cwnd = 2 * M + 100;
        paths.windows.shrink(A, M);
        assert_eq!(paths.window(A).cwnd, M + 100);
        paths.windows.shrink(A, M);
        assert_eq!(paths.window(A).cwnd, M);
        paths.windows[0].cwnd = 700;
        paths.windows.shrink(A, M);
        assert_eq!(paths.window(A).cwnd, 700, "no smaller than it was allowed to become");
    }

    #[test]
    fn a_path_that_holds_up_a_faster_one_is_halved_once_in_its_round_trip() {
        let mut paths = paths(2);
        let pause = Duration::from_millis(20);
        (paths.windows[0].cwnd, paths.windows[0].ssthresh) = (20 * M, 10 * M);
        let mut halve = |millis| {
            paths.penalise(A, at(millis), pause);
            (paths.window(A).cwnd / M, paths.window(A).ssthresh / M)
        };
        assert_eq!([halve(100), halve(119), halve(120)], [(10, 5), (10, 5), (5, 2)]);
        assert_eq!([halve(200), halve(300), halve(400), halve(500)], [(2, 2), (1, 2), (1, 2), (1, 2)]);
        paths.windows[1] = Window { cwnd: 8 * M, ssthresh: 100 * M, ..paths.windows[1].clone() };
        paths.penalise(B, at(100), pause);
        assert_eq!((paths.window(B).cwnd, paths.window(B).ssthresh), (4 * M, 100 * M), "in slow start");
        paths.windows[1].recovery = Some(9);
        paths.penalise(B, at(900), pause);
        assert_eq!(paths.window(B).cwnd, 4 * M, "it has just been cut");
    }

    #[test]
    fn or_it_is_cut_once_as_for_a_loss() {
        let mut paths = paths(2);
        (paths.windows[0].cwnd, paths.windows[0].ssthresh) = (20 * M, 40 * M);
        for _ in 0..2 {
            paths.on_late_loss(at(5), A, M, 9 * M, 30);
            assert_eq!((paths.window(A).cwnd, paths.window(A).ssthresh), (10 * M, 10 * M));
            assert_eq!(paths.window(A).recovery, Some(30));
        }
        assert_eq!(paths.window(B).recovery, None);
    }

    #[test]
    fn a_loss_before_its_time_makes_no_window_larger() {
        let mut paths = paths(1);
        (paths.windows[0].cwnd, paths.windows[0].ssthresh) = (2 * M, 40 * M);
        paths.on_late_loss(at(5), A, M, M, 30);
        assert_eq!((paths.window(A).cwnd, paths.window(A).ssthresh), (2 * M, 4 * M));
    }
}

mod marks {
    use super::*;

    #[test]
    fn a_mark_cuts_like_a_loss_but_there_is_nothing_to_repair() {
        let mut paths = paths(2);
        (paths.windows[0].cwnd, paths.windows[0].ssthresh) = (20 * M, 40 * M);
        assert!(paths.on_mark(at(5), A, 7, 20 * M, 30));
        assert_eq!((paths.window(A).cwnd, paths.window(A).ssthresh), (10 * M, 10 * M));
        assert!(!paths.windows.recovering());
        assert!(!paths.on_mark(at(6), A, 30, 9 * M, 40), "sent before the cut");
        assert_eq!(paths.window(A).cwnd, 10 * M);
        assert!(paths.on_mark(at(7), A, 31, 9 * M, 40), "sent after it");
        assert_eq!((paths.window(A).cwnd, paths.window(B).recovery), (5 * M, None));
    }

    #[test]
    fn a_mark_makes_no_window_larger() {
        let mut paths = paths(1);
        (paths.windows[0].cwnd, paths.windows[0].ssthresh) = (M, 10 * M);
        assert!(paths.on_mark(at(5), A, 7, M, 30));
        assert_eq!(paths.window(A).cwnd, M);
    }
}
