//! Rules that hold after every event. Tests check them at each step; other runs need not.

use tresse_proto::Instant;

use crate::error::DeliveryViolation;
use crate::host::Host;
use crate::network::Network;
use crate::traffic::Ledger;

/// Checks all rules.
///
/// # Errors
/// The first rule that is violated, with the numbers.
pub(crate) fn check(
    now: Instant,
    hosts: &mut [Host],
    network: &mut Network<'_>,
    ledger: &Ledger,
) -> Result<(), DeliveryViolation> {
    let accepted = ledger.total_accepted();
    let delivered = ledger.total_delivered();
    for host in hosts {
        let Some((association, paths)) = host.stats(now) else { continue };
        let counted = (association.messages_sent, association.messages_received);
        // One host only sends messages, the other only receives them.
        rule(counted == (accepted, 0) || counted == (0, delivered), || {
            format!(
                "{accepted} messages were handed over and {delivered} came out, but one host counts {counted:?}"
            )
        })?;
        let flight: usize = paths.iter().map(|path| path.flight - path.copied).sum();
        rule(flight == association.flight, || {
            format!("{} bytes are in flight, but {flight} on the paths together", association.flight)
        })?;
        for path in &paths {
            rule(path.cwnd > 0, || format!("the congestion window of path {} is empty", path.id))?;
            rule(path.flight <= path.queued + path.copied, || {
                format!("path {}: {} bytes are in flight, but {} queued", path.id, path.flight, path.queued)
            })?;
        }
        let in_flight = association.flight > 0;
        rule(!in_flight || host.due().is_some(), || "data is in flight and no timer runs".to_owned())?;
    }
    let under_way = network.packets_under_way() as u64;
    let expected = network.packets_accepted_by_links(now);
    rule(under_way == expected, || format!("{under_way} packets are under way, but {expected} should be"))
}

fn rule(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), DeliveryViolation> {
    if holds { Ok(()) } else { Err(DeliveryViolation::Counters(otherwise())) }
}
