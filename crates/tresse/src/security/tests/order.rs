//! The order of steps, with every order of arrival, for the first agreement and later ones.

use super::*;

#[test]
fn keys_are_installed_in_the_order_of_the_draft() {
    let mut pair = Pair::new(friends());
    pair.run();
    pair.assert_agreed(3);
    let steps = |end: &End| -> Vec<String> {
        let short = |line: &String| line.split(" bytes").next().unwrap_or_default().to_owned();
        end.log.iter().map(short).filter(|line| !line.starts_with("Send(4242")).collect()
    };
    assert_eq!(
        steps(&pair.client),
        ["InstallReceiveKeys(3)", "Send(4243, 1", "InstallSendKeys(3)", "RequireProtection"]
    );
    assert_eq!(
        steps(&pair.server),
        ["InstallReceiveKeys(3)", "InstallSendKeys(3)", "RequireProtection", "Send(4243, 1"]
    );
}

#[test]
fn each_side_learns_who_the_other_is() {
    let [client, server] = [identity(), identity()];
    let trusts = |own: &Identity, peer: &Identity| Security::pinned(own, &Peers::new([peer.fingerprint()]));
    let mut pair =
        Pair::new([trusts(&client, &server).expect("sound"), trusts(&server, &client).expect("sound")]);
    assert_eq!(pair.client.manager.peer(), None);
    pair.run();
    let peer = |end: &End| end.manager.peer().map(|peer| peer.fingerprint);
    assert_eq!(peer(&pair.client), Some(server.fingerprint()));
    assert_eq!(peer(&pair.server), Some(client.fingerprint()));
}

#[test]
fn one_secret_is_enough_for_two_hosts() {
    let secret = || Security::shared_secret(b"a secret of two hosts").expect("long enough");
    let mut pair = Pair::new([secret(), secret()]);
    pair.run();
    pair.assert_agreed(3);
    let other = Security::shared_secret(b"another secret of two").expect("long enough");
    let mut pair = Pair::new([other, secret()]);
    pair.advance(Duration::from_secs(60));
    assert_eq!(pair.client.manager.fault(), Some(&SecurityFault::Stranger));
    assert_eq!(pair.server.manager.fault(), Some(&SecurityFault::Refused));
}

#[test]
fn keys_are_renewed_by_the_hour_and_the_old_ones_go() {
    let mut pair = Pair::new(friends());
    pair.advance(Duration::from_secs(3_599));
    pair.assert_agreed(3);
    pair.advance(Duration::from_secs(1));
    pair.assert_agreed(4);
    pair.advance(Duration::from_secs(10 * 3_600));
    pair.assert_agreed(14);
    let epochs: Vec<u64> = pair.server.receiving.keys().map(|epoch| epoch.0).collect();
    assert_eq!(epochs, [13, 14]);
}

#[test]
fn near_a_limit_either_side_has_keys_renewed_and_the_drain_is_kept_short() {
    for by_server in [true, false] {
        let mut pair = Pair::new(friends());
        pair.advance(Duration::from_secs(3));
        let end = if by_server { &mut pair.server } else { &mut pair.client };
        end.manager.rekey(pair.now, true);
        end.act();
        pair.advance(Duration::from_secs(6));
        pair.assert_agreed(3);
        pair.advance(Duration::from_secs(1));
        pair.assert_agreed(4);
        // Without urgency, the former keys are kept for the whole drain time.
        let end = if by_server { &mut pair.server } else { &mut pair.client };
        end.manager.rekey(pair.now, false);
        end.act();
        pair.advance(Duration::from_secs(119));
        pair.assert_agreed(4);
        pair.advance(Duration::from_secs(2));
        pair.assert_agreed(5);
    }
}

#[test]
fn whatever_arrives_first_both_sides_agree() {
    let short = Rekeying { interval: Duration::from_secs(60), drain: Duration::ZERO, ..Rekeying::default() };
    // A Lehmer generator, for the order of arrival and the times of requests for new keys.
    let mut seed = 1_u64;
    let mut random = move |below: u64| {
        seed = seed * 48_271 % 2_147_483_647;
        seed % below
    };
    for _ in 0..100 {
        let rekeying = |security: Security| {
            security.with_rekeying(Rekeying { shortest_drain: Duration::ZERO, ..short.clone() })
        };
        let mut pair = Pair::new(friends().map(rekeying));
        for _ in 0..60 {
            match random(8) {
                0 => pair.client.manager.rekey(pair.now, random(2) == 0),
                1 => pair.server.manager.rekey(pair.now, random(2) == 0),
                direction => drop(pair.step(direction % 2 == 0)),
            }
            pair.client.act();
            pair.server.act();
        }
        pair.run();
        let epoch = pair.client.manager.epoch().expect("agreed");
        pair.assert_agreed(epoch.0);
    }
}

#[test]
fn parameters_that_were_changed_on_the_way_give_other_keys() {
    let changed = (b"\x80\x06client", b"\x80\x06Server");
    let mut pair = Pair::with_parameters(friends(), [changed, (b"\x80\x06client", b"\x80\x06server")]);
    pair.run();
    let (_, sealing) = pair.server.sending.as_mut().expect("send keys");
    let opening = pair.client.receiving.get_mut(&Epoch(3)).expect("receive keys");
    assert!(!opens(sealing, opening));
}

#[test]
fn an_agreement_takes_one_round_trip_of_tls_and_one_of_confirmation() {
    let mut pair = Pair::new(friends());
    let mut halves = 0;
    for to_server in [true, false, true, false] {
        let count = if to_server { pair.client.outbox.len() } else { pair.server.outbox.len() };
        assert!(count > 0);
        (0..count).for_each(|_| assert!(pair.step(to_server)));
        halves += 1;
    }
    assert_eq!(halves, 4, "one half for each leg");
    pair.assert_agreed(3);
}
