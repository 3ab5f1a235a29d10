//! Identity of this side and its trust in peers, from the options of a command: a key and fingerprints, a shared secret, or nothing,
//! which is accepted between programs of this host only, unless the user permits more.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args};
use tresse::security::{Fingerprint, Identity, Peers, Security};
use tresse::{AssociationConfig, BindError, Endpoint, EndpointConfig, Registry};

use crate::failure::{Failure, of_file};
use crate::input;

/// Encryption, and who may take part.
#[derive(Args, Clone, Debug, Default)]
#[command(group = ArgGroup::new("keys").args(["key", "secret_file"]))]
pub(crate) struct SecurityArgs {
    /// Encrypt, and authenticate this side with this private key (tresse keygen FILE makes one)
    #[arg(long, value_name = "FILE", requires = "peer")]
    key: Option<PathBuf>,
    /// Peers to trust: the fingerprint of the other side's key, or a file with one on each line; may be repeated
    #[arg(long, value_name = "FINGERPRINT", requires = "key")]
    peer: Vec<String>,
    /// Encrypt, and authenticate both sides with the secret in this file: at least 16 bytes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "peer"])]
    secret_file: Option<PathBuf>,
    /// Append the keys of all records to this file, to decrypt captures (tresse dissect --key-log): with the file all
    /// data can be read
    #[arg(long, value_name = "FILE", requires = "keys")]
    key_log: Option<PathBuf>,
    /// Use no encryption: an attacker on the path can read and change everything, and impersonate the other side
    #[arg(long, conflicts_with_all = ["key", "peer", "secret_file"])]
    insecure: bool,
}

impl SecurityArgs {
    /// Returns whether associations are encrypted.
    pub(crate) fn encrypt(&self) -> bool {
        self.key.is_some() || self.secret_file.is_some()
    }

    /// Returns whether peers are trusted by their fingerprints.
    pub(crate) fn pins(&self) -> bool {
        self.key.is_some()
    }

    /// Returns the keys; `None` without encryption, which is accepted between programs of this host, or with --insecure.
    pub(crate) fn keys(&self, addresses: &[IpAddr]) -> Result<Option<Arc<Security>>, Failure> {
        self.keys_trusting(addresses, &Peers::default())
    }

    /// Like [`SecurityArgs::keys`]. `trusted` gets the fingerprints, and may change later.
    pub(crate) fn keys_trusting(
        &self,
        addresses: &[IpAddr],
        trusted: &Peers,
    ) -> Result<Option<Arc<Security>>, Failure> {
        if let Some(file) = &self.secret_file {
            let text = read_private(file, "--secret-file")?;
            let secret = text.strip_suffix(b"\n").unwrap_or(&text);
            let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
            let security =
                Security::shared_secret(secret).map_err(|error| at("--secret-file", file, error))?;
            return Ok(Some(Arc::new(self.logged(security)?)));
        }
        if let Some(file) = &self.key {
            let text = read_private(file, "--key")?;
            let identity = Identity::from_pem(&text).map_err(|error| at("--key", file, error))?;
            let listed = self.trusted()?;
            let security = Security::pinned(&identity, trusted).map_err(|error| at("--key", file, error))?;
            let security = self.logged(security)?;
            // This is last, so that invalid keys do not change the trusted peers.
            trusted.replace(listed);
            return Ok(Some(Arc::new(security)));
        }
        self.do_without_keys(addresses).map(|()| None)
    }

    /// Refuses addresses of other hosts, unless the user accepts that there is no encryption (--insecure).
    pub(crate) fn do_without_keys(&self, addresses: &[IpAddr]) -> Result<(), Failure> {
        match addresses.iter().find(|address| !address.to_canonical().is_loopback()) {
            Some(far) if !self.insecure => Err(Failure::usage(format!(
                "{far} is beyond this host, where others can listen and take part: give --key and --peer, or --secret-file, \
                 or say --insecure"
            ))),
            _ => Ok(()),
        }
    }

    /// Returns `security`, which also writes its keys to the file of --key-log, if that is given.
    fn logged(&self, security: Security) -> Result<Security, Failure> {
        let Some(file) = &self.key_log else { return Ok(security) };
        let log = open_log(file)?;
        // One write for each line, because processes may share the file. On a full disk lines are lost, and the association continues.
        Ok(security.with_key_log(move |key| drop((&log).write_all(format!("{}\n", *key.line()).as_bytes()))))
    }

    /// Reads the fingerprints again, and replaces those in `trusted`.
    ///
    /// # Errors
    /// There are no fingerprints, or some cannot be read; `trusted` has not changed then.
    pub(crate) fn trust_anew(&self, trusted: &Peers) -> Result<(), Failure> {
        if !self.pins() {
            return Err(Failure::usage("--key and --peer are no longer given"));
        }
        trusted.replace(self.trusted()?);
        Ok(())
    }

    /// Returns the fingerprints of the trusted peers.
    fn trusted(&self) -> Result<Vec<Fingerprint>, Failure> {
        let mut trusted = Vec::new();
        for peer in &self.peer {
            if peer.get(..7).is_some_and(|prefix| prefix.eq_ignore_ascii_case("sha256:")) {
                let one = peer.parse().map_err(|error| Failure::usage(format!("--peer {peer}: {error}")))?;
                trusted.push(one);
                continue;
            }
            let file = Path::new(peer);
            let text = input::read(file, LONGEST_FILE).map_err(|error| match error.kind() {
                ErrorKind::NotFound => at("--peer", file, "neither a fingerprint (sha256:…) nor a file"),
                _ => of_file(named("--peer", file), &error),
            })?;
            let text = String::from_utf8(text).map_err(|_| at("--peer", file, "is not text"))?;
            let listed = Fingerprint::parse_list(&text).map_err(|error| at("--peer", file, error))?;
            if listed.is_empty() {
                return Err(at("--peer", file, "has no fingerprint in it"));
            }
            trusted.extend(listed);
        }
        Ok(trusted)
    }
}

/// Binds an endpoint over UDP, with encryption if there are keys.
pub(crate) fn bind(
    local: &[IpAddr],
    udp_port: u16,
    (endpoint, config): (EndpointConfig, AssociationConfig),
    schedulers: Registry,
    keys: Option<&Arc<Security>>,
) -> Result<Endpoint, BindError> {
    bind_shared(local, udp_port, (endpoint, config), schedulers, keys.cloned(), 1)
}

/// Like [`bind`], with `drivers` drivers.
pub(crate) fn bind_shared(
    local: &[IpAddr],
    udp_port: u16,
    (endpoint, config): (EndpointConfig, AssociationConfig),
    schedulers: Registry,
    keys: Option<Arc<Security>>,
    drivers: usize,
) -> Result<Endpoint, BindError> {
    let builder = Endpoint::builder().local_addresses(local.iter().copied()).udp_port(udp_port);
    let builder = builder.endpoint_config(endpoint).association_config(config).schedulers(schedulers);
    let builder = builder.drivers(drivers);
    match keys {
        Some(keys) => builder.security(keys).bind(),
        None => builder.bind(),
    }
}

/// Like [`bind`], over raw IP.
pub(crate) fn bind_raw(
    local: &[IpAddr],
    (endpoint, config): (EndpointConfig, AssociationConfig),
    schedulers: &Registry,
    keys: Option<&Arc<Security>>,
) -> Result<Endpoint, BindError> {
    match keys {
        Some(keys) => Endpoint::bind_raw_secured(local, endpoint, config, schedulers, keys),
        None => Endpoint::bind_raw_with_schedulers(local, endpoint, config, schedulers),
    }
}

/// Returns the content of a file. Refuses a file on which other users have rights.
fn read_private(file: &Path, option: &str) -> Result<Vec<u8>, Failure> {
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    read_private_beside(credentials.as_deref(), file, option)
}

/// Like [`read_private`], with the directory of the service manager's credentials, if there is one.
fn read_private_beside(credentials: Option<&Path>, file: &Path, option: &str) -> Result<Vec<u8>, Failure> {
    let others = match is_below(file, credentials) {
        // An access control list admits the user of the service, and appears as rights of the group.
        true => OTHERS & !0o040,
        false => OTHERS,
    };
    if std::fs::metadata(file).is_ok_and(|found| is_shared(&found, others)) {
        return Err(shared(option, file));
    }
    input::read(file, LONGEST_FILE).map_err(|error| of_file(named(option, file), &error))
}

/// Returns whether the file is below the directory, after links are resolved.
fn is_below(file: &Path, directory: Option<&Path>) -> bool {
    let directory = directory.and_then(|directory| directory.canonicalize().ok());
    directory.is_some_and(|directory| file.canonicalize().is_ok_and(|file| file.starts_with(directory)))
}

/// Opens the file for keys. Refuses a file on which other users have rights.
fn open_log(file: &Path) -> Result<File, Failure> {
    let wrong = |error: io::Error| of_file(named("--key-log", file), &error);
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let log = options.open(file).map_err(wrong)?;
    // A file that was there already has kept its mode.
    match is_shared(&log.metadata().map_err(wrong)?, OTHERS) {
        true => Err(shared("--key-log", file)),
        false => Ok(log),
    }
}

/// Returns whether a file, other than a device or a pipe, gives any of the rights in `others`.
#[cfg(unix)]
fn is_shared(found: &Metadata, others: u32) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.is_file() && found.permissions().mode() & others != 0
}

#[cfg(not(unix))]
fn is_shared(_: &Metadata, _: u32) -> bool {
    false
}

fn shared(option: &str, file: &Path) -> Failure {
    at(option, file, format!("others than its owner may use it: chmod 600 {}", file.display()))
}

fn at(option: &str, file: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::usage(what).at(named(option, file))
}

/// Returns an option with the file that it names.
fn named(option: &str, file: &Path) -> String {
    format!("{option} {}", file.display())
}

/// All rights of the group and of others.
const OTHERS: u32 = 0o077;
/// Most bytes of a file: some 50,000 fingerprints.
const LONGEST_FILE: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_this_host_without_keys_unless_the_user_says_so() {
        let [near, nearer, far] =
            ["127.0.0.9", "::ffff:127.0.0.1", "192.0.2.1"].map(|text| text.parse().expect("an address"));
        let bare = SecurityArgs::default();
        assert!(bare.keys(&[near, nearer]).expect("this host").is_none());
        let refused = bare.keys(&[near, far]).expect_err("beyond this host");
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.message().starts_with("192.0.2.1 is beyond this host"), "{}", refused.message());
        let bold = SecurityArgs { insecure: true, ..SecurityArgs::default() };
        assert!(bold.keys(&[far]).expect("as the user wishes").is_none());
    }

    /// A directory that is removed at the end of its test.
    #[cfg(unix)]
    struct Scratch(PathBuf);

    #[cfg(unix)]
    impl Scratch {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tresse-security-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("writable");
            Scratch(path)
        }

        /// Creates a file with this mode in the directory.
        fn file(&self, name: &str, mode: u32) -> PathBuf {
            use std::os::unix::fs::PermissionsExt;
            let file = self.0.join(name);
            std::fs::write(&file, "content").expect("writable");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("one's own");
            file
        }
    }

    #[cfg(unix)]
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[cfg(unix)]
    #[test]
    fn keys_are_written_to_no_file_that_others_can_read() {
        let scratch = Scratch::new("log");
        assert!(open_log(&scratch.file("own", 0o600)).is_ok());
        assert!(open_log(&scratch.0.join("new")).is_ok());
        assert!(open_log(Path::new("/dev/null")).is_ok(), "nobody reads that");
        for mode in [0o644, 0o640, 0o620] {
            let file = scratch.file(&format!("open-{mode:o}"), mode);
            let refused = open_log(&file).expect_err("others may use it");
            let said = refused.message();
            assert!(said.starts_with(&format!("--key-log {}: ", file.display())), "{said}");
            assert!(said.contains("chmod 600"), "{said}");
            assert_eq!(std::fs::read(&file).expect("there"), b"content");
        }
    }

    #[cfg(unix)]
    #[test]
    fn credentials_of_the_service_manager_may_show_as_the_groups() {
        let (credentials, elsewhere) = (Scratch::new("credentials"), Scratch::new("elsewhere"));
        let read = |file: &Path| read_private_beside(Some(&credentials.0), file, "--key");
        assert_eq!(read(&credentials.file("key", 0o440)).expect("a credential"), b"content");
        let file = elsewhere.file("key", 0o440);
        assert!(read(&file).expect_err("no credential").message().contains("chmod 600"));
        assert!(read_private_beside(None, &file, "--key").is_err());
        for mode in [0o444, 0o460, 0o644] {
            assert!(read(&credentials.file(&format!("open-{mode:o}"), mode)).is_err(), "{mode:o}");
        }
        let around = credentials.0.join("..").join(elsewhere.0.file_name().expect("a name")).join("key");
        assert!(read(&around).is_err(), "the way leads out of the directory");
        std::os::unix::fs::symlink(&file, credentials.0.join("link")).expect("writable");
        assert!(read(&credentials.0.join("link")).is_err(), "and so does the link");
    }
}
