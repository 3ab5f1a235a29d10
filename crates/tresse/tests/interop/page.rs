//! docs/interop.md: what came of each case with each stack, on which day and against which version.
//!
//! A run need not have all stacks: a column that was not run keeps what it says of an earlier day, with that day, and
//! one that was skipped for want of something says so in every cell.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cases::CASES;
use crate::matrix::{Matrix, Outcome};
use crate::peer::Stack;

/// The page, as far as runs decide what it says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Page {
    columns: BTreeMap<Stack, Column>,
}

/// What is known of one stack.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Column {
    /// The last run that had it.
    ran: Option<Ran>,
    /// The day of a later run that had not.
    skipped: Option<String>,
    /// What the last run found, by case.
    cells: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Ran {
    day: String,
    version: String,
}

impl Page {
    /// The page as it is written.
    fn read(text: &str) -> Self {
        let row = |first: &str| text.lines().map(cells).find(|row| row.first() == Some(&first));
        let mut page = Page::default();
        for (position, stack) in Stack::ALL.into_iter().enumerate() {
            let cell = |first| row(first).and_then(|row| row.get(position + 1).copied()).unwrap_or_default();
            let (day, skipped) = match cell(LAST_RUN).split_once(THEN_SKIPPED) {
                Some((day, skipped)) => (day, Some(skipped.to_owned())),
                None => (cell(LAST_RUN), None),
            };
            let ran = (!day.is_empty() && day != NEVER)
                .then(|| Ran { day: day.to_owned(), version: cell(AGAINST).to_owned() });
            let found = CASES.iter().map(|case| (case.name.to_owned(), bare(cell(case.name), day)));
            let cells = found.filter(|(_, word)| !word.is_empty() && word != UNSUPPORTED).collect();
            page.columns.insert(stack, Column { ran, skipped, cells });
        }
        page
    }

    /// Takes over what a run found on `day`; `version` says what a stack was.
    fn learn(&mut self, matrix: &Matrix, day: &str, version: impl Fn(Stack) -> String) {
        for stack in Stack::ALL {
            let column = self.columns.entry(stack).or_default();
            match matrix.column(stack) {
                Turnout::Skipped => column.skipped = Some(day.to_owned()),
                Turnout::Whole(cells) => {
                    let ran = Ran { day: day.to_owned(), version: version(stack) };
                    *column = Column { ran: Some(ran), skipped: None, cells };
                }
                Turnout::Partial => {}
            }
        }
    }

    /// The columns of a run that do not say what the page says of them.
    fn differences(&self, matrix: &Matrix) -> Vec<&'static str> {
        let differs = |stack: &Stack| match matrix.column(*stack) {
            Turnout::Whole(cells) => self.columns.get(stack).is_none_or(|column| column.cells != cells),
            Turnout::Skipped | Turnout::Partial => false,
        };
        Stack::ALL.into_iter().filter(differs).map(Stack::name).collect()
    }

    fn text(&self) -> String {
        let mut text = String::from(INTRODUCTION);
        for stack in Stack::ALL {
            let _ = writeln!(text, "- **{}**: {}.", stack.name(), stack.about());
        }
        text.push('\n');
        row(&mut text, "case", Stack::name);
        row(&mut text, "---", |_| "---");
        row(&mut text, LAST_RUN, |stack| self.last_run(stack));
        row(&mut text, AGAINST, |stack| self.ran(stack).map_or("", |ran| &ran.version));
        for case in CASES {
            row(&mut text, case.name, |stack| match case.needs.iter().find_map(|&need| stack.lacks(need)) {
                Some(_) => UNSUPPORTED.to_owned(),
                None => self.word(stack, case.name),
            });
        }
        let _ = write!(text, "\n## What the peers do not have\n\n{}", reasons());
        text
    }

    fn ran(&self, stack: Stack) -> Option<&Ran> {
        self.columns.get(&stack)?.ran.as_ref()
    }

    fn last_run(&self, stack: Stack) -> String {
        let day = self.ran(stack).map_or(NEVER, |ran| &ran.day);
        match self.columns.get(&stack).and_then(|column| column.skipped.as_ref()) {
            Some(skipped) => format!("{day}{THEN_SKIPPED}{skipped}"),
            None => day.to_owned(),
        }
    }

    /// What a cell says: of a column that was skipped since, never that it passed alone.
    fn word(&self, stack: Stack, case: &str) -> String {
        let Some(column) = self.columns.get(&stack) else { return NOT_RUN.to_owned() };
        let found = column.cells.get(case).map_or(NOT_RUN, String::as_str);
        match (&column.skipped, &column.ran) {
            (Some(_), Some(ran)) if found != NOT_RUN => format!("skipped ({found} on {})", ran.day),
            (Some(_), _) => SKIPPED.to_owned(),
            (None, Some(_)) => found.to_owned(),
            (None, None) => NOT_RUN.to_owned(),
        }
    }
}

/// How much of a stack a run had.
enum Turnout {
    /// Every case that it has what it takes for, with what came of it.
    Whole(BTreeMap<String, String>),
    /// None, for want of something on this machine.
    Skipped,
    /// Only what was asked for.
    Partial,
}

impl Matrix {
    fn column(&self, stack: Stack) -> Turnout {
        let mut found = BTreeMap::new();
        for case in CASES {
            match self.outcome(case.name, stack) {
                None => return Turnout::Partial,
                Some(Outcome::Skipped(_)) => return Turnout::Skipped,
                Some(Outcome::Unsupported(_)) => {}
                Some(outcome) => {
                    found.insert(case.name.to_owned(), outcome.word().to_owned());
                }
            }
        }
        Turnout::Whole(found)
    }

    /// Compares with docs/interop.md the columns that this run had, or writes them there when `UPDATE_DOCS` is set.
    pub(crate) fn check_page(&self) {
        let path = page_path();
        let written = fs::read_to_string(&path).expect("docs/interop.md is there");
        let mut page = Page::read(&written);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            page.learn(self, &today(), Stack::version);
            fs::write(&path, page.text()).expect("docs/interop.md can be written");
        } else {
            let stale = page.differences(self);
            assert!(stale.is_empty(), "docs/interop.md is stale ({}): run `make interop`", stale.join(", "));
            assert!(page.text() == written, "docs/interop.md has another form: run `make interop`");
        }
    }
}

/// Why stacks do not have what cases ask for, each reason once.
fn reasons() -> String {
    let mut reasons: BTreeMap<(Stack, &'static str), Vec<&'static str>> = BTreeMap::new();
    for case in CASES {
        for stack in Stack::ALL {
            if let Some(reason) = case.needs.iter().find_map(|&need| stack.lacks(need)) {
                reasons.entry((stack, reason)).or_default().push(case.name);
            }
        }
    }
    let mut text = String::new();
    for ((stack, reason), cases) in reasons {
        let _ = writeln!(text, "- {}: {reason} ({}).", stack.name(), cases.join("; "));
    }
    text
}

fn row<T: AsRef<str>>(text: &mut String, first: &str, cell: impl Fn(Stack) -> T) {
    let _ = write!(text, "| {first} |");
    for stack in Stack::ALL {
        let _ = write!(text, " {} |", cell(stack).as_ref());
    }
    text.push('\n');
}

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<&str> {
    let inside = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
    inside.map_or_else(Vec::new, |inside| inside.split(" | ").map(str::trim).collect())
}

/// What a run on `day` found, without what was added since.
fn bare(cell: &str, day: &str) -> String {
    let kept = cell.strip_prefix("skipped (").and_then(|cell| cell.strip_suffix(&format!(" on {day})")));
    match kept.unwrap_or(cell) {
        SKIPPED | NOT_RUN => String::new(),
        word => word.to_owned(),
    }
}

/// The day, as the system's clock has it in UTC.
fn today() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().expect("a system with `date`");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interop.md")
}

const LAST_RUN: &str = "*last run on*";
const AGAINST: &str = "*against*";
const NEVER: &str = "never";
const THEN_SKIPPED: &str = ", skipped on ";
const SKIPPED: &str = "skipped";
const NOT_RUN: &str = "not run";
const UNSUPPORTED: &str = "unsupported by the peer";

const INTRODUCTION: &str = "\
# Interoperability

Test results of tresse with other SCTP stacks. Every cell is a test over loopback sockets that checks the contents,
the order and the number of messages on both sides. In the last rows tresse's end is a C program for the kernel's SCTP,
over tresse's sockets by `LD_PRELOAD` ([preload.md](preload.md)). `make test` runs all cells (`crates/tresse/tests/interop`) with the
stacks that are installed. The kernel needs QEMU, busybox and the files of `tools/fetch_kernel.sh`; it boots once for all
its cells.

<!-- Written by `make interop` from what the test found; edit the cases there. -->

The first two rows have the day and the version for which a column holds. If a stack is not installed, a run marks its cells as
skipped, with the day on which they passed last.

The peers, all with SCTP in UDP:

";

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which every case passed with the stacks of `there`, and the others were skipped.
    fn run(there: &[Stack]) -> Matrix {
        let mut matrix = Matrix::default();
        for case in CASES {
            for stack in Stack::ALL {
                let lacking = case.needs.iter().find_map(|&need| stack.lacks(need));
                let outcome = match lacking {
                    Some(reason) => Outcome::Unsupported(reason),
                    None if there.contains(&stack) => Outcome::Passed,
                    None => Outcome::Skipped("it is not here".to_owned()),
                };
                matrix.add(case.name, stack, outcome);
            }
        }
        matrix
    }

    fn learned(page: &Page, there: &[Stack], day: &str) -> Page {
        let mut page = page.clone();
        page.learn(&run(there), day, |stack| format!("{} 7", stack.name()));
        page
    }

    fn cell(text: &str, first: &str, stack: Stack) -> String {
        let position = Stack::ALL.iter().position(|&other| other == stack).expect("one of them");
        let row = text.lines().map(cells).find(|row| row.first() == Some(&first)).expect("a row");
        row[position + 1].to_owned()
    }

    #[test]
    fn each_column_says_when_it_was_run_and_against_what() {
        let page = learned(&Page::default(), &Stack::ALL, "2026-01-02").text();
        for stack in Stack::ALL {
            assert_eq!(cell(&page, LAST_RUN, stack), "2026-01-02");
            assert_eq!(cell(&page, AGAINST, stack), format!("{} 7", stack.name()));
            assert_eq!(cell(&page, CASES[0].name, stack), "passed");
        }
    }

    #[test]
    fn a_skip_leaves_no_cell_that_says_passed_alone() {
        let before = learned(&Page::default(), &Stack::ALL, "2026-01-02");
        let others = [Stack::Usrsctp, Stack::Pion, Stack::Dcsctp];
        let first = learned(&before, &others, "2026-03-04");
        // Once more, by way of the page: the day of the last run stays.
        let page = learned(&Page::read(&first.text()), &others, "2026-05-06").text();
        assert_eq!(cell(&page, LAST_RUN, Stack::Linux), "2026-01-02, skipped on 2026-05-06");
        assert_eq!(cell(&page, AGAINST, Stack::Linux), "Linux 7");
        assert_eq!(cell(&page, CASES[0].name, Stack::Linux), "skipped (passed on 2026-01-02)");
        for case in CASES {
            assert_ne!(cell(&page, case.name, Stack::Linux), "passed");
        }
        assert_eq!(cell(&page, LAST_RUN, Stack::Pion), "2026-05-06");
        assert_eq!(cell(&page, CASES[0].name, Stack::Pion), "passed");
        let again = learned(&Page::read(&page), &Stack::ALL, "2026-07-08").text();
        assert_eq!(cell(&again, LAST_RUN, Stack::Linux), "2026-07-08");
        assert_eq!(cell(&again, CASES[0].name, Stack::Linux), "passed");
    }

    #[test]
    fn what_was_never_run_says_so() {
        let page = learned(&Page::default(), &[Stack::Dcsctp], "2026-01-02").text();
        assert_eq!(cell(&page, LAST_RUN, Stack::Linux), "never, skipped on 2026-01-02");
        assert_eq!(cell(&page, CASES[0].name, Stack::Linux), "skipped");
        assert_eq!(Page::read(&page).text(), page);
    }

    #[test]
    fn a_part_of_a_column_is_no_news_of_it() {
        let before = learned(&Page::default(), &Stack::ALL, "2026-01-02");
        let mut part = Matrix::default();
        part.add(CASES[0].name, Stack::Linux, Outcome::Passed);
        let mut after = before.clone();
        after.learn(&part, "2026-03-04", |_| String::new());
        assert_eq!(after, before);
    }

    #[test]
    fn a_page_that_says_something_else_of_what_was_run_is_stale() {
        let page = learned(&Page::default(), &Stack::ALL, "2026-01-02");
        assert_eq!(page.differences(&run(&[Stack::Usrsctp])), Vec::<&str>::new());
        let mut other = run(&Stack::ALL);
        other.add(CASES[0].name, Stack::Pion, Outcome::Failed("it broke down".to_owned()));
        assert_eq!(page.differences(&other), ["pion/sctp"]);
        // A case that is new: the page knows nothing of it.
        let text = page.text().replace(CASES[0].name, "a case of old");
        assert_eq!(Page::read(&text).differences(&run(&[Stack::Linux])), ["Linux"]);
    }
}
