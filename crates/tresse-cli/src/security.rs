//! Identity of this side and its trust in peers, as commands take them: a key and fingerprints, a shared secret, or
//! nothing, which is enough on this host alone.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tresse::security::{Fingerprint, Identity, Peers, Security};
use tresse::{AssociationConfig, BindError, Endpoint, EndpointConfig, Registry};

use crate::failure::{Failure, words};

/// Encryption, and who may take part.
#[derive(Args, Clone, Debug, Default)]
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
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// Use no encryption: an attacker on the path can read and change everything, and impersonate the other side
    #[arg(long, conflicts_with_all = ["key", "peer", "secret_file"])]
    insecure: bool,
}

impl SecurityArgs {
    /// The keys, if any are given. None are needed between programs of this host, or where the user wants to do without.
    pub(crate) fn keys(&self, addresses: &[IpAddr]) -> Result<Option<Arc<Security>>, Failure> {
        self.keys_trusting(addresses, &Peers::default())
    }

    /// The same, with the fingerprints in `trusted`, which may change later.
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
            self.trust_anew(trusted)?;
            let security = Security::pinned(&identity, trusted);
            return Ok(Some(Arc::new(self.logged(security.map_err(|error| at("--key", file, error))?)?)));
        }
        match addresses.iter().find(|address| !address.to_canonical().is_loopback()) {
            Some(far) if !self.insecure => Err(Failure::usage(format!(
                "{far} is beyond this host, where others can listen and take part: give --key and --peer, or --secret-file, \
                 or say --insecure"
            ))),
            _ => Ok(None),
        }
    }

    /// The same, with its keys written to the file that was asked for.
    fn logged(&self, security: Security) -> Result<Security, Failure> {
        let Some(file) = &self.key_log else { return Ok(security) };
        let mut options = File::options();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let log = options.open(file).map_err(|error| at("--key-log", file, words(&error)))?;
        // One write for a line: processes may share the file. A full disk costs lines, not the association.
        Ok(security.with_key_log(move |key| drop((&log).write_all(format!("{}\n", *key.line()).as_bytes()))))
    }

    /// Reads the fingerprints again, where there are any.
    pub(crate) fn trust_anew(&self, trusted: &Peers) -> Result<(), Failure> {
        trusted.replace(self.trusted()?);
        Ok(())
    }

    /// The fingerprints of those who are trusted.
    fn trusted(&self) -> Result<Vec<Fingerprint>, Failure> {
        let mut trusted = Vec::new();
        for peer in &self.peer {
            if peer.get(..7).is_some_and(|prefix| prefix.eq_ignore_ascii_case("sha256:")) {
                let one = peer.parse().map_err(|error| Failure::usage(format!("--peer {peer}: {error}")))?;
                trusted.push(one);
                continue;
            }
            let file = Path::new(peer);
            let text = read(file).map_err(|error| match error.kind() {
                ErrorKind::NotFound => at("--peer", file, "neither a fingerprint (sha256:…) nor a file"),
                _ => at("--peer", file, words(&error)),
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

/// An endpoint over UDP, encrypted where there are keys.
pub(crate) fn bind(
    local: &[IpAddr],
    udp_port: u16,
    (endpoint, config): (EndpointConfig, AssociationConfig),
    schedulers: Registry,
    keys: Option<&Arc<Security>>,
) -> Result<Endpoint, BindError> {
    bind_shared(local, udp_port, (endpoint, config), schedulers, keys.cloned(), 1)
}

/// The same with so many drivers.
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

/// The same over raw IP.
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

/// Content of a file that others must not read: refused where they can.
fn read_private(file: &Path, option: &str) -> Result<Vec<u8>, Failure> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let open = std::fs::metadata(file)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0);
        if open {
            let shown = file.display();
            return Err(at(option, file, format!("others than its owner may use it: chmod 600 {shown}")));
        }
    }
    read(file).map_err(|error| at(option, file, words(&error)))
}

/// A file of a sensible length; a longer one is cut.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(file)?.take(LONGEST_FILE).read_to_end(&mut text)?;
    Ok(text)
}

fn at(option: &str, file: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{option} {}: {what}", file.display()))
}

/// Some 50,000 fingerprints.
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
}
