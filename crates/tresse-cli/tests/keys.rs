//! Keys and fingerprints.

#![allow(missing_docs, reason = "a test")]

mod common;

use std::fs;

use common::{Dir, text, tresse};

#[test]
fn keygen_writes_a_key_for_its_owner_alone_and_prints_the_fingerprint_alone() {
    let dir = Dir::new("keygen");
    let file = dir.path("host.key");
    let made = tresse(&["keygen", &text(&file)]);
    assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""), "{made:?}");
    let fingerprint = made.stdout.strip_suffix('\n').expect("a line");
    let digits = fingerprint.strip_prefix("sha256:").expect("the digest's name");
    assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{fingerprint}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    }
    let key = fs::read_to_string(&file).expect("there");
    assert!(key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "PEM");
    assert_eq!(tresse(&["keygen", "--show", &text(&file)]).stdout, made.stdout);
    assert_eq!(fs::read_to_string(&file).expect("there"), key, "shown, not changed");
}

#[test]
fn keygen_never_writes_over_a_file() {
    let dir = Dir::new("keygen-over");
    let file = dir.path("precious");
    fs::write(&file, "precious").expect("writable");
    let refused = tresse(&["keygen", &text(&file)]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(refused.stderr.contains("precious: exists; a key is never overwritten"), "{}", refused.stderr);
    assert_eq!(refused.stderr.lines().count(), 1);
    assert_eq!(fs::read_to_string(&file).expect("there"), "precious");
    let shown = tresse(&["keygen", "--show", &text(&file)]);
    assert_eq!(shown.code, Some(2));
    assert!(shown.stderr.contains("there is no private key in PEM"), "{}", shown.stderr);
    let nowhere = tresse(&["keygen", &text(&dir.path("no/such/key"))]);
    assert_eq!(nowhere.code, Some(2));
}
