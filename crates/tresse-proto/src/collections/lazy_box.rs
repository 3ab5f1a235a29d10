//! Lazily boxed state: a null pointer until its first mutable access, which allocates it.
//!
//! It is for state that most associations never need.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// State with a constant initial value, which a [`LazyBox`] without an allocation dereferences to.
pub(crate) trait LazyState: Default + 'static {
    /// The initial value; it equals the default.
    const INITIAL: &Self;
}

impl<T: 'static> LazyState for Vec<T> {
    const INITIAL: &Self = &Vec::new();
}

impl<T: 'static> LazyState for VecDeque<T> {
    const INITIAL: &Self = &VecDeque::new();
}

impl<T: 'static> LazyState for BTreeSet<T> {
    const INITIAL: &Self = &BTreeSet::new();
}

impl<K: 'static, V: 'static> LazyState for BTreeMap<K, V> {
    const INITIAL: &Self = &BTreeMap::new();
}

/// A `T` that is allocated at its first mutable access, even if that changes nothing.
pub(crate) struct LazyBox<T>(Option<Box<T>>);

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        LazyBox(None)
    }
}

impl<T: LazyState> LazyBox<T> {
    /// Holds `value`, without an allocation if it equals the initial value.
    pub(crate) fn of(value: T) -> Self
    where
        T: PartialEq,
    {
        LazyBox((value != *T::INITIAL).then(|| Box::new(value)))
    }

    /// Returns the value if it was allocated.
    pub(crate) fn changed(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.map(|held| *held).unwrap_or_default()
    }
}

impl<T: LazyState> Deref for LazyBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::INITIAL)
    }
}

impl<T: LazyState> DerefMut for LazyBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: LazyState + Clone> Clone for LazyBox<T> {
    fn clone(&self) -> Self {
        LazyBox(self.0.clone())
    }
}

impl<T: LazyState + PartialEq> PartialEq for LazyBox<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: LazyState + Eq> Eq for LazyBox<T> {}

impl<T: LazyState + fmt::Debug> fmt::Debug for LazyBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, PartialEq, Eq, Debug)]
    struct Count(u64);

    impl LazyState for Count {
        const INITIAL: &Self = &Count(0);
    }

    #[test]
    fn only_a_change_takes_memory() {
        let mut count = LazyBox::<Count>::default();
        assert_eq!((count.0.is_some(), *count == Count::default()), (false, true));
        assert!(LazyBox::of(Count(0)).0.is_none());
        (*count).0 += 1;
        assert_eq!((count.0.is_some(), count == LazyBox::of(Count(1))), (true, true));
        assert_eq!((count.into_inner(), LazyBox::<Count>::default().into_inner()), (Count(1), Count(0)));
    }
}
