//! Running the command and waiting for it, with a bound on everything.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for any machine: it only ends tests that hang.
pub(crate) const FOREVER: Duration = Duration::from_secs(300);

/// A directory of its own for each test, gone afterwards.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tresse-cli-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("out")).expect("a writable temporary directory");
        Dir(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    /// A file of `len` bytes that repeat only after 1 MiB and a bit.
    pub(crate) fn file(&self, name: &str, len: usize) -> PathBuf {
        let path = self.path(name);
        let mut file = BufWriter::new(fs::File::create(&path).expect("writable"));
        let (period, mut rest) = (noise(1_048_583), len);
        while rest > 0 {
            let part = &period[..period.len().min(rest)];
            file.write_all(part).expect("room in the temporary directory");
            rest -= part.len();
        }
        file.flush().expect("room in the temporary directory");
        path
    }

    /// A shared object with a stream scheduler, from a C source of the repository.
    pub(crate) fn plugin(&self, source: &str, flags: &[&str]) -> String {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let object = text(&self.path("plugin.so"));
        let (include, source) = (format!("{root}/include"), format!("{root}/{source}"));
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let done = Command::new(compiler)
            .args(["-shared", "-fPIC", "-I", &include, "-o", &object, &source])
            .args(flags)
            .status();
        assert!(done.expect("a C compiler").success());
        object
    }

    /// What lies in the output directory.
    pub(crate) fn received(&self) -> Vec<String> {
        let entries = fs::read_dir(self.out()).expect("it exists");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes without a pattern that a mistake could keep.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// A command that ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that runs, with its output being read.
pub(crate) struct Running {
    child: Child,
    stdout: Option<thread::JoinHandle<String>>,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Running::fed(args, Vec::new())
    }

    /// With `input` as standard input.
    pub(crate) fn fed(args: &[&str], input: Vec<u8>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tresse"));
        command.args(args);
        Running::of(command, input)
    }

    /// Any command that starts it.
    pub(crate) fn of(mut command: Command, input: Vec<u8>) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let mut stdin = child.stdin.take().expect("piped");
        // A command that takes no input closes its end, which is no error here.
        thread::spawn(move || stdin.write_all(&input));
        let mut stdout = child.stdout.take().expect("piped");
        let stdout = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text).unwrap_or_default()
        });
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        Running { child, stdout: Some(stdout), stderr, said: String::new() }
    }

    /// The port in its next line, of a server that says where it listens.
    pub(crate) fn udp_port(&mut self) -> String {
        let line = self.line();
        let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next());
        port.unwrap_or_else(|| panic!("no port in {line:?}")).to_owned()
    }

    /// The next line on standard error.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("UTF-8");
        self.said.push_str(&line);
        line
    }

    /// Throws away what it still says, so that it never waits for a reader.
    #[cfg(unix)]
    pub(crate) fn drain(&self) {
        use std::os::fd::AsFd;
        let said = self.stderr.get_ref().as_fd().try_clone_to_owned().expect("a handle");
        thread::spawn(move || std::io::copy(&mut fs::File::from(said), &mut std::io::sink()));
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("-INT");
    }

    /// Sends it a signal by its name for kill(1).
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "it still runs");
    }

    /// Reads lines on standard error until one has this in it, and answers it.
    pub(crate) fn line_with(&mut self, what: &str) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "it ended without a line with {what:?}: {}", self.said);
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Waits for the end.
    pub(crate) fn finish(mut self) -> Done {
        let status = self.wait();
        let mut stderr = std::mem::take(&mut self.said);
        self.stderr.read_to_string(&mut stderr).expect("UTF-8");
        let stdout = self.stdout.take().map(|reader| reader.join().expect("read")).unwrap_or_default();
        Done { code: status.code(), stdout, stderr }
    }

    fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(start.elapsed() < FOREVER, "the command hangs");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command to its end.
pub(crate) fn tresse(args: &[&str]) -> Done {
    Running::start(args).finish()
}

/// Starts a receiver on a free port; answers it with its port.
pub(crate) fn receiver(out: &Path, more: &[&str]) -> (Running, String) {
    let out = text(out);
    let mut running = Running::start(&[&["recv", "--port", "0", "--out", &out], more].concat());
    let port = running.udp_port();
    (running, port)
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Whether two files have the same content.
pub(crate) fn same(a: &Path, b: &Path) -> bool {
    let (a, b) = (fs::File::open(a), fs::File::open(b));
    let (Ok(mut a), Ok(mut b)) = (a, b) else { return false };
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let read = a.read(&mut left).expect("readable");
        if b.read_exact(&mut right[..read]).is_err() || left[..read] != right[..read] {
            return false;
        }
        if read == 0 {
            return b.read(&mut right).expect("readable") == 0;
        }
    }
}
