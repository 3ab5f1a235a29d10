//! Children as their parent sees them: a line in, a line of numbers out.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A running child; it ends when this is dropped.
pub(crate) struct Side {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What it said when it was ready.
    pub(crate) address: String,
}

/// What a child has done so far.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    /// When it was asked.
    pub(crate) at: Instant,
    /// Bytes of user data received.
    pub(crate) bytes: u64,
    /// CPU time of the process.
    pub(crate) cpu: Duration,
    /// Resident bytes.
    pub(crate) resident: u64,
    /// Jain's index of what its associations received since the mark before.
    pub(crate) jain: f64,
}

impl Side {
    /// The side that receives.
    pub(crate) fn serve(stack: &str, workers: usize) -> Result<Side, Box<dyn Error>> {
        Side::start(&["serve", stack, &workers.to_string()], stack)
    }

    /// The side that opens `count` associations to `server` and sends `messages` of `message` bytes on each.
    pub(crate) fn send(
        stack: &str,
        workers: usize,
        server: &Side,
        (message, messages): (usize, u64),
        count: usize,
    ) -> Result<Side, Box<dyn Error>> {
        let [workers, message, count] = [workers, message, count].map(|number| number.to_string());
        Side::start(
            &["send", stack, &workers, &server.address, &message, &count, &messages.to_string()],
            stack,
        )
    }

    fn start(arguments: &[&str], stack: &str) -> Result<Side, Box<dyn Error>> {
        let mut command = if stack == "usrsctp" {
            let mut command = Command::new(usrsctp()?);
            command.args(arguments);
            command
        } else {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("child").args(arguments);
            command
        };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut side = Side { child, input, output, address: String::new() };
        let line = side.line()?;
        let address = line.strip_prefix("ready").ok_or_else(|| format!("{arguments:?} said {line:?}"))?;
        side.address = address.trim().to_owned();
        Ok(side)
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() { Err("a child ended early".into()) } else { Ok(line.trim().to_owned()) }
    }

    /// Asks what it has done.
    pub(crate) fn mark(&mut self) -> Result<Mark, Box<dyn Error>> {
        let at = Instant::now();
        self.input.as_mut().ok_or("ended")?.write_all(b"\n")?;
        let line = self.line()?;
        match line.split(' ').collect::<Vec<_>>()[..] {
            [bytes, cpu, resident, jain] => Ok(Mark {
                at,
                bytes: bytes.parse()?,
                cpu: Duration::from_nanos(cpu.parse()?),
                resident: resident.parse()?,
                jain: jain.parse()?,
            }),
            _ => Err(format!("a child answered {line:?}").into()),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program on usrsctp; an error says what is missing.
pub(crate) fn usrsctp() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = own.with_file_name("bench-usrsctp");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/stacks/usrsctp.c");
        let compiled = Command::new("cc")
            .args(["-O3", "-o"])
            .args([&program, &source])
            .args(["-lusrsctp", "-lpthread"])
            .output()
            .map_err(|error| format!("cc: {error}"))?;
        match compiled.status.success() {
            true => Ok(program),
            false => Err("it does not compile (libusrsctp-dev, a C compiler)".to_owned()),
        }
    };
    BUILT.get_or_init(build).as_deref().map_err(Clone::clone)
}
