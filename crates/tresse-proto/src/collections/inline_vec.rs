//! Vector that keeps a single item inline.
//!
//! It is for lists that nearly always have one item, such as the addresses of a host with one interface: a single item
//! takes no memory on the heap. Several items are kept in a slice of their exact number, so appending one copies all of
//! them.

use std::ops::{Deref, DerefMut};

/// A list of items.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum InlineVec<T> {
    /// One item.
    One([T; 1]),
    /// No item, or several.
    Many(Box<[T]>),
}

impl<T> InlineVec<T> {
    /// Returns a list of one item.
    pub(crate) fn of(item: T) -> Self {
        InlineVec::One([item])
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            InlineVec::One([first]) => InlineVec::Many([first, item].into()),
            InlineVec::Many(items) if items.is_empty() => InlineVec::One([item]),
            InlineVec::Many(items) => {
                let mut items = items.into_vec();
                items.push(item);
                InlineVec::Many(items.into())
            }
        };
    }

    /// Inserts an item before the others.
    pub(crate) fn push_front(&mut self, item: T) {
        self.push(item);
        self.rotate_right(1);
    }

    /// Removes the items for which `keeps` returns false.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        match self {
            InlineVec::One([item]) if keeps(item) => {}
            InlineVec::One(_) => *self = InlineVec::default(),
            InlineVec::Many(items) => *self = std::mem::take(items).into_iter().filter(keeps).collect(),
        }
    }
}

impl<T> Default for InlineVec<T> {
    fn default() -> Self {
        InlineVec::Many(Box::default())
    }
}

impl<T> Deref for InlineVec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            InlineVec::One(item) => item,
            InlineVec::Many(items) => items,
        }
    }
}

impl<T> DerefMut for InlineVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            InlineVec::One(item) => item,
            InlineVec::Many(items) => items,
        }
    }
}

impl<T> FromIterator<T> for InlineVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        match (items.next(), items.next()) {
            (None, _) => InlineVec::default(),
            (Some(only), None) => InlineVec::of(only),
            (Some(first), Some(second)) => {
                InlineVec::Many([first, second].into_iter().chain(items).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_however_long_it_is() {
        let mut few: InlineVec<u8> = (1..=1).collect();
        assert_eq!((&few, &few[..]), (&InlineVec::One([1]), &[1][..]));
        few.push_front(0);
        few.push(2);
        assert_eq!(few[..], [0, 1, 2]);
        few.retain(|&item| item != 1);
        assert_eq!(few[..], [0, 2]);
        few.retain(|_| false);
        few.push(3);
        assert_eq!(few, InlineVec::of(3));
        few.retain(|&item| item == 3);
        assert_eq!(few[..], [3]);
        few.retain(|_| false);
        assert_eq!(few, InlineVec::default());
    }
}
