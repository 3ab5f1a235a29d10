//! Permitted names of files: components of a path below the receiver's directory, separated by slashes.

/// Checks a name from the network or the command line.
///
/// # Errors
/// The fault of the name, as the end of a line.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    if name.split('/').count() > MOST_COMPONENTS {
        return Err("the name leads through more than 64 directories");
    }
    name.split('/').try_for_each(check_component)
}

fn check_component(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("a file needs a name");
    }
    if name == "." || name == ".." {
        return Err("the name stands for a directory");
    }
    if name.contains('\\') {
        return Err("a name has no backslashes");
    }
    if name.contains(char::is_control) {
        return Err("a name has no control characters");
    }
    if name.len() > MAX_LEN {
        return Err("the name is longer than 200 bytes");
    }
    Ok(())
}

/// Longest component in bytes: leaves room for the suffix of a partial file within the 255 bytes of most file systems.
const MAX_LEN: usize = 200;
/// Most components of a name: its directories and the file.
const MOST_COMPONENTS: usize = 65;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "a/../b",
            "a//b",
            "a/",
            "..\\x",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            &"n".repeat(201),
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
        assert!(check(&["a"; 66].join("/")).is_err() && check(&["a"; 65].join("/")).is_ok());
        for name in ["a", "a/b/c", "…", ".hidden", "a..b", "with space", "-f", &"n".repeat(200)] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }
}
