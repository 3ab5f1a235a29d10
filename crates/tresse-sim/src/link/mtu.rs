//! Limit of the packet size of a link, which changes with time.

use tresse_proto::Instant;

use super::Change;

/// The limit after the changes so far.
#[derive(Debug)]
pub(super) struct Mtu {
    now: Option<u32>,
    /// Future limits with their times, the next one last.
    to_come: Vec<(Instant, u32)>,
}

impl Mtu {
    pub(super) fn new(first: Option<u32>, changes: &[Change]) -> Self {
        let limit = |change: &Change| Some((Instant::ZERO + change.at, change.mtu?));
        let mut to_come: Vec<_> = changes.iter().filter_map(limit).collect();
        to_come.sort_by_key(|&(at, _)| at);
        to_come.reverse();
        Mtu { now: first, to_come }
    }

    /// Returns the limit at `now`, which never decreases.
    pub(super) fn at(&mut self, now: Instant) -> Option<u32> {
        while let Some((_, mtu)) = self.to_come.pop_if(|(at, _)| *at <= now) {
            self.now = Some(mtu);
        }
        self.now
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn changes_take_effect_in_the_order_of_their_times() {
        let change = |at, mtu| Change { at: Duration::from_secs(at), mtu, ..Change::default() };
        let mut mtu = Mtu::new(None, &[change(20, Some(1500)), change(10, Some(1300)), change(15, None)]);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let seen = [0, 9, 10, 19, 20].map(|seconds| mtu.at(at(seconds)));
        assert_eq!(seen, [None, None, Some(1300), Some(1300), Some(1500)]);
        let mut mtu = Mtu::new(None, &[change(10, Some(1300)), change(10, Some(1400))]);
        assert_eq!(mtu.at(at(10)), Some(1400), "of two at one time the later in the list");
    }
}
