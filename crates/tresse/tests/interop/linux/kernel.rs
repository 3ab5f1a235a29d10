//! A kernel of Debian with its modules, the programs of busybox, and the emulator: the base of a virtual machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel with its modules.
pub(crate) struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

impl Kernel {
    /// The one that `tools/fetch_kernel.sh` brought, else one that this host has installed, with the modules that are needed.
    pub(crate) fn find(needed: &[&str]) -> Result<Self, String> {
        let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kernel");
        [brought, PathBuf::from("/")].iter().find_map(|root| Kernel::under(root, needed)).ok_or_else(|| {
            "a kernel of Debian with the module sctp is needed: tools/fetch_kernel.sh brings one".to_owned()
        })
    }

    fn under(root: &Path, needed: &[&str]) -> Option<Self> {
        let entries = fs::read_dir(root.join("boot")).ok()?;
        let mut versions: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("vmlinuz-").map(str::to_owned))
            .collect();
        versions.sort();
        let kernels = versions.iter().rev().map(|version| Kernel {
            image: root.join("boot").join(format!("vmlinuz-{version}")),
            modules: root.join("lib/modules").join(version).join("kernel"),
        });
        let mut whole = kernels.filter(|kernel| needed.iter().all(|name| kernel.module(name).is_file()));
        whole.next()
    }

    /// As the image says it of itself, such as "6.1.0-41-cloud-amd64 (Debian 6.1.158-1)"; else its name.
    pub(crate) fn version(&self) -> String {
        let image = fs::read(&self.image).unwrap_or_default();
        let text = version_in(&image).unwrap_or_default();
        let release = text.split(' ').next().filter(|release| !release.is_empty());
        let package = text.split_once(" Debian ").and_then(|(_, rest)| rest.split(' ').next());
        match (release, package) {
            (Some(release), Some(package)) => format!("{release} (Debian {package})"),
            (Some(release), None) => release.to_owned(),
            (None, _) => self.image.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// Appends QEMU and what starts this kernel with the files that are in `folder`, and these `variables` for its first program.
    /// Without acceleration, which works everywhere.
    pub(crate) fn emulated(&self, command: &mut Command, folder: &Path, megabytes: u32, variables: &str) {
        command.args(["qemu-system-x86_64", "-M", "pc,accel=tcg", "-cpu", "max", "-no-reboot"]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none"]);
        command.arg("-m").arg(megabytes.to_string());
        command.arg("-serial").arg(format!("file:{}", folder.join("console").display()));
        command.arg("-kernel").arg(&self.image).arg("-initrd").arg(folder.join("files"));
        command.arg("-append").arg(format!("{ARGUMENTS} {variables}"));
    }

    pub(crate) fn module(&self, name: &str) -> PathBuf {
        self.modules.join(name).with_extension("ko")
    }
}

/// Arguments of the kernel with which it starts sooner. Variables without a dot end up in the environment of its first program.
const ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 nokaslr mitigations=off no_timer_check";

/// The version string of a bootable image: its offset, less 512, stands at 0x20e (x86 boot protocol 2.00).
fn version_in(image: &[u8]) -> Option<&str> {
    let offset = u16::from_le_bytes(image.get(0x20e..0x210)?.try_into().ok()?);
    let rest = image.get(usize::from(offset) + 0x200..)?;
    let end = rest.iter().take(256).position(|&byte| byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// The one program that is many, for a machine without libraries.
pub(crate) fn busybox() -> Result<Vec<u8>, String> {
    let place = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new).into_iter().find(|path| path.is_file());
    let program = place.and_then(|place| fs::read(place).ok()).filter(|program| is_static(program));
    program.ok_or_else(|| "Debian's package busybox-static is needed".to_owned())
}

/// Whether a program does without the system's libraries: it names nobody who would load them.
fn is_static(program: &[u8]) -> bool {
    let loader = b"/ld-linux";
    !program.windows(loader.len()).any(|bytes| bytes == loader)
}
