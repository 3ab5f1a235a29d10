//! A list that nearly always holds one item, such as the addresses of a host with one interface: that one takes no
//! memory of its own. More are kept in no more memory than they need, so a list is not for adding to often.

use std::ops::{Deref, DerefMut};

/// Items in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Few<T> {
    /// One.
    One([T; 1]),
    /// None or several.
    Many(Box<[T]>),
}

impl<T> Few<T> {
    /// A list of `item`.
    pub(crate) fn of(item: T) -> Self {
        Few::One([item])
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            Few::One([first]) => Few::Many([first, item].into()),
            Few::Many(items) if items.is_empty() => Few::One([item]),
            Few::Many(items) => {
                let mut items = items.into_vec();
                items.push(item);
                Few::Many(items.into())
            }
        };
    }

    /// Puts an item before the others.
    pub(crate) fn push_front(&mut self, item: T) {
        self.push(item);
        self.rotate_right(1);
    }

    /// Removes the items that `keeps` refuses.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        match self {
            Few::One([item]) if keeps(item) => {}
            Few::One(_) => *self = Few::default(),
            Few::Many(items) => *self = std::mem::take(items).into_iter().filter(keeps).collect(),
        }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Few::Many(Box::default())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Few::One(item) => item,
            Few::Many(items) => items,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Few::One(item) => item,
            Few::Many(items) => items,
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        match (items.next(), items.next()) {
            (None, _) => Few::default(),
            (Some(only), None) => Few::of(only),
            (Some(first), Some(second)) => Few::Many([first, second].into_iter().chain(items).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_however_long_it_is() {
        let mut few: Few<u8> = (1..=1).collect();
        assert_eq!((&few, &few[..]), (&Few::One([1]), &[1][..]));
        few.push_front(0);
        few.push(2);
        assert_eq!(few[..], [0, 1, 2]);
        few.retain(|&item| item != 1);
        assert_eq!(few[..], [0, 2]);
        few.retain(|_| false);
        few.push(3);
        assert_eq!(few, Few::of(3));
        few.retain(|&item| item == 3);
        assert_eq!(few[..], [3]);
        few.retain(|_| false);
        assert_eq!(few, Few::default());
    }
}
