//! Stream maps: the paths that a stream may use.
//!
//! A fixed table needs no policy; the adaptive map is in [`placement`].

pub mod placement;
