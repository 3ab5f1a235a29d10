//! A virtual machine with the kernel's SCTP and the programs of this host, at the other end of a link: a network namespace
//! with the programs over tresse. Makes the machine, and runs commands at either end.

#[path = "../../../tresse/tests/interop/linux/archive.rs"]
mod archive;
mod files;
#[path = "../../../tresse/tests/interop/linux/kernel.rs"]
mod kernel;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use files::Files;
use kernel::{Kernel, busybox};

use crate::common::{Running, compiled, program, python_with_pysctp, say};

/// Addresses of this side and of the machine: two of each, on one link.
pub(crate) const HERE: [&str; 2] = ["10.77.1.1", "10.77.2.1"];
pub(crate) const THERE: [&str; 2] = ["10.77.1.2", "10.77.2.2"];
/// UDP port of both sides for SCTP in UDP.
const IN_UDP: u16 = 9899;

/// A running machine; it ends with this process.
pub(crate) struct Guest {
    namespace: String,
    /// Programs of both ends for one test at a time: the machine is slow, and what its own programs call by is a setting of all.
    turn: Mutex<()>,
    /// Its end is that of the machine; see [`KEEPER`].
    _keeper: Child,
}

/// Encapsulation of SCTP packets: in UDP (RFC 6951), or raw IP.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    InUdp,
    Raw,
}

impl Carried {
    pub(crate) const ALL: [Carried; 2] = [Carried::InUdp, Carried::Raw];
}

/// The machine, which boots the first time; nothing where this host lacks something, which is said.
pub(crate) fn guest() -> Option<&'static Guest> {
    static GUEST: OnceLock<Result<Guest, Lack>> = OnceLock::new();
    match GUEST.get_or_init(Guest::start) {
        Ok(guest) => Some(guest),
        Err(Lack::Missing(what)) => {
            say(&format!("SKIPPED: {what}"));
            None
        }
        Err(Lack::Broken(how)) => panic!("{how}"),
    }
}

/// Reason for which there is no machine: something is not installed, or it fails.
enum Lack {
    Missing(String),
    Broken(String),
}

impl From<String> for Lack {
    fn from(what: String) -> Self {
        Lack::Missing(what)
    }
}

impl Guest {
    fn start() -> Result<Self, Lack> {
        let said = |error: std::io::Error| Lack::Broken(format!("the machine cannot be started: {error}"));
        if Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
            return Err(Lack::Missing("Debian's package qemu-system-x86 is needed".to_owned()));
        }
        let kernel = Kernel::find(&MODULES)?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(said)?;
        std::fs::write(folder.join("files"), files(&kernel)?).map_err(said)?;
        let namespace = format!("tresse-guest-{}", std::process::id());
        let mut commands = vec![
            format!("netns add {namespace}"),
            format!("-n {namespace} link set lo up"),
            format!("-n {namespace} tuntap add {LINK} mode tap"),
        ];
        commands.extend(HERE.map(|address| format!("-n {namespace} addr add {address}/24 dev {LINK}")));
        commands.push(format!("-n {namespace} link set {LINK} up"));
        let ip = |command: &String| {
            let done = Command::new("ip").args(command.split(' ')).output();
            done.is_ok_and(|done| done.status.success())
        };
        if !commands.iter().all(ip) {
            return Err(Lack::Missing(
                "network namespaces and taps need root and the command `ip`".to_owned(),
            ));
        }
        let keeper = launch(&kernel, &folder, &namespace).map_err(said)?;
        say(&format!("the kernel at the other end is {}", kernel.version()));
        let guest = Guest { namespace, turn: Mutex::default(), _keeper: keeper };
        let started = Instant::now();
        while guest.there("true").0.is_none() {
            if started.elapsed() > PATIENCE {
                let read = |name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
                let said = format!("the machine does not come up: {}\n{}", read("said"), read("console"));
                return Err(Lack::Broken(said));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(guest)
    }

    /// Waits until no other test uses the machine, whose own programs call by `carried` from now on.
    pub(crate) fn turn(&self, carried: Carried) -> MutexGuard<'_, ()> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let port = if carried == Carried::InUdp { IN_UDP } else { 0 };
        let (status, said) = self.there(&format!("echo {port} >/proc/sys/net/sctp/encap_port"));
        assert_eq!(status, Some(0), "{said}");
        turn
    }

    /// A command on this side, over tresse.
    pub(crate) fn here(&self, name: impl AsRef<std::ffi::OsStr>, carried: Carried) -> Command {
        let inner = program(name, IN_UDP);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                // Raw IP is what a process with its rights uses by itself.
                Some(value) if name != "TRESSE_UDP_PORT" || carried == Carried::InUdp => {
                    command.env(name, value)
                }
                _ => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A shell's line in the machine, over its kernel, which is under way.
    pub(crate) fn start_there(&self, line: &str) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, "timeout", "-k", "5", "100"]);
        command.args(["busybox", "nc", THERE[0], "7"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("busybox");
        let input = child.stdin.as_mut().expect("it is piped");
        // A machine that is not there yet says nothing.
        let _ = writeln!(input, "{line}");
        Running::of(child)
    }

    /// Exit status of a shell's line in the machine, if it ended, and its output.
    pub(crate) fn there(&self, line: &str) -> (Option<i32>, String) {
        ended(&self.start_there(line).output())
    }

    /// Runs a line there until it is content: who serves it may not listen yet.
    #[track_caller]
    pub(crate) fn until_served(&self, line: &str) -> String {
        let started = Instant::now();
        loop {
            let (status, said) = self.there(line);
            if status == Some(0) {
                return said;
            }
            assert!(started.elapsed() < PATIENCE, "{line}: {status:?}\n{said}");
        }
    }
}

/// Exit status and output of a command, from what `serve.sh` wrote.
fn ended(output: &std::process::Output) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match text.trim_end().rsplit_once("ended ") {
        Some((said, status)) => (status.parse().ok(), said.to_owned()),
        None => (None, text),
    }
}

/// The initial file system of the machine.
fn files(kernel: &Kernel) -> Result<Vec<u8>, String> {
    let mut files = Files::default();
    for place in PROGRAMS {
        files.copy(Path::new(place));
    }
    if let Some(module) = pysctp() {
        files.copy(&module);
        // Python's own library, whichever version that is.
        files.copy(
            &Path::new("/usr/lib")
                .join(module.ancestors().nth(1).and_then(Path::file_name).unwrap_or_default()),
        );
    }
    files.add("/conformance", std::fs::read(compiled("conformance")).map_err(|error| error.to_string())?);
    files.add("/one_end.py", include_bytes!("../one_end.py").to_vec());
    files.link();
    files.add("/bin/busybox", busybox()?);
    files.add("/boot", include_bytes!("../../../tresse/tests/interop/linux/boot.sh").to_vec());
    files.add("/init", include_bytes!("init.sh").to_vec());
    files.add("/serve", include_bytes!("serve.sh").to_vec());
    for (position, name) in MODULES.iter().enumerate() {
        let module = std::fs::read(kernel.module(name)).map_err(|error| format!("{name}: {error}"))?;
        // Numbered: the order in which they have to be loaded.
        files.add(format!("/modules/{position:02}"), module);
    }
    Ok(files.archive(&["/dev", "/proc", "/sys", "/tmp"]))
}

/// Path of `pysctp`, if it could be built.
pub(crate) fn pysctp() -> Option<PathBuf> {
    let python = python_with_pysctp().ok()?;
    let libraries = std::fs::read_dir(python.ancestors().nth(2)?.join("lib")).ok()?;
    libraries
        .flatten()
        .map(|entry| entry.path().join("site-packages"))
        .find(|place| place.join("sctp.py").exists())
}

/// Starts the machine. A shell ends it and clears up when its own input ends: with this process, however that ends.
fn launch(kernel: &Kernel, folder: &Path, namespace: &str) -> std::io::Result<Child> {
    let variables = format!("GUEST1={} GUEST2={} SCTP_IN_UDP={IN_UDP}", THERE[0], THERE[1]);
    let mut command = Command::new("sh");
    command.args(["-c", KEEPER, "sh"]).arg(folder).arg(namespace);
    kernel.emulated(&mut command, folder, 512, &variables);
    // Without the offloads of a virtual card: with them the kernel's SCTP in UDP loses what it leaves to be cut into packets.
    command.arg("-netdev").arg(format!("tap,id=link,ifname={LINK},script=no,downscript=no,vnet_hdr=off"));
    command.args(["-device", "virtio-net-pci,netdev=link,romfile="]);
    // A group of its own: what ends this process does not end that before it has cleared up.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
}

const KEEPER: &str = r#"folder=$1 namespace=$2; shift 2
ip netns exec "$namespace" "$@" 2>"$folder/said" & read -r _; kill $!; wait $!
ip netns del "$namespace"; rm -r "$folder""#;

const LINK: &str = "tap0";
/// Time limit for the machine to come up, and for a server to listen; it only ends what hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Programs and libraries of this host that are copied into the machine, if they are there.
const PROGRAMS: [&str; 6] = [
    "/usr/bin/iperf3",
    "/usr/bin/socat",
    "/usr/bin/sctp_darn",
    "/usr/bin/sctp_test",
    "/usr/bin/python3",
    "/usr/lib/erlang",
];

/// Kernel modules for a network and SCTP, each after those that it depends on.
const MODULES: [&str; 12] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "lib/libcrc32c",
    "net/ipv4/udp_tunnel",
    "net/ipv6/ip6_udp_tunnel",
    "net/sctp/sctp",
];
