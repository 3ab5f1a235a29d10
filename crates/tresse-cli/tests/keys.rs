//! Keys and fingerprints.

#![allow(missing_docs, reason = "a test")]

mod common;

use std::fs;

use common::{Dir, Done, Running, receiver, same, text, tresse};

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
    assert!(nowhere.stderr.ends_with("no/such/key: there is no such directory\n"), "{nowhere:?}");
}

const HERE: &str = "127.0.0.1,127.0.0.2";
const THERE: &str = "127.0.0.3,127.0.0.4";

/// A new key: its file and its fingerprint.
fn key(dir: &Dir, name: &str) -> (String, String) {
    let file = text(&dir.path(name));
    let made = tresse(&["keygen", &file]);
    assert_eq!(made.code, Some(0), "{made:?}");
    (file, made.stdout.trim().to_owned())
}

fn send(file: &str, port: &str, more: &[&str]) -> Done {
    tresse(&[&["send", file, "--from", HERE, "--to", THERE, "--port", port], more].concat())
}

#[test]
fn a_file_goes_to_a_peer_that_is_known_by_one_of_several_fingerprints() {
    let dir = Dir::new("keys");
    let [(here, us), (there, them), (_, others)] =
        ["here.key", "there.key", "other.key"].map(|name| key(&dir, name));
    let known = dir.path("known");
    fs::write(&known, format!("# who may send\n{others} another host\n{us} this host\n")).expect("writable");
    let file = dir.file("data.bin", 5_000_000);
    let serve = ["--listen", THERE, "--once", "--key", &there, "--peer", &text(&known)];
    let (receiver, port) = receiver(&dir.out(), &serve);
    let sent = send(&text(&file), &port, &["--key", &here, "--peer", &them, "--json"]);
    let received = receiver.finish();
    assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{sent:?} {received:?}");
    assert!(same(&file, &dir.out().join("data.bin")));
}

#[test]
fn a_wrong_key_has_an_exit_code_of_its_own_and_nobody_is_named() {
    let dir = Dir::new("wrong-key");
    let [(here, us), (there, them), (stranger, strange)] =
        ["here.key", "there.key", "stranger.key"].map(|name| key(&dir, name));
    let file = dir.file("data.bin", 100_000);
    let (receiver, port) =
        receiver(&dir.out(), &["--listen", THERE, "--once", "--key", &there, "--peer", &us]);
    let cases = [
        ("a stranger calls", &stranger, &them, "the peer does not trust this side's key"),
        ("another peer is meant", &here, &strange, "the peer is not one of those that are trusted here"),
    ];
    for (what, key, peer, words) in cases {
        let refused = send(&text(&file), &port, &["--key", key, "--peer", peer]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(5), ""), "{what}: {refused:?}");
        assert!(refused.stderr.contains(words), "{what}: {}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{what}: {}", refused.stderr);
        assert!(!refused.stderr.contains("sha256:"), "{what}: {}", refused.stderr);
    }
    // Without a key there is nothing to be had either.
    let clear = send(&text(&file), &port, &[]);
    assert_eq!(clear.code, Some(1), "{clear:?}");
    assert_eq!(clear.stderr.lines().count(), 1, "{}", clear.stderr);
    assert!(clear.stderr.contains("it encrypts: give --key and --peer, or --secret-file"), "{clear:?}");
    // None of them was the one transfer that the receiver waits for.
    let sent = send(&text(&file), &port, &["--key", &here, "--peer", &them]);
    let received = receiver.finish();
    assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{sent:?} {received:?}");
    assert_eq!(received.stderr.lines().count(), 1, "the greeting: {}", received.stderr);
}

/// Its answer arrived: nothing is blocked on the way.
#[test]
fn a_doctor_without_keys_is_told_that_the_peer_encrypts() {
    let dir = Dir::new("doctor-keys");
    let [(_, us), (there, _)] = ["here.key", "there.key"].map(|name| key(&dir, name));
    let (_receiver, port) = receiver(&dir.out(), &["--listen", "127.0.0.3", "--key", &there, "--peer", &us]);
    let done = tresse(&["doctor", "--to", "127.0.0.3", "--port", &port]);
    let finding =
        done.stdout.lines().find(|line| line.contains(" UDP: ")).unwrap_or_else(|| panic!("{done:?}"));
    assert!(finding.ends_with("it encrypts: give --key and --peer, or --secret-file, as there"), "{finding}");
    let nobody = tresse(&["doctor", "--to", "127.0.0.3", "--port", "9", "--timeout", "300ms"]);
    assert!(nobody.stdout.contains("no answer within 300ms: nobody listens on UDP port 9"), "{nobody:?}");
}

#[test]
fn a_peer_without_keys_is_told_from_one_that_breaks_the_protocol() {
    let dir = Dir::new("no-key");
    let (us, them) = (key(&dir, "us.key"), key(&dir, "them.key"));
    let file = dir.file("data.bin", 10);
    let (_receiver, port) = receiver(&dir.out(), &["--listen", THERE]);
    let refused = send(&text(&file), &port, &["--key", &us.0, "--peer", &them.1]);
    assert_eq!((refused.code, refused.stderr.lines().count()), (Some(1), 1), "{refused:?}");
    let says =
        "the peer has no protection by DTLS chunks, which is required here; start the other side with --key";
    assert!(refused.stderr.contains(says), "{}", refused.stderr);
}

#[test]
fn two_hosts_measure_with_one_secret() {
    let dir = Dir::new("secret");
    let secret = dir.path("secret");
    fs::write(&secret, "0123456789abcdef0123456789abcdef\n").expect("writable");
    private(&secret);
    let secret = text(&secret);
    let mut server = Running::start(&[
        "perf",
        "server",
        "--listen",
        THERE,
        "--port",
        "0",
        "--once",
        "--secret-file",
        &secret,
    ]);
    let line = server.line();
    let port =
        line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next()).expect("a port").to_owned();
    let call = ["perf", "client", "--from", HERE, "--to", THERE, "--port", &port, "--bytes", "2MB", "--json"];
    let measured = tresse(&[&call[..], &["--secret-file", &secret]].concat());
    assert_eq!((measured.code, server.finish().code), (Some(0), Some(0)), "{measured:?}");
}

#[test]
fn nothing_leaves_this_host_without_keys_unless_the_user_insists() {
    let dir = Dir::new("insecure");
    let (file, out) = (text(&dir.file("data.bin", 10)), text(&dir.out()));
    let far = "192.0.2.1";
    let commands: [&[&str]; 8] = [
        &["send", &file, "--to", far],
        &["recv", "--listen", far, "--out", &out],
        &["perf", "server", "--listen", far],
        &["perf", "client", "--to", far],
        &["tunnel", "server", "--listen", far, "--tcp", "localhost:80"],
        &["tunnel", "client", "--to", far, "--tcp", "127.0.0.1:0"],
        &["peer", "server", "--listen", far],
        &["peer", "client", "--to", far],
    ];
    for command in commands {
        let refused = tresse(command);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{command:?}: {refused:?}");
        let line = "192.0.2.1 is beyond this host, where others can listen and take part: give --key and --peer, or \
                    --secret-file, or say --insecure";
        assert_eq!(refused.stderr, format!("tresse: {line}\n"), "{command:?}");
    }
    // With the wish the command goes on, to the next mistake.
    let insists = tresse(&["recv", "--listen", far, "--out", &out, "--insecure"]);
    assert!(insists.stderr.contains("this host does not have the address"), "{insists:?}");
}

#[test]
fn keys_that_cannot_be_used_are_refused_in_one_line() {
    let dir = Dir::new("bad-keys");
    let (good, fingerprint) = key(&dir, "good.key");
    let write = |name: &str, content: &str| {
        let path = dir.path(name);
        fs::write(&path, content).expect("writable");
        private(&path);
        text(&path)
    };
    let (short, empty) = (write("short", "guess me\n"), write("empty", "# nobody\n"));
    let missing = text(&dir.path("missing"));
    let cases: [(&[&str], &str); 10] = [
        (&["--key", &missing, "--peer", &fingerprint], "missing: there is no such file"),
        (&["--key", &short, "--peer", &fingerprint], "there is no private key in PEM"),
        (&["--key", &good], "--peer"),
        (&["--peer", &fingerprint], "--key"),
        (&["--key", &good, "--peer", "sha256:123"], "not a fingerprint"),
        (&["--key", &good, "--peer", &missing], "neither a fingerprint (sha256:…) nor a file"),
        (&["--key", &good, "--peer", &empty], "has no fingerprint in it"),
        (&["--secret-file", &short], "the secret is too short: at least 16 bytes"),
        (&["--secret-file", &short, "--insecure"], "cannot be used with"),
        (&["--key-log", &missing], "not provided: <--key <FILE>|--secret-file <FILE>>"),
    ];
    for (options, words) in cases {
        let refused = tresse(&[&["send", &good, "--to", "127.0.0.1"], options].concat());
        assert_eq!(refused.code, Some(2), "{options:?}: {refused:?}");
        assert!(refused.stderr.contains(words), "{options:?}: {}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{options:?}: {}", refused.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new("open-key");
    let (file, fingerprint) = key(&dir, "open.key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("one's own");
    let refused = tresse(&["send", &file, "--to", "127.0.0.1", "--key", &file, "--peer", &fingerprint]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("others than its owner may use it: chmod 600"), "{}", refused.stderr);
}

/// For its owner alone.
fn private(path: &std::path::Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("one's own");
    }
    let _ = path;
}
