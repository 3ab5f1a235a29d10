//! What most associations never need: made when it is first changed. An association at rest pays a pointer for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// How something looks as long as nobody has changed it.
pub(crate) trait Untouched: Default + 'static {
    /// The same as its default.
    const UNTOUCHED: &Self;
}

impl<T: 'static> Untouched for Vec<T> {
    const UNTOUCHED: &Self = &Vec::new();
}

impl<T: 'static> Untouched for VecDeque<T> {
    const UNTOUCHED: &Self = &VecDeque::new();
}

impl<T: 'static> Untouched for BTreeSet<T> {
    const UNTOUCHED: &Self = &BTreeSet::new();
}

impl<K: 'static, V: 'static> Untouched for BTreeMap<K, V> {
    const UNTOUCHED: &Self = &BTreeMap::new();
}

/// A `T` that takes memory from its first change on.
pub(crate) struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Rare(None)
    }
}

impl<T: Untouched> Rare<T> {
    /// Holds `value`, in no memory if it looks untouched.
    pub(crate) fn of(value: T) -> Self
    where
        T: PartialEq,
    {
        Rare((value != *T::UNTOUCHED).then(|| Box::new(value)))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.map(|held| *held).unwrap_or_default()
    }
}

impl<T: Untouched> Deref for Rare<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::UNTOUCHED)
    }
}

impl<T: Untouched> DerefMut for Rare<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Untouched + Clone> Clone for Rare<T> {
    fn clone(&self) -> Self {
        Rare(self.0.clone())
    }
}

impl<T: Untouched + PartialEq> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Untouched + Eq> Eq for Rare<T> {}

impl<T: Untouched + fmt::Debug> fmt::Debug for Rare<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, PartialEq, Eq, Debug)]
    struct Count(u64);

    impl Untouched for Count {
        const UNTOUCHED: &Self = &Count(0);
    }

    #[test]
    fn only_a_change_takes_memory() {
        let mut count = Rare::<Count>::default();
        assert_eq!((count.0.is_some(), *count == Count::default()), (false, true));
        assert!(Rare::of(Count(0)).0.is_none());
        (*count).0 += 1;
        assert_eq!((count.0.is_some(), count == Rare::of(Count(1))), (true, true));
        assert_eq!((count.into_inner(), Rare::<Count>::default().into_inner()), (Count(1), Count(0)));
    }
}
