//! Delivery terms of messages in the queue of a stream.
//!
//! Owns the places of these messages in the queue. A queue of reliable messages has no such list.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::interface::reliability::DeliveryTerms;

/// Messages that have delivery terms, in the order of the queue.
#[derive(Debug, Default)]
pub(super) struct TermsQueue {
    messages: VecDeque<Message>,
    /// Number of messages that have left the front of the queue since this list exists.
    left: u64,
}

#[derive(Debug)]
struct Message {
    /// Number of messages before it in the queue, including those that have left.
    place: u64,
    terms: Arc<DeliveryTerms>,
}

impl TermsQueue {
    /// Adds a message behind `ahead` others.
    pub(super) fn push(&mut self, ahead: usize, terms: Arc<DeliveryTerms>) {
        self.messages.push_back(Message { place: self.left + ahead as u64, terms });
    }

    /// Returns the terms of the first message of the queue, if it has some.
    pub(super) fn front(&self) -> Option<&Arc<DeliveryTerms>> {
        self.messages.front().filter(|first| first.place == self.left).map(|first| &first.terms)
    }

    /// Returns the terms of the message behind `ahead` others.
    pub(super) fn at(&self, ahead: usize) -> Option<&Arc<DeliveryTerms>> {
        let place = self.left + ahead as u64;
        let which = self.messages.binary_search_by_key(&place, |message| message.place).ok()?;
        self.messages.get(which).map(|message| &message.terms)
    }

    /// Removes the first message of the queue; returns its terms.
    pub(super) fn pop_front(&mut self) -> Option<Arc<DeliveryTerms>> {
        let has_terms = self.messages.front().is_some_and(|first| first.place == self.left);
        self.left += 1;
        if !has_terms {
            return None;
        }
        self.messages.pop_front().map(|first| first.terms)
    }

    /// Removes the message `number` from anywhere in the queue; returns the number of messages before it, or `None` if it is
    /// not there.
    pub(super) fn take_out(&mut self, number: u64) -> Option<usize> {
        let which = self.messages.binary_search_by_key(&number, |message| message.terms.number).ok()?;
        let gone = self.messages.remove(which)?;
        self.messages.range_mut(which..).for_each(|behind| behind.place -= 1);
        Some((gone.place - self.left) as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::interface::event::SendOptions;
    use crate::interface::reliability::Reliability;
    use tresse_policy::Instant;

    fn terms(number: u64) -> Arc<DeliveryTerms> {
        let options =
            SendOptions { reliability: Reliability::Lifetime(Duration::from_secs(1)), ..Default::default() };
        options.terms(Instant::ZERO, number, 100, true).expect("it need not arrive")
    }

    /// Returns a queue of the messages 0 to 9, of which the odd ones have terms.
    fn queue() -> TermsQueue {
        let mut terms_queue = TermsQueue::default();
        for number in [1, 3, 5, 7, 9] {
            terms_queue.push(number, terms(number as u64));
        }
        terms_queue
    }

    fn leave(terms_queue: &mut TermsQueue) -> Option<u64> {
        let front = terms_queue.front().map(|terms| terms.number);
        let left = terms_queue.pop_front().map(|terms| terms.number);
        assert_eq!(front, left);
        left
    }

    #[test]
    fn each_message_leaves_with_what_was_promised_of_it() {
        let mut terms_queue = queue();
        let left: Vec<_> = (0..10).map(|_| leave(&mut terms_queue)).collect();
        assert_eq!(left, [None, Some(1), None, Some(3), None, Some(5), None, Some(7), None, Some(9)]);
    }

    #[test]
    fn a_message_that_is_taken_out_lets_those_behind_it_come_closer() {
        let mut terms_queue = queue();
        assert_eq!(leave(&mut terms_queue), None);
        assert_eq!(terms_queue.take_out(5), Some(4), "1, 2, 3 and 4 are before it");
        assert_eq!(terms_queue.take_out(9), Some(7), "1, 2, 3, 4, 6, 7 and 8 are before it");
        assert_eq!(terms_queue.take_out(1), Some(0));
        let left: Vec<_> = (0..6).map(|_| leave(&mut terms_queue)).collect();
        assert_eq!(left, [None, Some(3), None, None, Some(7), None]);
    }

    #[test]
    fn a_message_that_is_not_there_is_not_taken_out() {
        let mut terms_queue = queue();
        assert_eq!((terms_queue.take_out(4), terms_queue.take_out(10)), (None, None));
        assert_eq!((terms_queue.take_out(3), terms_queue.take_out(3)), (Some(3), None));
    }

    #[test]
    fn a_message_that_comes_after_others_have_left_is_found_where_it_stands() {
        let mut terms_queue = queue();
        (0..9).for_each(|_| drop(terms_queue.pop_front()));
        terms_queue.push(1, terms(10));
        assert_eq!(terms_queue.take_out(10), Some(1), "behind 9");
        assert_eq!(leave(&mut terms_queue), Some(9));
    }
}
