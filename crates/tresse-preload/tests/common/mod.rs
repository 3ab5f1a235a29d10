//! Programs under the preload library: where that is, which programs this machine has, and processes that end with their test.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

#[path = "../../../tresse-sockets/tests/common/ports.rs"]
mod ports;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Compiles `tests/c/<name>.c`, or all of the folder `tests/c/<name>`; neither knows anything of tresse.
pub fn compiled(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name);
    let sources: Vec<PathBuf> = match source.read_dir() {
        Ok(files) => {
            let paths = files.map(|file| file.expect("it can be read").path());
            paths.filter(|path| path.extension().is_some_and(|end| end == "c")).collect()
        }
        Err(_) => vec![source.with_extension("c")],
    };
    let flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-D_FORTIFY_SOURCE=2", "-pthread", "-o"];
    let mut compiler = Command::new("cc");
    compiler.args(flags).arg(&program).args(sources).args(["-Wl,--as-needed", "-lsctp"]);
    let output = compiler.output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// That `c/conformance` has said what `conformance.txt` has of one of the two systems, of which `which` picks a line's answer.
#[track_caller]
pub fn conforms(said: &str, which: impl Fn((&'static str, &'static str)) -> &'static str) {
    let expected = include_str!("../conformance.txt").lines().filter(|line| !line.starts_with('#'));
    let expected: Vec<String> = expected
        .map(|line| {
            let (call, answers) = line.rsplit_once(": ").expect("a call and its answer");
            format!("{call}: {}", which(answers.split_once(" | ").unwrap_or((answers, answers))))
        })
        .collect();
    let said: Vec<&str> = said.lines().collect();
    let differ = (0..expected.len().max(said.len()))
        .find(|&at| said.get(at).copied() != expected.get(at).map(String::as_str));
    assert_eq!(
        differ.map(|at| (
            at + 1,
            said.get(at).copied().unwrap_or(""),
            expected.get(at).map_or("", String::as_str)
        )),
        None,
        "line, what it says, what it said"
    );
}

/// Where cargo has put the library.
pub fn library() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        // A shared object that nothing links is not built for tests: it is built here, beside their directory.
        let own = std::env::current_exe().expect("a path");
        let target = own.parent().and_then(Path::parent).expect("target/debug").to_owned();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--package", "tresse-preload", "--lib"])
            // In the profile of the tests: the library of another one stands elsewhere.
            .args((!cfg!(debug_assertions)).then_some("--release"))
            .env("CARGO_TARGET_DIR", target.parent().expect("target"))
            .status();
        assert!(built.expect("cargo").success(), "the library builds");
        let library = target.join("libtresse_preload.so");
        assert!(library.exists(), "{}", library.display());
        library
    })
}

/// A line that is seen although the test passes.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Whether this machine has these programs; says which it has not.
pub fn has(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |program: &str| std::env::split_paths(&path).any(|directory| directory.join(program).exists());
    let missing: Vec<_> = programs.iter().filter(|program| !is_there(program)).collect();
    if !missing.is_empty() {
        say(&format!("SKIPPED: {missing:?} are not installed (.ci/run installs them)"));
    }
    missing.is_empty()
}

/// A Python with `pysctp`, which is built from its source the first time; an error says why there is none.
pub fn python_with_pysctp() -> Result<PathBuf, String> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pysctp");
    let python = place.join("bin/python");
    let imports = || {
        Command::new(&python).args(["-c", "import sctp"]).output().is_ok_and(|tried| tried.status.success())
    };
    if imports() {
        return Ok(python);
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&place).output();
    made.map_err(|error| error.to_string())?;
    let installed = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "pysctp==0.7.3"])
        .output()
        .map_err(|error| error.to_string())?;
    if imports() { Ok(python) } else { Err(String::from_utf8_lossy(&installed.stderr).into_owned()) }
}

/// Port numbers that no other test has at the same time: one for UDP, one for SCTP and TCP.
pub fn ports() -> (u16, u16) {
    (ports::reserved(), ports::reserved())
}

/// A program over tresse, reached by UDP port `udp`.
pub fn program(name: impl AsRef<std::ffi::OsStr>, udp: u16) -> Command {
    // Whatever happens, it ends.
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "100"]).arg(name.as_ref());
    command.env("LD_PRELOAD", library()).env("TRESSE_UDP_PORT", udp.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whether somebody has this UDP port on the loopback address.
pub fn is_bound(udp: u16) -> bool {
    std::fs::read_to_string("/proc/net/udp").expect("Linux").contains(&format!("0100007F:{udp:04X} "))
}

/// A process that ends with its test.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Running::of(command.spawn().expect("it starts"))
    }

    pub fn of(child: Child) -> Self {
        Running(Some(child))
    }

    /// Starts a server, and waits until it has its UDP port: a client that came first would have that, and nobody found the
    /// server then.
    pub fn serve(command: Command, udp: u16) -> Self {
        let server = Running::start(command);
        let started = Instant::now();
        while !is_bound(udp) {
            assert!(started.elapsed() < Duration::from_secs(60), "it does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Waits for its end: what it said, if it was content.
    #[track_caller]
    pub fn finish(self) -> String {
        said(&self.output())
    }

    /// Waits for its end.
    pub fn output(mut self) -> Output {
        let child = self.0.take().expect("it runs");
        child.wait_with_output().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
            let _ = child.wait();
        }
    }
}

/// `timeout` hands the signal on to its program.
fn end(child: &mut Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
}

/// What a program said, if it was content.
#[track_caller]
pub fn said(output: &Output) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{text}", output.status);
    text
}

/// Runs a client until it is content: its server may not listen yet.
#[track_caller]
pub fn until_served(mut client: impl FnMut() -> Command) -> String {
    let started = Instant::now();
    loop {
        let output = client().output().expect("it runs");
        if output.status.success() || started.elapsed() > Duration::from_secs(60) {
            return said(&output);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
