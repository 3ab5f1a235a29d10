//! A virtual machine with Debian's kernel, emulated by QEMU, that starts peers on demand. Owns how it is made and
//! started, and the serial ports over which peers are told and heard.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::archive::Archive;
use super::kernel::{Kernel, busybox};
use super::wire::{CARD, Wire};
use crate::peer::Inside;

/// A running machine. It ends with this process.
pub(super) struct Machine {
    pub(super) wire: Wire,
    /// Version of the kernel.
    pub(super) kernel: String,
    ports: Vec<Port>,
    /// Ports that no peer has.
    free: Mutex<Vec<usize>>,
    /// Dropping it ends the machine; see [`launch`].
    _machine: Child,
}

/// A serial port.
struct Port {
    input: Mutex<UnixStream>,
    /// Lines that the machine wrote.
    output: Mutex<Receiver<String>>,
}

/// A peer of this machine, running or not; its port is free again when this value is dropped.
pub(crate) struct Seat {
    machine: &'static Machine,
    port: usize,
}

impl Machine {
    /// Makes a machine of what is installed, with `peer` in it, and starts it.
    ///
    /// # Errors
    /// What is missing, or that it did not come up.
    pub(super) fn start(peer: &Path, udp_port: u16) -> Result<Self, String> {
        let kernel = Kernel::find(&MODULES)?;
        let folder = std::env::temp_dir().join(format!("tresse-linux-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let said = |error: std::io::Error| format!("the machine cannot be started: {error}");
        fs::write(folder.join("files"), files(&kernel, peer)?).map_err(said)?;
        let wire = Wire::new(&folder.join("host")).map_err(said)?;
        let machine = launch(&kernel, &folder, udp_port).map_err(said)?;
        let until = Instant::now() + PATIENCE;
        let ports = (0..PORTS).map(|number| Port::open(&port_path(&folder, number), until));
        let ports = ports.collect::<Result<Vec<Port>, String>>().map_err(|error| {
            let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
            format!("{error}: {}", said.trim())
        })?;
        for port in &ports {
            port.await_ready(until)?;
        }
        wire.connect(&folder.join("machine")).map_err(said)?;
        Ok(Machine {
            wire,
            kernel: kernel.version(),
            ports,
            free: Mutex::new((0..PORTS).collect()),
            _machine: machine,
        })
    }

    /// A place for a peer.
    pub(super) fn seat(&'static self) -> Seat {
        let port = locked(&self.free).pop().expect("no more peers at once than ports");
        Seat { machine: self, port }
    }
}

impl Port {
    fn open(path: &Path, until: Instant) -> Result<Self, String> {
        let input = loop {
            match UnixStream::connect(path) {
                Ok(stream) => break stream,
                Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(format!("qemu-system-x86_64 does not start: {error}")),
            }
        };
        let reader = input.try_clone().map_err(|error| error.to_string())?;
        let (lines, output) = channel();
        thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Port { input: Mutex::new(input), output: Mutex::new(output) })
    }

    fn await_ready(&self, until: Instant) -> Result<(), String> {
        let left = until.saturating_duration_since(Instant::now());
        match locked(&self.output).recv_timeout(left) {
            Ok(line) if line == "ready" => Ok(()),
            Ok(line) => Err(format!("the kernel says \"{line}\", not \"ready\"")),
            Err(_) => Err(format!("the kernel does not come up within {} s", PATIENCE.as_secs())),
        }
    }

    fn write(&self, line: &str) {
        // A machine that has ended says so by its silence.
        let _ = locked(&self.input).write_all(format!("{line}\n").as_bytes());
    }
}

impl Seat {
    /// Runs a peer until there are no more commands for it; `cut` then lets nothing through any more.
    pub(super) fn run(&self, settings: &str, inside: Inside, cut: impl FnOnce()) {
        static NUMBERS: AtomicU32 = AtomicU32::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::SeqCst);
        let port = &self.machine.ports[self.port];
        port.write(&format!("{number} {settings}"));
        let gone = format!("gone {number}");
        let Inside { commands, lines } = inside;
        let has_gone = thread::scope(|scope| {
            let reader = scope.spawn(|| pass_lines(&locked(&port.output), lines, &gone));
            for command in commands {
                port.write(&command);
            }
            cut();
            port.write("crash");
            reader.join().unwrap_or(false)
        });
        assert!(has_gone, "the peer in the machine does not end");
    }
}

/// Hands on what the peer says until it has gone; returns whether it has.
fn pass_lines(output: &Receiver<String>, to: UnboundedSender<String>, gone: &str) -> bool {
    while let Ok(line) = output.recv_timeout(LONGEST_SILENCE) {
        if line == gone {
            return true;
        }
        // A case that has ended hears nothing more.
        let _ = to.send(line);
    }
    false
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.machine.free).push(self.port);
    }
}

/// Everything that the machine has, as the kernel wants it.
fn files(kernel: &Kernel, peer: &Path) -> Result<Vec<u8>, String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let busybox = busybox()?;
    let mut archive = Archive::default();
    ["bin", "dev", "modules", "proc", "sys"].iter().for_each(|name| archive.folder(name));
    archive.file("bin/busybox", &busybox);
    archive.file("peer", &read(peer)?);
    archive.file("boot", include_bytes!("boot.sh"));
    archive.file("init", include_bytes!("init.sh"));
    for (position, name) in MODULES.iter().enumerate() {
        // Numbered: the order in which they have to be loaded.
        archive.file(&format!("modules/{position:02}"), &read(&kernel.module(name))?);
    }
    Ok(archive.finish())
}

/// Starts the machine. A shell ends it and clears up when its own input ends: with this process, however that ends.
fn launch(kernel: &Kernel, folder: &Path, udp_port: u16) -> std::io::Result<Child> {
    let file = |name: &str| folder.join(name).display().to_string();
    let card = CARD.map(|byte| format!("{byte:02x}")).join(":");
    let mut command = Command::new("sh");
    command.args(["-c", KEEPER, "sh"]).arg(folder);
    kernel.emulated(&mut command, folder, 256, &format!("UDP_PORT={udp_port}"));
    command.arg("-netdev").arg(format!(
        "dgram,id=wire,local.type=unix,local.path={},remote.type=unix,remote.path={}",
        file("machine"),
        file("host")
    ));
    command.arg("-device").arg(format!("virtio-net-pci,netdev=wire,mac={card},romfile="));
    command.arg("-device").arg(format!("virtio-serial-pci,max_ports={}", PORTS + 1));
    for number in 0..PORTS {
        let path = port_path(folder, number);
        command
            .arg("-chardev")
            .arg(format!("socket,id=port{number},path={},server=on,wait=off", path.display()));
        command.arg("-device").arg(format!("virtserialport,chardev=port{number},nr={}", number + 1));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
}

fn port_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("port{number}"))
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

const KEEPER: &str =
    r#"folder=$1; shift; "$@" 2>"$folder/said" & read -r _; kill $!; wait $!; rm -r "$folder""#;

/// Peers at once: a case may have two, and some cases run beside each other.
const PORTS: usize = 8;

/// How long the machine may take to come up, and how long a peer may say nothing; it only ends what hangs.
const PATIENCE: Duration = Duration::from_secs(120);
const LONGEST_SILENCE: Duration = Duration::from_secs(1000);

/// What the machine needs to have a network, serial ports and SCTP, each after what it needs itself.
const MODULES: [&str; 13] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "drivers/char/virtio_console",
    "lib/libcrc32c",
    "net/ipv4/udp_tunnel",
    "net/ipv6/ip6_udp_tunnel",
    "net/sctp/sctp",
];
