//! Under attack an endpoint holds and sends no more than its bounds say, however long it goes on. Time is not measured
//! here: `make robustness` does, and writes docs/robustness.md.

mod asconf;
mod attacks;
#[path = "../common/keys.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use more of it")]
mod keys;
mod protected;
#[path = "../common/signer.rs"]
#[allow(unreachable_pub, reason = "other tests sign with it too")]
mod signer;
mod victim;

use allocation_counter::{AllocationInfo, measure};

use attacks::{Attack, Honest, all};
use victim::{BUFFER, Count, Victim};

/// Packets of an attack.
const PACKETS: usize = 2_500;

fn suffer(attack: &Attack, packets: usize) -> (Victim, Count, AllocationInfo) {
    let (mut victim, packets) = (attack.make)(packets);
    let mut count = Count::default();
    let memory = measure(|| count = victim.suffer(&packets));
    (victim, count, memory)
}

#[test]
fn no_attack_makes_an_endpoint_hold_more_than_its_bound() {
    let mut broken = Vec::new();
    for attack in all() {
        let (_, _, memory) = suffer(attack, PACKETS);
        if memory.bytes_max as i64 > attack.most {
            broken.push(format!("{}: {} bytes, at most {}", attack.name, memory.bytes_max, attack.most));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Twice the attack holds no more: where memory has a bound, the attack has reached it.
#[test]
fn what_an_attack_makes_an_endpoint_hold_does_not_grow_with_its_length() {
    let mut broken = Vec::new();
    for attack in all() {
        let held = [PACKETS, 2 * PACKETS].map(|packets| suffer(attack, packets).2.bytes_max);
        if held[1] > held[0] + held[0] / 10 + 4_096 {
            broken.push(format!("{}: {} bytes, then {}", attack.name, held[0], held[1]));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn no_attack_makes_an_endpoint_shout() {
    let mut broken = Vec::new();
    for attack in all() {
        let (_, count, _) = suffer(attack, PACKETS);
        if count.answered * 100 > count.bytes * attack.amplification {
            broken.push(format!("{}: {} bytes for {}", attack.name, count.answered, count.bytes));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Neither strangers nor replayed packets make an association.
#[test]
fn no_stranger_makes_an_association() {
    for attack in all().filter(|attack| attack.beside == Honest::SetUps) {
        let (victim, count, _) = suffer(attack, PACKETS);
        assert_eq!(count.packets, PACKETS);
        let others = victim.others_than(victim.id);
        assert_eq!(others, 0, "{}", attack.name);
    }
}

/// What the attacks are compared with is what it claims to be.
#[test]
fn honest_peers_get_what_they_want() {
    let (mut victim, packets) = Honest::SetUps.make(200);
    victim.suffer(&packets);
    assert_eq!(victim.others_than(None), 100);
    let (mut victim, packets) = Honest::Messages.make(200);
    victim.suffer(&packets);
    assert_eq!(victim.received, 200);
    let (mut victim, packets) = Honest::Reports.make(200);
    let count = victim.suffer(&packets);
    assert_eq!(victim.unacknowledged(), (BUFFER / 100 - 400) * 100);
    assert!(count.answers > 50, "{count:?}");
}

/// Attacks of a peer that proves who it is are not turned away at the door: each request with the right number is
/// answered.
#[test]
fn a_peer_that_authenticates_is_answered() {
    let believed = [
        "ASCONFs of long lists",
        "addresses that come and go",
        "one ASCONF again and again",
        "requests that nobody knows",
    ];
    for name in believed {
        let attack = all().find(|attack| attack.name == name).expect("an attack");
        let (_, count, _) = suffer(attack, 100);
        assert!(count.answers >= 100, "{name}: {count:?}");
    }
}

/// Work that can be counted: a packet makes the endpoint ask for memory a few times, whatever is in it, and no more often
/// late in an attack than early.
#[test]
fn a_packet_makes_an_endpoint_ask_for_memory_a_few_times_and_no_more_often_later() {
    let mut broken = Vec::new();
    for attack in all() {
        let (mut victim, packets) = (attack.make)(PACKETS);
        let (early, late) = packets.split_at(packets.len() / 2);
        let mut requests = |packets| {
            let memory = measure(|| {
                victim.suffer(packets);
            });
            memory.count_total as usize
        };
        let asked = [requests(early), requests(late)];
        if asked[1] > late.len() * attack.requests {
            broken.push(format!("{}: {} requests for {} packets", attack.name, asked[1], late.len()));
        }
        if asked[1] > asked[0] + asked[0] / 10 + 100 {
            broken.push(format!("{}: {} requests, then {}", attack.name, asked[0], asked[1]));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}
