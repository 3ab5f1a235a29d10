//! Containers of the core, which take no memory for items that most associations never have.

mod inline_vec;
mod lazy_box;
mod range_set;

pub(crate) use inline_vec::InlineVec;
pub(crate) use lazy_box::{LazyBox, LazyState};
pub(crate) use range_set::{RangeSet, difference, intersection};
