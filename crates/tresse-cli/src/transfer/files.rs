//! The files of one call of `tresse send`: those on the command line, and all files below directories there.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::source::Source;
use crate::failure::{Failure, of_file};

/// A file to be sent.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    path: PathBuf,
    /// Name that the receiver is to give to the file; `None` for its own name.
    name: Option<String>,
}

impl Offer {
    /// Opens the file.
    ///
    /// # Errors
    /// The file cannot be read, or its name cannot be sent.
    pub(crate) fn open(&self) -> Result<Source, Failure> {
        Source::open(&self.path, self.name.as_deref())
    }

    /// Opens the file again, to resume its transfer.
    ///
    /// # Errors
    /// As [`Offer::open`]; or the file can be read only once.
    pub(crate) fn open_again(&self) -> Result<Source, Failure> {
        let shown = self.path.display();
        if self.path == Path::new("-") || !fs::metadata(&self.path).is_ok_and(|there| there.is_file()) {
            return Err(Failure::running(format!(
                "{shown} can be read but once, and stays with the old one"
            )));
        }
        self.open()
    }
}

/// Returns the files that `paths` stand for: paths in the given order, and files below a directory in the order of their names. `rename`
/// is a name for the only file or directory.
///
/// # Errors
/// A path does not exist or cannot be read, `rename` is given with several paths, there is no file, or two files have one name.
pub(crate) fn expand(paths: &[PathBuf], rename: Option<&str>) -> Result<Vec<Offer>, Failure> {
    let mut offers = Vec::new();
    for path in paths {
        if path != Path::new("-") && fs::metadata(path).is_ok_and(|there| there.is_dir()) {
            let name = rename.map(str::to_owned).or_else(|| own_name(path));
            let name = name.ok_or_else(|| {
                Failure::usage(format!(
                    "{}: it has no name, or none in UTF-8; give one with --name",
                    path.display()
                ))
            })?;
            below(path, &name, &mut offers)?;
        } else {
            offers.push(Offer { path: path.clone(), name: rename.map(str::to_owned) });
        }
    }
    if rename.is_some() && paths.len() > 1 {
        return Err(Failure::usage("--name is for one file or directory"));
    }
    if offers.is_empty() {
        return Err(Failure::usage("there is no file in what was named"));
    }
    let mut names = BTreeSet::new();
    for offer in &offers {
        // Missing files and invalid names are reported before the first file is sent.
        let name = if offer.path == Path::new("-") { "-".to_owned() } else { offer.open()?.name };
        if !names.insert(name) {
            return Err(Failure::usage(format!(
                "{}: another file has the same name: send them apart, or their directory",
                offer.path.display()
            )));
        }
    }
    Ok(offers)
}

/// Adds the files in `directory` and in its subdirectories, under names that begin with `name`. Links to directories are left out,
/// because they may lead into a loop.
fn below(directory: &Path, name: &str, offers: &mut Vec<Offer>) -> Result<(), Failure> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|error| refusal(directory, &error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let own = entry.file_name();
        let own = own
            .to_str()
            .ok_or_else(|| Failure::usage(format!("{}: the name is not UTF-8; rename it", path.display())))?;
        let name = format!("{name}/{own}");
        let kind = entry.file_type().map_err(|error| refusal(&path, &error))?;
        if kind.is_dir() {
            below(&path, &name, offers)?;
            continue;
        }
        let target = fs::metadata(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if kind.is_symlink() => {
                Failure::usage(format!("{}: the link leads to nothing: remove or mend it", path.display()))
            }
            _ => refusal(&path, &error),
        })?;
        if target.is_file() {
            offers.push(Offer { path, name: Some(name) });
        }
    }
    Ok(())
}

fn own_name(path: &Path) -> Option<String> {
    let resolved = path.canonicalize().ok()?;
    resolved.file_name()?.to_str().map(str::to_owned)
}

fn refusal(path: &Path, error: &io::Error) -> Failure {
    of_file(path.display(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_all_files_below_it() {
        let root = std::env::temp_dir().join(format!("tresse-files-{}", std::process::id()));
        let top = root.join("top");
        fs::create_dir_all(top.join("b/deep")).expect("writable");
        fs::create_dir_all(top.join("empty")).expect("writable");
        for name in ["c", "a", "b/deep/x", "b/y"] {
            fs::write(top.join(name), name).expect("writable");
        }
        let names = |paths: &[PathBuf], rename| -> Vec<String> {
            let offers = expand(paths, rename).unwrap_or_else(|failure| panic!("{}", failure.message()));
            offers.iter().map(|offer| offer.open().expect("there").name).collect()
        };
        assert_eq!(names(std::slice::from_ref(&top), None), ["top/a", "top/b/deep/x", "top/b/y", "top/c"]);
        assert_eq!(names(&[top.join("b")], Some("z")), ["z/deep/x", "z/y"]);
        assert_eq!(names(&[top.join("c"), top.join("a")], None), ["c", "a"]);
        let refused = |paths: &[PathBuf], rename| {
            expand(paths, rename).map(|_| ()).expect_err("refused").message().to_owned()
        };
        assert!(refused(&[top.join("a"), top.join("a")], None).contains("the same name"));
        assert!(refused(&[top.join("a"), top.join("c")], Some("z")).contains("--name"));
        assert!(refused(&[top.join("empty")], None).contains("no file"));
        assert!(refused(&[top.join("missing")], None).contains("no such file"));
        fs::remove_dir_all(root).expect("there");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_wrong_below_a_directory_is_named_itself() {
        let top = std::env::temp_dir().join(format!("tresse-links-{}", std::process::id()));
        fs::create_dir_all(top.join("deep")).expect("writable");
        fs::write(top.join("a"), "a").expect("writable");
        let link = top.join("deep/old");
        std::os::unix::fs::symlink("nowhere", &link).expect("writable");
        let refused = expand(std::slice::from_ref(&top), None).map(|_| ()).expect_err("a link to nothing");
        let said = refused.message().to_owned();
        fs::remove_dir_all(&top).expect("there");
        assert!(said.starts_with(&format!("{}: the link leads to nothing", link.display())), "{said}");
        let root = expand(&[PathBuf::from("/")], None).map(|_| ()).expect_err("no name");
        assert!(root.message().starts_with("/: it has no name"), "{}", root.message());
    }
}
