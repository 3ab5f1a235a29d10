//! List fields: items of equal size, inside a chunk or a parameter.
//!
//! Owns the two forms of a list (bytes of a received packet, values to be written), and gives readers one interface to
//! both. Independent of the meaning of the items, and of the order that an RFC requires.

use std::fmt;
use std::slice;

use crate::serial::Tsn;

/// An item of a [`List`].
pub trait ListItem: Copy + PartialEq + fmt::Debug {
    /// Bytes of one item on the wire.
    const LEN: usize;

    /// Reads an item from exactly [`Self::LEN`] bytes.
    fn read(raw: &[u8]) -> Self;

    /// Writes the item to exactly [`Self::LEN`] bytes.
    fn put(self, raw: &mut [u8]);
}

impl ListItem for u16 {
    const LEN: usize = 2;

    #[inline]
    fn read(raw: &[u8]) -> Self {
        u16::from_be_bytes([raw[0], raw[1]])
    }

    #[inline]
    fn put(self, raw: &mut [u8]) {
        raw.copy_from_slice(&self.to_be_bytes());
    }
}

impl ListItem for Tsn {
    const LEN: usize = 4;

    #[inline]
    fn read(raw: &[u8]) -> Self {
        Tsn(u32::from_be_bytes([raw[0], raw[1], raw[2], raw[3]]))
    }

    #[inline]
    fn put(self, raw: &mut [u8]) {
        raw.copy_from_slice(&self.0.to_be_bytes());
    }
}

/// A list field: big-endian bytes of a received packet, or values to be written. Two lists are equal if their items
/// are.
#[derive(Copy, Clone)]
pub enum List<'a, T> {
    /// Bytes as received. A tail shorter than one item is not part of the list.
    Wire(&'a [u8]),
    /// Values to be written.
    Values(&'a [T]),
}

impl<'a, T: ListItem> List<'a, T> {
    /// Returns the items in wire order.
    #[inline]
    pub fn iter(&self) -> ListIter<'a, T> {
        match *self {
            List::Wire(bytes) => ListIter::Wire(bytes.chunks_exact(T::LEN)),
            List::Values(values) => ListIter::Values(values.iter()),
        }
    }

    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            List::Wire(bytes) => bytes.len() / T::LEN,
            List::Values(values) => values.len(),
        }
    }

    /// Returns whether there are no items.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all items together.
    #[inline]
    pub(crate) fn wire_len(&self) -> usize {
        self.len() * T::LEN
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            List::Wire(bytes) => out.extend_from_slice(&bytes[..self.wire_len()]),
            List::Values(values) => {
                let start = out.len();
                out.resize(start + self.wire_len(), 0);
                let places = out[start..].chunks_exact_mut(T::LEN);
                values.iter().zip(places).for_each(|(value, place)| value.put(place));
            }
        }
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        List::Values(&[])
    }
}

impl<T: ListItem> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: ListItem> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: ListItem> IntoIterator for &List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    #[inline]
    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

impl<'a, T: ListItem> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    #[inline]
    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// Iterator over the items of a [`List`], from either end.
#[derive(Clone, Debug)]
pub enum ListIter<'a, T> {
    /// Reading received bytes.
    Wire(slice::ChunksExact<'a, u8>),
    /// Reading values.
    Values(slice::Iter<'a, T>),
}

impl<T: ListItem> Iterator for ListIter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match self {
            ListIter::Wire(items) => items.next().map(T::read),
            ListIter::Values(items) => items.next().copied(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            ListIter::Wire(items) => items.size_hint(),
            ListIter::Values(items) => items.size_hint(),
        }
    }

    #[inline]
    fn fold<A, F: FnMut(A, T) -> A>(self, start: A, f: F) -> A {
        match self {
            ListIter::Wire(items) => items.map(T::read).fold(start, f),
            ListIter::Values(items) => items.copied().fold(start, f),
        }
    }
}

impl<T: ListItem> DoubleEndedIterator for ListIter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        match self {
            ListIter::Wire(items) => items.next_back().map(T::read),
            ListIter::Values(items) => items.next_back().copied(),
        }
    }
}

impl<T: ListItem> ExactSizeIterator for ListIter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_values_are_the_same_list() {
        let wire = List::<u16>::Wire(&[0, 5, 0, 6]);
        let values = List::Values(&[5u16, 6]);
        assert_eq!(wire, values);
        assert_eq!(wire.len(), 2);
        assert_eq!(wire.iter().rev().collect::<Vec<_>>(), [6, 5]);
        assert_ne!(wire, List::Values(&[5]));
        assert_eq!(format!("{wire:?}"), "[5, 6]");
        assert!(List::<Tsn>::default().is_empty());
    }

    #[test]
    fn a_tail_shorter_than_an_item_is_left_out() {
        let list = List::<Tsn>::Wire(&[0, 0, 0, 9, 1, 2]);
        assert_eq!(list.iter().collect::<Vec<_>>(), [Tsn(9)]);
        let mut out = Vec::new();
        list.put(&mut out);
        assert_eq!(out, [0, 0, 0, 9]);
    }
}
