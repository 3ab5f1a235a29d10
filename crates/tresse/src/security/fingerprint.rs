//! Fingerprint of a public key: how it is computed, written and read.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};

/// The SHA-256 digest of a public key in the form in which certificates contain it (`SubjectPublicKeyInfo`, RFC 5280
/// §4.1, in DER): the digest of RFC 7469 pins, and of `openssl pkey -pubout -outform DER | sha256sum`.
///
/// Its text is `sha256:` and 64 hexadecimal digits.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of a public key, a `SubjectPublicKeyInfo` in DER.
    pub fn of_public_key(spki: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, spki).as_ref());
        Fingerprint(bytes)
    }

    /// Returns the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads the fingerprints in a text, one on each line. Text after a fingerprint and a space is a comment, as are
    /// lines that begin with `#`.
    ///
    /// # Errors
    /// A line that begins with another text, by its number.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, FingerprintError> {
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let first = |line: &str| line.split_whitespace().next().unwrap_or_default().parse::<Fingerprint>();
        lines.map(|(number, line)| first(line).map_err(|_| FingerprintError { line: Some(number) })).collect()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let wrong = FingerprintError { line: None };
        let known = text.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
        let digits = if known { &text.as_bytes()[PREFIX.len()..] } else { return Err(wrong) };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(wrong);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return Err(wrong) };
            *byte = high << 4 | low;
        }
        Ok(Fingerprint(bytes))
    }
}

/// The error that a text is not a fingerprint.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}not a fingerprint: \"sha256:\" and 64 hexadecimal digits, as `tresse keygen` prints it", place(.line))]
#[non_exhaustive]
pub struct FingerprintError {
    /// Its line in a list, counted from 1.
    pub line: Option<usize>,
}

fn place(line: &Option<usize>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}

const PREFIX: &str = "sha256:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let one = Fingerprint::of_public_key(b"a key");
        let text = one.to_string();
        assert_eq!(text.len(), PREFIX.len() + 64);
        assert_eq!(text.parse(), Ok(one));
        assert_eq!(text.to_uppercase().parse(), Ok(one));
    }

    #[test]
    fn a_fingerprint_is_the_digest_of_the_key() {
        // printf abc | sha256sum
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::of_public_key(b"abc").to_string(), format!("sha256:{digest}"));
    }

    #[test]
    fn other_text_is_no_fingerprint() {
        let good = Fingerprint::of_public_key(b"a key").to_string();
        let wrong = ["", "sha256:", "sha256", &good[7..], &good[..70], &good.replace("sha256", "sha512")];
        for text in wrong {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
        for odd in
            ["sha256:\u{e9}", "\u{1f600}\u{1f600}", &format!("{good}0"), &good.replace(&good[7..8], "g")]
        {
            assert!(odd.parse::<Fingerprint>().is_err(), "{odd}");
        }
    }

    #[test]
    fn a_list_has_one_a_line_with_comments() {
        let (one, two) = (Fingerprint::of_public_key(b"1"), Fingerprint::of_public_key(b"2"));
        let text = format!("# hosts\n\n{one} office, since May\r\n  {two}\n");
        assert_eq!(Fingerprint::parse_list(&text), Ok(vec![one, two]));
        let error = Fingerprint::parse_list(&format!("{one}\nsomething\n")).expect_err("a word");
        assert_eq!(error.line, Some(2));
        assert!(error.to_string().starts_with("line 2: not a fingerprint"), "{error}");
    }
}
