//! `tresse doctor`: checks of this host, and of the paths to a peer, for problems with several paths.
//!
//! Each finding has the subject of the check, the result and, if there is one, a command that solves the problem. If a check has no
//! result, it is reported as unknown, never as well.

mod host;
mod nat;
mod options;
mod peer;
mod prober;

pub(crate) use options::DoctorArgs;

use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Result of one check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Finding {
    /// Subject of the check.
    check: &'static str,
    state: State,
    says: String,
    /// The command that solves the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// No action is needed.
    Well,
    /// An improvement is possible.
    Poor,
    /// The problem must be solved.
    Bad,
    /// The check has no result here.
    Unknown,
}

impl Finding {
    fn new(check: &'static str, state: State, says: impl Into<String>) -> Self {
        Finding { check, state, says: says.into(), mend: None }
    }

    fn mended_by(self, command: impl Into<String>) -> Self {
        Finding { mend: Some(command.into()), ..self }
    }

    fn lines(&self) -> Vec<String> {
        let state = match self.state {
            State::Well => "well   ",
            State::Poor => "poor   ",
            State::Bad => "BAD    ",
            State::Unknown => "unknown",
        };
        let mut lines = vec![format!("{state}  {}: {}", self.check, self.says)];
        lines.extend(self.mend.as_ref().map(|command| format!("         mend it with: {command}")));
        lines
    }
}

/// All findings; docs/schemas/doctor.schema.json has the keys.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    must_be_mended: usize,
    findings: &'a [Finding],
}

pub(crate) async fn run(mut args: DoctorArgs) -> Result<(), Failure> {
    args.resolve().await?;
    let mut findings = host::look(&args.local()?);
    if !args.to.is_empty() {
        findings.extend(peer::look(&args).await?);
    }
    let bad = findings.iter().filter(|finding| finding.state == State::Bad).count();
    if args.json {
        let document = Document { schema: SCHEMA, must_be_mended: bad, findings: &findings };
        output::print(&(serde_json::to_string(&document).map_err(Failure::running)? + "\n"))?;
    } else {
        let lines: Vec<_> = findings.iter().flat_map(Finding::lines).collect();
        output::print(&(lines.join("\n") + "\n"))?;
    }
    match bad {
        0 => Ok(()),
        1 => Err(Failure::missed("one finding must be mended")),
        more => Err(Failure::missed(format!("{more} findings must be mended"))),
    }
}

/// The version of the document.
const SCHEMA: u32 = 1;
