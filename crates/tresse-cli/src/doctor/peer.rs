//! Findings about the paths to a peer: the interface that each leaves by, whether packets come through, how large they may
//! be, and whether addresses are translated on the way.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tresse::host::{self, Remote};
use tresse::{Association, Registry};

use super::options::DoctorArgs;
use super::{Finding, State, nat};
use crate::args::TransportArgs;
use crate::call::{CallArgs, FAREWELL};
use crate::failure::Failure;
use crate::links;
use crate::named;
use crate::perf;

/// Checks each path separately.
pub(super) async fn look(args: &DoctorArgs) -> Result<Vec<Finding>, Failure> {
    let (local, remote) = (args.local()?, Remote::all_of(&named::found(&args.to)));
    let paths = host::by_position(&local, &remote);
    let mut findings: Vec<_> = links::misrouted(&paths, |_| true).into_iter().map(route).collect();
    if findings.is_empty() {
        findings.push(Finding::new(
            "routes",
            State::Well,
            "each path leaves by the interface of its address",
        ));
    }
    for (local, remote) in paths {
        let on_path = path(&args.call().between(local, remote), local, remote, args.port).await?;
        let answered = on_path.iter().any(|finding| finding.check == UDP && finding.state == State::Well);
        findings.extend(on_path);
        if answered {
            let others = Remote::all_of(&named::found(&args.to));
            findings.extend(nat::look(local, remote, &others, args.binding_lifetime).await);
        }
    }
    Ok(findings)
}

fn route(fault: links::Fault) -> Finding {
    Finding::new("routes", State::Bad, fault.says).mended_by(fault.mend)
}

/// Checks one path with an association of its own.
async fn path(call: &CallArgs, local: IpAddr, remote: IpAddr, port: u16) -> Result<Vec<Finding>, Failure> {
    let mut config = TransportArgs::of_preset("cmt").config(&call.security)?;
    config.set("mtu_discovery", "true").map_err(Failure::usage)?;
    let place = format!("{local} -> {remote}");
    let endpoint = call.bind(config, Registry::default())?;
    let association = match call.answered(&endpoint, call.place(), endpoint.connect(call.peer())).await {
        Ok(association) => association,
        Err(failure) => {
            let mut says = format!("{place}: {}", failure.message());
            // Another failure is an answer of the peer, and says what to change.
            if failure.is_unreachable() {
                says += &match nat::is_refused(local, SocketAddr::new(remote, port)).await {
                    true => format!(": nobody listens on UDP port {port} there (tresse perf server)"),
                    false => format!(": UDP port {port} is blocked on the way, or the host is not there"),
                };
            }
            return Ok(vec![Finding::new(UDP, State::Bad, says)]);
        }
    };
    let mut findings = vec![Finding::new(UDP, State::Well, format!("{place}: packets come through"))];
    findings.push(packet_size(&association, &place, local).await);
    let _ = timeout(FAREWELL, association.shutdown()).await;
    Ok(findings)
}

/// Compares the largest packet that arrived with the MTU of the interface.
async fn packet_size(association: &Association, place: &str, local: IpAddr) -> Finding {
    let interface =
        tresse::host::addresses().unwrap_or_default().into_iter().find(|one| one.address == local);
    let file = interface.map(|one| format!("/sys/class/net/{}/mtu", one.interface));
    let limit = file.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse::<usize>().ok());
    let mut largest = 0;
    let search = async {
        let begin = Instant::now();
        while begin.elapsed() < SEARCH {
            largest = association.path_stats().first().map_or(0, |path| path.mtu);
            if limit.is_some_and(|limit| largest + SLACK >= limit.min(LARGEST)) {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    // Path MTU discovery starts only with data that fills packets.
    let filling = async {
        let _ = perf::send_for(association, SEARCH).await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        () = search => {}
        never = filling => match never {},
    }
    let Some(limit) = limit else {
        return Finding::new("packet size", State::Unknown, format!("{place}: {largest} bytes came through"));
    };
    let wanted = limit.min(LARGEST);
    if largest + SLACK < wanted {
        let says = format!(
            "{place}: {largest} bytes come through of the {limit} that the interface takes: something drops larger ones"
        );
        Finding::new("packet size", State::Poor, says)
    } else {
        Finding::new("packet size", State::Well, format!("{place}: {largest} bytes of {limit}"))
    }
}

const UDP: &str = "UDP";
/// Time that the search for the packet size may take.
const SEARCH: Duration = Duration::from_secs(6);
/// Largest packet size that is searched for, in bytes.
const LARGEST: usize = 1500;
/// Resolution of the search, in bytes.
const SLACK: usize = 32;
