//! State for each stream of one direction, allocated when a stream is first used.
//!
//! Owns the two-level table. Independent of the negotiated number of streams: the caller has checked that the
//! stream exists.

use tresse_wire::StreamId;

/// One `T` for each of up to 65,536 streams, in small pages.
///
/// An unused table allocates nothing; one that uses only low stream ids has one page. A lookup takes two loads and no
/// search.
#[derive(Debug)]
pub struct StreamTable<T> {
    /// Extended up to the highest page in use; unused pages below it are `None`.
    pages: Vec<Option<Page<T>>>,
}

type Page<T> = Box<[T; PAGE]>;

/// Streams in a page. Most associations use a handful of streams, and so allocate one page.
const PAGE: usize = 16;

impl<T> Default for StreamTable<T> {
    fn default() -> Self {
        StreamTable::new()
    }
}

impl<T> StreamTable<T> {
    /// An empty table.
    pub const fn new() -> Self {
        StreamTable { pages: Vec::new() }
    }
}

impl<T: Default> StreamTable<T> {
    /// Returns the state of `stream`; `None` if no stream of its page was used.
    pub fn get(&self, stream: StreamId) -> Option<&T> {
        let (page, place) = position(stream);
        Some(&self.pages.get(page)?.as_ref()?[place])
    }

    /// Returns the state of `stream`, which has the default value at first.
    pub fn entry(&mut self, stream: StreamId) -> &mut T {
        let (page, place) = position(stream);
        if page >= self.pages.len() {
            self.cover(page);
        }
        &mut self.pages[page].get_or_insert_with(empty_page)[place]
    }

    #[cold]
    fn cover(&mut self, page: usize) {
        self.pages.resize_with(page + 1, || None);
    }

    /// Returns the state of `stream`; `None` if no stream of its page was used.
    pub fn get_mut(&mut self, stream: StreamId) -> Option<&mut T> {
        let (page, place) = position(stream);
        Some(&mut self.pages.get_mut(page)?.as_mut()?[place])
    }

    /// Returns the states of every page in use, in the order of stream ids.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.pages.iter_mut().flatten().flat_map(|page| page.iter_mut())
    }

    /// Returns the streams of every page in use with their states, in the order of stream ids.
    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &T)> {
        let used = self.pages.iter().enumerate().filter_map(|(page, states)| Some((page, states.as_ref()?)));
        used.flat_map(|(page, states)| {
            (page * PAGE..).map(|stream| StreamId(stream as u16)).zip(states.iter())
        })
    }
}

fn position(stream: StreamId) -> (usize, usize) {
    let stream = usize::from(stream.0);
    (stream / PAGE, stream % PAGE)
}

#[cold]
fn empty_page<T: Default>() -> Page<T> {
    Box::new(std::array::from_fn(|_| T::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_has_its_own_state() {
        let mut table = StreamTable::<u32>::default();
        for stream in (0..=u16::MAX).step_by(7) {
            *table.entry(StreamId(stream)) = u32::from(stream) + 1;
        }
        for stream in 0..=u16::MAX {
            let expected = if stream % 7 == 0 { u32::from(stream) + 1 } else { 0 };
            assert_eq!(table.get(StreamId(stream)), Some(&expected), "stream {stream}");
        }
    }

    #[test]
    fn only_pages_in_use_are_allocated() {
        let mut table = StreamTable::<u64>::default();
        assert_eq!(table.get(StreamId(65_535)), None);
        assert_eq!(table.pages.capacity(), 0, "a table at rest");
        *table.entry(StreamId(500)) = 9;
        assert_eq!(table.pages.iter().flatten().count(), 1);
        assert_eq!(table.get(StreamId(499)), Some(&0));
        assert_eq!(table.get(StreamId(3)), None);
        assert_eq!(table.get(StreamId(512)), None);
        let used: Vec<u16> =
            table.iter().filter(|(_, state)| **state == 9).map(|(stream, _)| stream.0).collect();
        assert_eq!((used, table.iter().count()), (vec![500], PAGE));
    }
}
