//! A change of keys beside a message that only one path may carry, when that path loses it or dies.

use std::cell::Cell;
use std::rc::Rc;

use tresse_proto::config::StreamMap;
use tresse_proto::protection::Epoch;

use super::keys::{epochs, rekey};
use super::*;

/// A key message waits for the end of a message that was begun, and at the peer for what stands before it on its stream. A path
/// that loses what it alone may carry holds the change up until its timer gives the rest to the other path, and no longer.
#[test]
fn a_change_of_keys_outlasts_a_path_that_loses_what_it_alone_may_carry() {
    // The message is on the key management's own stream, or on another one; both may be the dead path's.
    for (table, stream) in [([0, 1], 1), ([1, 0], 0), ([1, 1], 0), ([1, 1], 1)] {
        for (interleaving, outage) in [(false, 40), (false, 1_000_000), (true, 40), (true, 1_000_000)] {
            let mut config = AssociationConfig::preset("cmt").expect("a preset");
            config.stream_map = StreamMap::Fixed(table.to_vec());
            config.interleaving = interleaving;
            config.encryption = Encryption::Require;
            config.key_management = KeyManagement::PreShared;
            let mut pair = protected(2, &config);
            pair.run_for(ms(500));
            pair.send(stream, 0, 100_000);
            pair.run_for(ms(5));
            let lost = Rc::new(Cell::new(0));
            let (count, healed) = (Rc::clone(&lost), pair.now + ms(outage));
            pair.network = Box::new(move |flight| {
                let gone = flight.path() == 1 && flight.sent < healed;
                count.set(count.get() + u32::from(gone));
                (!gone).then_some(ms(10))
            });
            rekey(&mut pair, false);
            let what = format!("{table:?}, stream {stream}, interleaving {interleaving}, {outage} ms");
            pair.run_for(ms(2_000));
            assert_eq!(epochs(&pair), [Some(Epoch(4)); 2], "{what}");
            assert_eq!(pair.server.numbers_on(stream), [0], "{what}");
            assert!(lost.get() > 0, "{what}: the path had nothing to lose");
            let now = pair.now;
            assert_eq!(pair.server().stats(now).expect("open").discards.unopened, 0, "{what}");
        }
    }
}
