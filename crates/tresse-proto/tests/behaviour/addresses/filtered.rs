//! Addresses of links that carry only the pairs of their own: two private networks with source filters.

use super::*;

/// A network in which a host's address on link `n` ends in `x.n`, or in `x.n + 10` after it was renumbered, and reaches only
/// addresses on the same link.
fn same_link(flight: &Flight) -> bool {
    let link = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.octets()[2] % 10,
        IpAddr::V6(_) => 0,
    };
    link(flight.transmit.local) == link(flight.transmit.remote)
}

fn filtered(paths: u8, config: &AssociationConfig) -> Pair {
    let mut pair = Pair::established(paths, config);
    pair.network = Box::new(|flight| same_link(flight).then_some(ms(10)));
    pair
}

/// The client's addresses change: the old one on link `link` is removed, and the new one added, in this or the other order.
fn renumber(pair: &mut Pair, old: IpAddr, new: IpAddr, add_first: bool, pause: Duration) {
    for add in [add_first, !add_first] {
        let now = pair.now;
        if add {
            pair.client().add_address(now, new).expect("a new address");
        } else {
            pair.client().remove_address(now, old).expect("an address of it");
        }
        pair.run_for(pause);
    }
}

/// Runs until the paths of both sides are those of the links and no others; returns whether they became so.
fn finds_links(pair: &mut Pair, limit: Duration, locals: &[IpAddr]) -> bool {
    let end = pair.now + limit;
    while pair.now < end {
        pair.run_for(ms(100));
        let found = stats(pair).iter().enumerate().all(|(side, paths)| {
            let living = paths.iter().filter(|path| path.state != PathState::Removed).count();
            let ends = working(paths).into_iter().map(|ends| if side == 0 { ends.0 } else { ends.1 });
            let mut ends: Vec<IpAddr> = ends.collect();
            ends.sort_unstable();
            living == locals.len() && ends == locals
        });
        if found {
            return true;
        }
    }
    false
}

#[test]
fn a_new_address_finds_the_pair_that_its_link_carries() {
    for (links, link, add_first) in [(2, 0, false), (2, 0, true), (2, 1, false), (3, 0, false), (3, 1, false)]
    {
        for pause in [ms(0), ms(100), Duration::from_secs(5)] {
            let case = format!("{links} links, {link} renumbered, added first: {add_first}, pause {pause:?}");
            let mut pair = filtered(links, &AssociationConfig::default());
            send(&mut pair, 0, 50);
            run_until_received(&mut pair, 50);
            renumber(&mut pair, address(1, link), address(1, link + 10), add_first, pause);
            let mut locals: Vec<IpAddr> =
                (0..links).filter(|&old| old != link).map(|n| address(1, n)).collect();
            locals.push(address(1, link + 10));
            assert!(
                finds_links(&mut pair, Duration::from_secs(30), &locals),
                "{case}\n{:?}",
                stats(&mut pair)
            );
            // The new path alone keeps the association.
            pair.network = Box::new(move |flight| {
                let link = |address: IpAddr| matches!(address, IpAddr::V4(v4) if v4.octets()[2] % 10 == link);
                (link(flight.transmit.local) && same_link(flight)).then_some(ms(10))
            });
            send(&mut pair, 50, 50);
            run_until_received(&mut pair, 100);
        }
    }
}

#[test]
fn the_search_of_a_dead_address_becomes_slow_and_stays_within_the_paths() {
    let mut pair = filtered(3, &AssociationConfig::default().with(|c| c.max_paths = 5));
    pair.network = Box::new(|flight| {
        let dead = [flight.transmit.local, flight.transmit.remote].contains(&address(1, 10));
        (!dead && same_link(flight)).then_some(ms(10))
    });
    renumber(&mut pair, address(1, 0), address(1, 10), false, ms(100));
    pair.run_for(Duration::from_secs(600));
    let before = pair.wire.len();
    pair.run_for(Duration::from_secs(600));
    let beats = pair.sent_since(before).iter().filter(|flight| flight.carries(ChunkKind::HEARTBEAT)).count();
    // Each of at most five paths of both sides has one in HB.interval, which is 30 s.
    assert!(beats <= 2 * 5 * 600 / 30, "{beats}");
    let [client, server] = stats(&mut pair);
    assert!(client.len() <= 5 && server.len() <= 5);
    assert_eq!(working(&client), straight(1, [1, 2]));
    pair.network = Box::new(|flight| same_link(flight).then_some(ms(10)));
    let locals = [address(1, 1), address(1, 2), address(1, 10)];
    assert!(finds_links(&mut pair, Duration::from_secs(300), &locals), "{:?}", stats(&mut pair));
}
