//! File system of a virtual machine: programs of this host with the libraries that they are linked with.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Archive;

/// Files by the names that they have there.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<PathBuf, Vec<u8>>);

impl Files {
    pub(crate) fn add(&mut self, name: impl Into<PathBuf>, content: Vec<u8>) {
        self.0.insert(name.into(), content);
    }

    /// A file or a folder of this host, where it is here; nothing where it is not.
    pub(crate) fn copy(&mut self, place: &Path) {
        if let Ok(entries) = fs::read_dir(place) {
            let passed = |path: &Path| UNUSED.iter().any(|name| path.ends_with(name));
            entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| !passed(path))
                .for_each(|path| self.copy(&path));
        } else if let Ok(content) = fs::read(place) {
            self.add(place, content);
        }
    }

    /// The libraries of everything that is here.
    pub(crate) fn link(&mut self) {
        let linked: Vec<&PathBuf> = self
            .0
            .iter()
            .filter(|(_, content)| content.starts_with(b"\x7fELF"))
            .map(|(name, _)| name)
            .collect();
        let output = Command::new("ldd").args(linked).output().expect("ldd, which belongs to the C library");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // "libm.so.6 => /lib/libm.so.6 (0x7f...)", or the path alone.
        let libraries =
            said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
        for library in libraries.filter(|word| !word.ends_with(':')).collect::<BTreeSet<_>>() {
            self.copy(Path::new(library));
        }
    }

    /// All of it, as a kernel reads it.
    pub(crate) fn archive(self, empty: &[&str]) -> Vec<u8> {
        let above = self.0.keys().flat_map(|name| name.ancestors().skip(1)).map(Path::to_owned);
        // A folder comes before what is in it.
        let folders: BTreeSet<PathBuf> = above.chain(empty.iter().map(PathBuf::from)).collect();
        let mut archive = Archive::default();
        let inside = |path: &Path| path.strip_prefix("/").unwrap_or(path).display().to_string();
        folders
            .iter()
            .map(|folder| inside(folder))
            .filter(|name| !name.is_empty())
            .for_each(|name| archive.folder(&name));
        self.0.iter().for_each(|(name, content)| archive.file(&inside(name), content));
        archive.finish()
    }
}

/// Parts of Python's library that are large and that nobody needs there.
const UNUSED: [&str; 6] = ["dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test"];
