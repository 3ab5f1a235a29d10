//! Tests of files that are received: names, digests, and the data that is kept after an interruption.

use super::*;

/// A separate directory for each test, which is removed afterwards.
struct Dir(PathBuf);

impl Dir {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tresse-partial-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a writable temporary directory");
        Dir(path)
    }

    fn order(&self, size: Option<u64>) -> Order {
        Order { directory: self.0.clone(), name: "file".to_owned(), id: [0xab; 16], size, force: false }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it exists");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn digest(data: &[u8]) -> [u8; 32] {
    blake3::hash(data).into()
}

#[test]
fn pieces_in_any_order_make_the_file() {
    let dir = Dir::new("order");
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    let mut partial = Partial::open(dir.order(Some(data.len() as u64))).expect("new");
    let mut offsets: Vec<usize> = (0..data.len()).step_by(70_000).collect();
    offsets.rotate_left(7);
    offsets.swap(3, 20);
    for offset in offsets {
        let piece = &data[offset..data.len().min(offset + 70_000)];
        partial.write(offset as u64, piece).expect("room");
    }
    assert_eq!(dir.names(), [format!("file.part-{}", "ab".repeat(16))]);
    let path = partial.finish(data.len() as u64, &digest(&data)).expect("complete");
    assert!(fs::read(path).expect("readable") == data, "content differs");
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn an_empty_file_is_a_file() {
    let dir = Dir::new("empty");
    let partial = Partial::open(dir.order(Some(0))).expect("new");
    assert!(partial.is_complete(0));
    partial.finish(0, &digest(b"")).expect("complete");
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn a_wrong_digest_leaves_nothing() {
    let dir = Dir::new("digest");
    let mut partial = Partial::open(dir.order(None)).expect("new");
    partial.write(0, b"hello").expect("room");
    assert!(matches!(partial.finish(5, &digest(b"hullo")), Err(StoreError::WrongDigest)));
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn gaps_and_wrong_sizes_are_refused() {
    let dir = Dir::new("sizes");
    let mut partial = Partial::open(dir.order(Some(10))).expect("new");
    assert!(matches!(partial.write(8, b"abc"), Err(StoreError::BeyondEnd)));
    assert!(matches!(partial.write(u64::MAX, b"abc"), Err(StoreError::BeyondEnd)));
    partial.write(5, b"01234").expect("room");
    assert!(!partial.is_complete(10));
    assert!(matches!(partial.finish(10, &[0; 32]), Err(StoreError::Incomplete { missing: 5 })));
    let partial = Partial::open(dir.order(Some(10))).expect("again");
    assert!(matches!(partial.finish(9, &[0; 32]), Err(StoreError::WrongSize { announced: 10, sent: 9 })));
}

#[test]
fn existing_files_are_kept_unless_forced() {
    let dir = Dir::new("exists");
    fs::write(dir.0.join("file"), "old").expect("writable");
    assert!(matches!(Partial::open(dir.order(Some(4))), Err(StoreError::Exists)));

    let forced = Order { force: true, ..dir.order(Some(3)) };
    let mut partial = Partial::open(forced).expect("forced");
    partial.write(0, b"new").expect("room");
    partial.finish(3, &digest(b"new")).expect("replaced");
    assert_eq!(fs::read(dir.0.join("file")).expect("there"), b"new");
}

#[test]
fn a_name_taken_meanwhile_is_not_replaced() {
    let dir = Dir::new("race");
    let mut partial = Partial::open(dir.order(Some(3))).expect("new");
    partial.write(0, b"new").expect("room");
    fs::write(dir.0.join("file"), "old").expect("writable");
    assert!(matches!(partial.finish(3, &digest(b"new")), Err(StoreError::Exists)));
    assert_eq!(fs::read(dir.0.join("file")).expect("there"), b"old");
}

#[test]
fn two_transfers_do_not_share_a_file() {
    let dir = Dir::new("busy");
    let _first = Partial::open(dir.order(Some(3))).expect("new");
    assert!(matches!(Partial::open(dir.order(Some(3))), Err(StoreError::Busy)));
}

#[test]
fn a_kept_file_goes_on_where_it_was() {
    let dir = Dir::new("resume");
    let mut partial = Partial::open(dir.order(Some(10))).expect("new");
    partial.write(0, b"0123").expect("room");
    partial.write(6, b"67").expect("room");
    assert!(partial.keep().is_some());

    let mut partial = Partial::open(dir.order(Some(10))).expect("again");
    assert_eq!(partial.have().iter().collect::<Vec<_>>(), [0..4, 6..8]);
    assert_eq!(partial.resumed(), 6);
    partial.write(4, b"45").expect("room");
    partial.write(8, b"89").expect("room");
    partial.finish(10, &digest(b"0123456789")).expect("complete");
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn a_file_that_nobody_kept_starts_over() {
    let dir = Dir::new("crash");
    let mut partial = Partial::open(dir.order(Some(10))).expect("new");
    partial.write(0, b"0123").expect("room");
    // As after a crash: the partial file is there, the record is not.
    drop(partial);
    let partial = Partial::open(dir.order(Some(10))).expect("again");
    assert_eq!(partial.resumed(), 0);
    assert_eq!(partial.keep(), None);
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn a_file_of_the_same_length_is_the_same_if_its_digest_is() {
    let dir = Dir::new("same");
    fs::write(dir.0.join("file"), "old").expect("writable");
    let there = || Partial::open(dir.order(Some(3))).expect("it may be the same");
    assert!(there().resumed() == 3 && there().is_complete(3));
    there().finish(3, &digest(b"old")).expect("the same");
    assert!(matches!(there().finish(3, &digest(b"new")), Err(StoreError::Exists)));
    assert!(matches!(there().write(0, b"new"), Err(StoreError::Exists)));
    there().discard();
    assert!(there().keep().is_some());
    assert_eq!(fs::read(dir.0.join("file")).expect("there"), b"old");
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn what_a_killed_transfer_brought_is_on_record_but_for_the_last() {
    let dir = Dir::new("killed");
    let size = BETWEEN_RECORDS * 2;
    let mut partial = Partial::open(dir.order(Some(size))).expect("new");
    let piece = vec![7; BETWEEN_RECORDS as usize];
    partial.write(0, &piece).expect("room");
    partial.write(BETWEEN_RECORDS, b"more").expect("room");
    // As when the process dies.
    drop(partial);
    let partial = Partial::open(dir.order(Some(size))).expect("again");
    assert_eq!(partial.resumed(), BETWEEN_RECORDS);
    drop(partial);
    let mut partial = Partial::open(dir.order(Some(size))).expect("and again");
    assert_eq!(partial.resumed(), BETWEEN_RECORDS, "the record is kept");
    partial.write(BETWEEN_RECORDS, &piece).expect("room");
    partial.finish(size, &digest(&vec![7; size as usize])).expect("complete");
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn names_with_slashes_make_directories() {
    let dir = Dir::new("below");
    let order = Order { name: "a/b/c".to_owned(), ..dir.order(Some(3)) };
    let mut partial = Partial::open(order).expect("new");
    partial.write(0, b"new").expect("room");
    assert_eq!(partial.finish(3, &digest(b"new")).expect("complete"), dir.0.join("a/b/c"));
}
