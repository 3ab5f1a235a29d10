//! Findings about an address translator (NAT) on a path: its mapping and filtering (RFC 5780, section 4), the lifetime of its bindings,
//! and whether the packet rate is limited.
//!
//! The peer must run `tresse perf server --stun`. Requests are sent only to addresses that the user gave: the peer's own view of its
//! addresses may not be valid here.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};

use super::prober::Prober;
use super::{Finding, State};
use crate::stun::{PORTS, Request};

/// Checks the path from `local` to `remote`. `others` are further addresses of the peer. Binding lifetimes are tested up to `lifetime`,
/// if that is given.
pub(super) async fn look(
    local: IpAddr,
    remote: IpAddr,
    others: &[IpAddr],
    lifetime: Option<Duration>,
) -> Vec<Finding> {
    let place = format!("{local} -> {remote}");
    let nobody = |why: &str| vec![Finding::new(CHECK, State::Unknown, format!("{place}: {why}"))];
    let Ok(prober) = Prober::open(local, remote).await else {
        return nobody("no socket can be had there");
    };
    let Some(seen) = prober.ask(SocketAddr::new(remote, PORTS[0]), Request::default()).await else {
        return nobody("the peer does not tell where packets come from (tresse perf server --stun)");
    };
    let rate = packet_rate(&prober, &place, SocketAddr::new(remote, PORTS[0])).await;
    if seen.mapped.ip() == local {
        let says = format!("{place}: none; the peer sees {}", seen.mapped);
        return vec![Finding::new(CHECK, State::Well, says), rate];
    }
    let other = others.iter().copied().find(|other| *other != remote && other.is_ipv4() == remote.is_ipv4());
    let mapping = mapping(&prober, seen.mapped, remote, other).await;
    let filtering = filtering(local, remote, seen.other.is_some()).await;
    let says = format!(
        "{place}: {local} is {} outside; mapping {}, filtering {}",
        seen.mapped.ip(),
        mapping.says(),
        filtering.map_or("unknown", Dependence::says)
    );
    let translation = match mapping {
        Mapping::Same(_) => Finding::new(CHECK, State::Well, says),
        // Each path then has another external port, which a peer learns only from packets on that path.
        Mapping::Depends(_) => {
            Finding::new(CHECK, State::Poor, format!("{says}: this host can call, and hardly be called"))
        }
    };
    let binding = match lifetime {
        Some(longest) => binding(local, remote, &place, longest).await,
        None => {
            let says = format!("{place}: not looked at; --binding-lifetime 3m does, and takes so long");
            Finding::new(BINDING, State::Unknown, says)
        }
    };
    vec![translation, binding, rate]
}

/// The dependence of a mapping or a filter on the remote end (RFC 4787, sections 4.1 and 5).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Dependence {
    Nothing,
    Address,
    AddressAndPort,
}

impl Dependence {
    fn says(self) -> &'static str {
        match self {
            Dependence::Nothing => "endpoint-independent",
            Dependence::Address => "address-dependent",
            Dependence::AddressAndPort => "address- and port-dependent",
        }
    }
}

/// The mapping of a local address and port (RFC 5780, section 4.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Mapping {
    /// All mappings were the same; true if a second address of the peer was tested, too.
    Same(bool),
    Depends(Dependence),
}

impl Mapping {
    /// Returns the mapping, from the source addresses that the peer saw: at its first address, at another port there, and at both ports
    /// of another address.
    fn of(first: SocketAddr, port: Option<SocketAddr>, other: [Option<SocketAddr>; 2]) -> Self {
        let [address, both] = other;
        match (port, address) {
            (Some(port), _) if port != first => Mapping::Depends(Dependence::AddressAndPort),
            (_, Some(address)) if address != first => match both {
                Some(both) if both != address => Mapping::Depends(Dependence::AddressAndPort),
                _ => Mapping::Depends(Dependence::Address),
            },
            (_, seen) => Mapping::Same(seen.is_some()),
        }
    }

    fn says(self) -> &'static str {
        match self {
            Mapping::Same(true) => Dependence::Nothing.says(),
            Mapping::Same(false) => "port-independent (of addresses, the peer has one)",
            Mapping::Depends(on) => on.says(),
        }
    }
}

async fn mapping(prober: &Prober, first: SocketAddr, remote: IpAddr, other: Option<IpAddr>) -> Mapping {
    let seen = async |address: IpAddr, port: u16| {
        prober.ask(SocketAddr::new(address, port), Request::default()).await.map(|answer| answer.mapped)
    };
    let port = seen(remote, PORTS[1]).await;
    let at_other = match other {
        Some(other) => [seen(other, PORTS[0]).await, seen(other, PORTS[1]).await],
        None => [None, None],
    };
    Mapping::of(first, port, at_other)
}

/// Tests the filtering; `None` if the result is unknown. The socket is a new one that has sent to only one address and port of the peer.
async fn filtering(local: IpAddr, remote: IpAddr, two_addresses: bool) -> Option<Dependence> {
    let prober = Prober::open(local, remote).await.ok()?;
    let to = SocketAddr::new(remote, PORTS[0]);
    prober.ask(to, Request::default()).await?;
    let changed = Request { change_port: true, ..Request::default() };
    if two_addresses && prober.ask(to, Request { change_address: true, ..changed }).await.is_some() {
        return Some(Dependence::Nothing);
    }
    match prober.ask(to, changed).await {
        // A peer with one address cannot test whether packets from another address pass.
        Some(_) if !two_addresses => None,
        Some(_) => Some(Dependence::Address),
        None => Some(Dependence::AddressAndPort),
    }
}

/// Tests the lifetime of an idle binding (RFC 5780, section 4.6). Each pause is tested by a flow of its own, all at the same time.
async fn binding(local: IpAddr, remote: IpAddr, place: &str, longest: Duration) -> Finding {
    let mut trials = JoinSet::new();
    let pauses = PAUSES.map(Duration::from_secs).into_iter().filter(|pause| *pause < longest);
    for pause in pauses.chain([longest]) {
        trials.spawn(async move { Some((pause, survives(local, remote, pause).await?)) });
    }
    let mut found: Vec<_> = trials.join_all().await.into_iter().flatten().collect();
    found.sort_unstable();
    judged(place, &found)
}

/// Returns whether a binding still exists after `pause` without packets; `None` if there was none at the beginning.
async fn survives(local: IpAddr, remote: IpAddr, pause: Duration) -> Option<bool> {
    let to = SocketAddr::new(remote, PORTS[0]);
    let (watched, asking) =
        (Prober::open(local, remote).await.ok()?, Prober::open(local, remote).await.ok()?);
    watched.ask(to, Request::default()).await?;
    // Linux gives a flow its longer timeout if packets in both directions follow after two seconds.
    sleep(SETTLING).await;
    let mapped = watched.ask(to, Request::default()).await?.mapped;
    sleep(pause).await;
    let request = Request { response_port: Some(mapped.port()), ..Request::default() };
    Some(watched.ask_through(&asking, to, request).await.is_some())
}

/// Returns the finding for pauses in ascending order, each with whether the binding survived.
fn judged(place: &str, found: &[(Duration, bool)]) -> Finding {
    let Some(at) = found.iter().position(|(_, lives)| !lives) else {
        return match found.last() {
            Some((longest, _)) => {
                let says = format!("{place}: lives {} s without packets at least", longest.as_secs());
                Finding::new(BINDING, State::Well, says)
            }
            None => Finding::new(BINDING, State::Unknown, format!("{place}: the peer answers no more")),
        };
    };
    let (lived, gone) = (if at == 0 { 0 } else { found[at - 1].0.as_secs() }, found[at].0.as_secs());
    let says = format!("{place}: gone after {lived} to {gone} s without packets");
    if lived >= IDLE.as_secs() {
        return Finding::new(BINDING, State::Well, says);
    }
    // An idle path has no packets for the heartbeat interval and an RTO of a second or less.
    let interval = (lived / 2).max(1);
    Finding::new(BINDING, State::Poor, format!("{says}: an idle path is silent for longer"))
        .mended_by(format!("--set heartbeat_interval={interval}s, in every command that calls"))
}

/// Checks whether the share of small packets that arrive is the same at a high rate as at a low one.
async fn packet_rate(prober: &Prober, place: &str, to: SocketAddr) -> Finding {
    let few = answered(prober, to, FEW, SPAN).await;
    let many = answered(prober, to, MANY, SPAN).await;
    rated(place, few, many)
}

fn rated(place: &str, few: usize, many: usize) -> Finding {
    let a_second = |count: usize| (count as f64 / SPAN.as_secs_f64()).round();
    let says = format!(
        "{place}: {many} of {MANY} small packets came back at {} a second, {few} of {FEW} at {}",
        a_second(MANY),
        a_second(FEW)
    );
    // Compares the two shares of answers: a lossy path reduces both alike.
    let limited = (many * FEW) as f64 <= LIMITED * (few * MANY) as f64;
    match (few, limited) {
        (0, _) => Finding::new(RATE, State::Unknown, says),
        (_, true) => Finding::new(RATE, State::Poor, format!("{says}: something on the way limits UDP")),
        _ => Finding::new(RATE, State::Well, says),
    }
}

/// Sends `count` requests, spread evenly over `span`, and returns the number of answers.
async fn answered(prober: &Prober, to: SocketAddr, count: usize, span: Duration) -> usize {
    let transactions: Vec<_> = (0..count).map(|_| Prober::transaction()).collect();
    let mut missing: BTreeSet<_> = transactions.iter().copied().collect();
    let mut ticks = interval(span / count as u32);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for transaction in transactions {
        let sending = async {
            ticks.tick().await;
            prober.send(to, Request { transaction, ..Request::default() }).await;
        };
        let mut sending = std::pin::pin!(sending);
        loop {
            tokio::select! {
                answer = prober.next() => { missing.remove(&answer.transaction); }
                () = &mut sending => break,
            }
        }
    }
    let end = Instant::now() + LAST_ANSWERS;
    while !missing.is_empty()
        && let Ok(answer) = timeout_at(end, prober.next()).await
    {
        missing.remove(&answer.transaction);
    }
    count - missing.len()
}

/// Returns whether the host refuses packets to this port (ICMP), which shows that packets reach it.
pub(super) async fn is_refused(local: IpAddr, place: SocketAddr) -> bool {
    match Prober::open(local, place.ip()).await {
        Ok(prober) => timeout(REFUSAL, prober.refused_by(place)).await.unwrap_or(false),
        Err(_) => false,
    }
}

const CHECK: &str = "address translation";
const BINDING: &str = "binding lifetime";
const RATE: &str = "packet rate";
/// Pauses without packets that are tested, in seconds.
const PAUSES: [u64; 14] = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300];
const SETTLING: Duration = Duration::from_millis(2500);
/// Sufficient lifetime of a binding: heartbeats of an idle path are 30 s and an RTO with its jitter apart (RFC 9260, section 8.3).
const IDLE: Duration = Duration::from_secs(45);
const SPAN: Duration = Duration::from_millis(500);
const FEW: usize = 10;
/// Few enough for the buffer of a socket, even if the reader runs late.
const MANY: usize = 200;
/// Ratio of the shares of answers, at the high and the low rate, up to which the rate counts as limited.
const LIMITED: f64 = 0.7;
const LAST_ANSWERS: Duration = Duration::from_secs(2);
const REFUSAL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([192, 0, 2, 1], port)))
    }

    #[test]
    fn mappings_are_told_by_the_ports_that_the_peer_sees() {
        let of =
            |port, other, both| Mapping::of(seen(1).expect("one"), seen(port), [seen(other), seen(both)]);
        assert_eq!(of(1, 1, 1), Mapping::Same(true));
        assert_eq!(of(1, 2, 2), Mapping::Depends(Dependence::Address));
        assert_eq!(of(1, 2, 3), Mapping::Depends(Dependence::AddressAndPort));
        assert_eq!(of(2, 3, 4), Mapping::Depends(Dependence::AddressAndPort));
        assert_eq!(Mapping::of(seen(1).expect("one"), seen(1), [None, None]), Mapping::Same(false));
    }

    #[test]
    fn bindings_that_heartbeats_do_not_keep_are_named() {
        let found =
            |lives: [bool; 3]| [20, 45, 120].map(Duration::from_secs).into_iter().zip(lives).collect();
        let judge = |lives| judged("a path", &Vec::from_iter::<Vec<_>>(found(lives)));
        assert_eq!(judge([true, true, true]).state, State::Well);
        assert_eq!(judge([true, true, false]).state, State::Well);
        let short = judge([true, false, false]);
        assert_eq!(short.state, State::Poor);
        assert!(short.says.contains("gone after 20 to 45 s"), "{}", short.says);
        assert!(short.mend.is_some_and(|mend| mend.starts_with("--set heartbeat_interval=10s")));
        assert!(judge([false, false, false]).mend.is_some_and(|mend| mend.contains("=1s")));
        assert_eq!(judged("a path", &[]).state, State::Unknown);
    }

    #[test]
    fn a_limit_is_told_from_a_lossy_path() {
        assert_eq!(rated("a path", 10, 200).state, State::Well);
        assert_eq!(rated("a path", 8, 160).state, State::Well);
        assert_eq!(rated("a path", 10, 55).state, State::Poor);
        assert_eq!(rated("a path", 0, 0).state, State::Unknown);
    }
}
