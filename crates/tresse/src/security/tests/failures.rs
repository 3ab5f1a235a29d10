//! Failures of a key agreement: strangers, changed identities, broken messages, silence. Each failure is reported to
//! both sides, and none reveals the identity of the peer.

use super::*;

/// A pair in which the client shows the key `shown` and the server trusts `known`.
fn with_client(shown: &Identity, known: &Identity) -> Pair {
    let server = identity();
    let client = Security::pinned(shown, &Peers::new([server.fingerprint()])).expect("sound");
    let server = Security::pinned(&server, &Peers::new([known.fingerprint()])).expect("sound");
    Pair::new([client, server])
}

#[test]
fn a_client_that_is_not_known_is_told_and_gets_nothing() {
    let mut pair = with_client(&identity(), &identity());
    pair.run();
    assert_eq!(pair.server.manager.fault(), Some(&SecurityFault::Stranger));
    assert_eq!(pair.client.manager.fault(), Some(&SecurityFault::Refused));
    assert!(pair.client.aborted, "there is nothing to wait for");
    assert!(pair.server.sending.is_none() && pair.server.receiving.is_empty());
    assert!(!pair.server.aborted, "the alert has to arrive");
    pair.advance(Duration::from_secs(2));
    assert!(pair.server.aborted);
}

#[test]
fn a_server_that_is_not_known_is_told_and_gets_nothing() {
    let [client, server] = [identity(), identity()];
    let of_client = Security::pinned(&client, &Peers::new([identity().fingerprint()])).expect("sound");
    let of_server = Security::pinned(&server, &Peers::new([client.fingerprint()])).expect("sound");
    let mut pair = Pair::new([of_client, of_server]);
    pair.advance(Duration::from_secs(2));
    assert_eq!(pair.client.manager.fault(), Some(&SecurityFault::Stranger));
    assert_eq!(pair.server.manager.fault(), Some(&SecurityFault::Refused));
    assert!(pair.client.aborted && pair.server.aborted);
    assert!(pair.client.sending.is_none() && pair.server.sending.is_none());
}

#[test]
fn a_peer_that_is_removed_loses_its_association_with_the_next_keys() {
    let [client, server] = [identity(), identity()];
    let peers = Peers::new([client.fingerprint()]);
    let of_client = Security::pinned(&client, &Peers::new([server.fingerprint()])).expect("sound");
    let of_server = Security::pinned(&server, &peers).expect("sound");
    let mut pair = Pair::new([of_client, of_server]);
    pair.advance(Duration::from_secs(3_000));
    pair.assert_agreed(3);
    peers.replace([]);
    pair.advance(Duration::from_secs(601));
    assert_eq!(pair.server.manager.fault(), Some(&SecurityFault::IdentityChanged));
    assert!(pair.server.aborted);
}

#[test]
fn another_known_identity_at_new_keys_ends_the_association() {
    let [client, server, other] = [identity(), identity(), identity()];
    let peers = Peers::new([client.fingerprint(), other.fingerprint()]);
    let of = |own: &Identity| Security::pinned(own, &Peers::new([server.fingerprint()])).expect("sound");
    let mut pair = Pair::new([of(&client), Security::pinned(&server, &peers).expect("sound")]);
    pair.run();
    pair.assert_agreed(3);
    // The client continues with the key of another identity.
    let tls = super::super::tls::Session::begin(&of(&other).tls, Role::Client, true);
    let mut session = tls.expect("sound");
    let now = pair.now + Duration::from_secs(3_600);
    let (mut to_server, mut log) = (session.take_output(), Vec::new());
    while !to_server.is_empty() {
        pair.server.manager.handle_message(now, KEY_MANAGEMENT, &to_server, true);
        while let Some(action) = pair.server.manager.poll_action() {
            log.push(format!("{action:?}"));
            if let Action::Send { message, .. } = action {
                session.feed(&message).expect("a server as before");
            }
        }
        to_server = session.take_output();
    }
    assert!(session.is_complete());
    pair.server.manager.handle_message(now, KEY_CONTROL, &[1], true);
    assert_eq!(pair.server.manager.fault(), Some(&SecurityFault::IdentityChanged));
    assert!(!log.iter().any(|action| action.starts_with("Install")), "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("Abort"));
}

#[test]
fn messages_that_are_none_end_the_agreement_and_nothing_else() {
    let garbage: &[(Ppid, &[u8])] = &[
        (KEY_MANAGEMENT, b""),
        (KEY_MANAGEMENT, b"GET / HTTP/1.1\r\n\r\n"),
        (KEY_MANAGEMENT, &[22, 3, 3, 0, 5, 1]),
        (KEY_MANAGEMENT, &[22, 3, 3, 0xff, 0xff]),
        (KEY_MANAGEMENT, &[22, 3, 3, 0, 4, 1, 0, 0, 0]),
        (KEY_MANAGEMENT, &[20, 3, 3, 0, 1, 7]),
        (KEY_CONTROL, b""),
        (KEY_CONTROL, &[0]),
        (KEY_CONTROL, &[1]),
        (KEY_CONTROL, &[2]),
        (KEY_CONTROL, &[3]),
        (KEY_CONTROL, &[1, 1]),
        (Ppid(4244), &[1]),
    ];
    for (ppid, message) in garbage {
        for to_server in [true, false] {
            let mut pair = Pair::new(friends());
            let victim = if to_server { &mut pair.server } else { &mut pair.client };
            victim.manager.handle_message(Instant::ZERO, *ppid, message, false);
            victim.act();
            let fault = victim.manager.fault();
            assert!(matches!(fault, Some(SecurityFault::Broken(_))), "{ppid:?} {message:?}: {fault:?}");
            assert!(victim.sending.is_none() && victim.receiving.is_empty());
            pair.advance(Duration::from_secs(60));
            assert!(pair.client.aborted && pair.server.aborted, "{ppid:?} {message:?}");
            assert!(pair.client.sending.is_none() && pair.server.sending.is_none());
        }
    }
}

#[test]
fn a_message_that_is_cut_or_changed_anywhere_gives_no_keys() {
    // The messages in each direction before both sides agree.
    for (to_server, position) in [(true, 0), (false, 0), (true, 1)] {
        for change in 0..40 {
            let mut pair = Pair::new(friends());
            let (mut passed, mut changed, mut idle) = ([0; 2], false, 0);
            while idle < 2 {
                for direction in [true, false] {
                    let next = pair.ends(direction).0.outbox.front_mut();
                    if let Some(next) = next
                        && (direction, passed[usize::from(direction)]) == (to_server, position)
                    {
                        let mut bytes = next.message.to_vec();
                        let at = bytes.len() * change / 40;
                        if change % 2 == 0 {
                            bytes.truncate(at)
                        } else {
                            bytes[at] ^= 0x41
                        }
                        next.message = bytes.into();
                        changed = true;
                    }
                    let moved = pair.step(direction);
                    passed[usize::from(direction)] += usize::from(moved);
                    idle = if moved { 0 } else { idle + 1 };
                }
            }
            assert!(changed);
            pair.advance(Duration::from_secs(60));
            let faults = [&pair.client, &pair.server].map(|end| end.manager.fault().cloned());
            assert!(
                pair.client.aborted && pair.server.aborted,
                "{to_server} {position} {change}: {faults:?}"
            );
            assert!(pair.server.sending.is_none() && pair.client.sending.is_none());
        }
    }
}

#[test]
fn a_handshake_without_end_is_ended() {
    let mut pair = Pair::new(friends());
    let mut record = vec![22, 3, 3, 0x40, 0];
    // The header of a Certificate message of 16 MiB.
    record.extend_from_slice(&[11, 0xff, 0xff, 0xff]);
    record.resize(5 + 0x4000, 0);
    for _ in 0..20 {
        pair.server.manager.handle_message(Instant::ZERO, KEY_MANAGEMENT, &record, false);
    }
    assert!(matches!(pair.server.manager.fault(), Some(SecurityFault::Broken(_))));
}

#[test]
fn a_peer_that_says_nothing_is_given_up() {
    let [client, _] = friends();
    let [_, server] = friends();
    let mut pair = Pair::new([client, server]);
    pair.client.outbox.clear();
    pair.advance(Duration::from_secs(29));
    assert!(!pair.client.aborted && !pair.server.aborted);
    pair.advance(Duration::from_secs(1));
    assert!(pair.client.aborted && pair.server.aborted);
    assert_eq!(pair.client.manager.fault(), Some(&SecurityFault::NoAnswer));
}

#[test]
fn what_comes_in_the_clear_where_it_must_be_sealed_ends_the_agreement() {
    // The server's report of its receive keys.
    let mut pair = Pair::new(friends());
    while pair.client.receiving.is_empty() {
        assert!(pair.step(true) || pair.step(false));
    }
    pair.client.manager.handle_message(Instant::ZERO, KEY_CONTROL, &[1], false);
    assert!(pair.client.manager.fault().is_some() && pair.client.manager.epoch().is_none());

    // Any message of the client after its own report.
    let mut pair = Pair::new(friends());
    pair.run();
    pair.server.manager.handle_message(Instant::ZERO, KEY_CONTROL, &[2], false);
    assert!(pair.server.manager.fault().is_some());
}

#[test]
fn words_of_failures_say_nothing_about_the_peer() {
    let known = identity();
    let shown = identity();
    let mut pair = with_client(&shown, &known);
    pair.run();
    for end in [&pair.client, &pair.server] {
        let text = end.manager.fault().expect("refused").to_string();
        assert!(!text.contains("sha256") && !text.contains('\n'), "{text}");
    }
    let text = |fingerprint: Fingerprint| fingerprint.to_string();
    assert_ne!(text(known.fingerprint()), text(shown.fingerprint()));
}
