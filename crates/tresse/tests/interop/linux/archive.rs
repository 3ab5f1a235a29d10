//! A file system for a kernel to start with, as it reads it from memory: the "new ASCII" form of cpio.

/// An archive in the making.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: usize,
}

/// Types of entries, and that everybody may read and run them.
const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_755;

impl Archive {
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, &[]);
    }

    pub(crate) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE, content);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    /// A header of numbers with eight hexadecimal digits each, the name, the content; each padded.
    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let name_len = name.len() + 1;
        let (owner, group, links, time) = (0, 0, 1, 0);
        let (device, special) = ([0, 0], [0, 0]);
        let numbers = [self.entries, mode as usize, owner, group, links, time, content.len()];
        let rest = [device, special].concat();
        self.bytes.extend(b"070701");
        for number in numbers.into_iter().chain(rest).chain([name_len, 0]) {
            self.bytes.extend(format!("{number:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
