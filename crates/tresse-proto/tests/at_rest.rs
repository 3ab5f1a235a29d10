//! Memory of an association at rest, heap and tables of the endpoint included, as the benchmark `associations`
//! counts it.

#[path = "../benches/associations/ours.rs"]
mod ours;

use std::error::Error;
use std::time::Duration;

use allocation_counter::measure;

/// Two endpoints that set up associations with each other; as in the benchmark.
trait Crowd: Sized {
    fn new() -> Result<Self, Box<dyn Error>>;
    fn meet(&mut self, number: u32) -> Result<(), Box<dyn Error>>;
    fn established(&mut self) -> usize;
}

/// Bytes for each end. What only tests see, where features of the workspace's crates come together, is a pointer to
/// what they count.
const BUDGET: i64 = 2048 + if cfg!(feature = "invariants") { size_of::<usize>() as i64 } else { 0 };
const CROWD: u32 = 10_000;

#[test]
fn an_association_at_rest_takes_two_kibibytes_before_and_after_heartbeats() {
    let mut crowd = ours::Pair::new().expect("two endpoints");
    let ends = i64::from(2 * CROWD);
    let set_up = measure(|| (0..CROWD).for_each(|number| crowd.meet(number).expect("a set-up")));
    assert_eq!(crowd.established(), CROWD as usize);
    assert!(set_up.bytes_current / ends <= BUDGET, "{} bytes", set_up.bytes_current / ends);

    let mut packets = 0;
    let lived = measure(|| packets = crowd.live(Duration::from_secs(60)).expect("a minute"));
    let bytes = (set_up.bytes_current + lived.bytes_current) / ends;
    assert!(packets >= 2 * CROWD as usize, "{packets} packets");
    assert!(bytes <= BUDGET, "{bytes} bytes after heartbeats");
}
