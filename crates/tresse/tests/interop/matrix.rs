//! Results of each case with each stack, as a table for people; `page` keeps it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::peer::Stack;

/// What came of one case with one stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Passed,
    /// The stack does not have what the case is about, for this reason.
    Unsupported(&'static str),
    /// Something is missing on this machine.
    Skipped(String),
    Failed(String),
}

impl Outcome {
    /// For a cell.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Unsupported(_) => "unsupported by the peer",
            Outcome::Skipped(_) => "skipped",
            Outcome::Failed(_) => "failed",
        }
    }
}

/// Rows are cases, in their order; columns are stacks.
#[derive(Default)]
pub(crate) struct Matrix {
    cases: Vec<&'static str>,
    cells: BTreeMap<(&'static str, Stack), Outcome>,
}

impl Matrix {
    pub(crate) fn add(&mut self, case: &'static str, stack: Stack, outcome: Outcome) {
        if !self.cases.contains(&case) {
            self.cases.push(case);
        }
        self.cells.insert((case, stack), outcome);
    }

    /// The cells that failed, with the reason.
    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = |(&(case, stack), outcome): (&(&'static str, Stack), &Outcome)| match outcome {
            Outcome::Failed(reason) => Some(format!("{} with {}: {reason}", case, stack.name())),
            _ => None,
        };
        self.cells.iter().filter_map(failed).collect()
    }

    /// What is missing on this machine, with the stacks that cannot take part for want of it.
    pub(crate) fn missing(&self) -> BTreeMap<Stack, &str> {
        let cells = self.cells.iter().filter_map(|(&(_, stack), outcome)| match outcome {
            Outcome::Skipped(missing) => Some((stack, missing.as_str())),
            _ => None,
        });
        cells.collect()
    }

    /// The table of this run.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from("| case |");
        Stack::ALL.iter().for_each(|stack| text.push_str(&format!(" {} |", stack.name())));
        text.push_str("\n| --- |");
        Stack::ALL.iter().for_each(|_| text.push_str(" --- |"));
        text.push('\n');
        for &case in &self.cases {
            let _ = write!(text, "| {case} |");
            for &stack in &Stack::ALL {
                let _ = write!(text, " {} |", self.cells.get(&(case, stack)).map_or("", Outcome::word));
            }
            text.push('\n');
        }
        text
    }

    /// What came of a case, if it was asked for.
    pub(crate) fn outcome(&self, case: &'static str, stack: Stack) -> Option<&Outcome> {
        self.cells.get(&(case, stack))
    }
}
