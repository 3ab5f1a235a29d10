//! Chunks that were reinjected from a path before they were acknowledged: the path may have failed.
//!
//! Owns these chunks for each path. A chunk is removed when a chunk that was sent there later is acknowledged, or when the peer
//! reports that such a chunk arrived twice: then one transmission took this path. Independent of T3.

use std::collections::VecDeque;

use tresse_policy::Instant;

/// Chunks that were reinjected from one path; allocated with the first, as most paths have none.
#[derive(Debug, Default)]
pub(super) struct Reinjected(Option<Box<Chunks>>);

#[derive(Debug, Default)]
struct Chunks {
    /// Chunks that had been sent once: their indices and times of sending, both ascending.
    once: VecDeque<(u64, Instant)>,
    /// Latest time of sending among the chunks that had been sent more than once. No report can show which path delivered
    /// those.
    again: Option<Instant>,
}

impl Reinjected {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Notes that a chunk sent on the path at `sent_at` is reinjected. `index` is its index if it had been sent once and moves
    /// to another path. If [`MAX_CHUNKS`] chunks are remembered already, these suffice.
    pub(super) fn push(&mut self, index: Option<u64>, sent_at: Instant) {
        let chunks = self.0.get_or_insert_default();
        let Some(index) = index else {
            chunks.again = chunks.again.max(Some(sent_at));
            return;
        };
        if chunks.once.len() < MAX_CHUNKS && chunks.once.back().is_none_or(|&(last, _)| last < index) {
            chunks.once.push_back((index, sent_at));
        }
    }

    /// Notes that the chunk `index` was retransmitted a second time: if it arrives twice, neither transmission need have taken
    /// this path.
    pub(super) fn on_sent_again(&mut self, index: u64) {
        let Some(chunks) = &mut self.0 else { return };
        if let Ok(position) = chunks.once.binary_search_by_key(&index, |&(own, _)| own)
            && let Some((_, sent_at)) = chunks.once.remove(position)
        {
            chunks.again = chunks.again.max(Some(sent_at));
        }
    }

    /// Notes the acknowledgement of a chunk that was sent at `sent_at`: chunks sent up to then are removed.
    pub(super) fn answer(&mut self, sent_at: Instant) {
        let Some(chunks) = &mut self.0 else { return };
        let answered = chunks.once.partition_point(|&(_, sent)| sent <= sent_at);
        chunks.once.drain(..answered);
        chunks.again = chunks.again.filter(|&sent| sent > sent_at);
        if chunks.once.is_empty() && chunks.again.is_none() {
            self.0 = None;
        }
    }

    /// Notes the acknowledgement of a chunk that was sent on this path at `sent_at`, and on no other: chunks sent more than once,
    /// and here up to then, are removed.
    pub(super) fn answer_again(&mut self, sent_at: Instant) {
        let Some(chunks) = &mut self.0 else { return };
        chunks.again = chunks.again.filter(|&sent| sent > sent_at);
        if chunks.once.is_empty() && chunks.again.is_none() {
            self.0 = None;
        }
    }

    /// As `answer`, for the chunk `index`. Returns false if that is not remembered here.
    pub(super) fn answer_index(&mut self, index: u64) -> bool {
        let found = self.0.as_deref().and_then(|chunks| {
            let position = chunks.once.binary_search_by_key(&index, |&(own, _)| own).ok()?;
            chunks.once.get(position).map(|&(_, sent_at)| sent_at)
        });
        if let Some(sent_at) = found {
            self.answer(sent_at);
        }
        found.is_some()
    }
}

/// Most chunks remembered for each path: as many as T3 may have to wait for, when one leaves every few milliseconds.
const MAX_CHUNKS: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn reinjected(chunks: &[(u64, u64)]) -> Reinjected {
        let mut reinjected = Reinjected::default();
        for &(index, millis) in chunks {
            reinjected.push(Some(index), at(millis));
        }
        reinjected
    }

    #[test]
    fn an_answer_for_one_is_an_answer_for_all_that_were_sent_before() {
        let mut open = reinjected(&[(3, 10), (5, 20), (9, 30)]);
        open.answer(at(19));
        assert!(!open.answer_index(3) && open.answer_index(5) && !open.is_empty());
        open.answer(at(30));
        assert!(open.is_empty());
    }

    #[test]
    fn a_duplicate_of_what_did_not_depart_answers_nothing() {
        let mut open = reinjected(&[(3, 10), (5, 20)]);
        assert!(!open.answer_index(4) && !open.answer_index(6));
        assert!(open.answer_index(5));
        assert!(open.is_empty() && !open.answer_index(5));
    }

    #[test]
    fn a_duplicate_of_what_went_again_twice_answers_nothing() {
        let mut open = reinjected(&[(3, 10), (5, 20)]);
        open.on_sent_again(3);
        assert!(!open.answer_index(3) && !open.is_empty());
        open.on_sent_again(5);
        assert!(!open.answer_index(5) && !open.is_empty(), "it is still to be answered for");
        open.answer(at(20));
        assert!(open.is_empty());
    }

    #[test]
    fn an_answer_for_an_earlier_chunk_is_none_for_one_that_was_sent_again() {
        let mut open = Reinjected::default();
        open.push(None, at(20));
        open.answer_again(at(19));
        assert!(!open.is_empty());
        open.answer_again(at(20));
        assert!(open.is_empty());
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let many: Vec<(u64, u64)> = (1..=2 * MAX_CHUNKS as u64).map(|index| (index, index)).collect();
        let mut open = reinjected(&many);
        assert_eq!(open.0.as_ref().unwrap().once.len(), MAX_CHUNKS);
        assert!(open.answer_index(1), "the earliest are the first to be answered for");
    }
}
