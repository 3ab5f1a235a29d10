//! Names that a peer may give to a file here: one plain component of a path, nothing else.

/// Checks a name that came from the network or the command line.
///
/// # Errors
/// What is wrong with it, as the end of a line.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("a file needs a name");
    }
    if name == "." || name == ".." {
        return Err("the name stands for a directory");
    }
    if name.contains(['/', '\\']) {
        return Err("a name has no path separators");
    }
    if name.contains(char::is_control) {
        return Err("a name has no control characters");
    }
    if name.len() > MAX_LEN {
        return Err("the name is longer than 200 bytes");
    }
    Ok(())
}

/// Leaves room for the suffix of a partial file within the 255 bytes of most file systems.
const MAX_LEN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for name in
            ["", ".", "..", "/etc/passwd", "a/b", "..\\x", "a\0b", "a\nb", "a\u{7f}", &"n".repeat(201)]
        {
            assert!(check(name).is_err(), "{name:?}");
        }
        for name in ["a", "…", ".hidden", "a..b", "with space", "-f", &"n".repeat(200)] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }
}
