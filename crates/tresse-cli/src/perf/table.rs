//! A table of the paths below the intervals, drawn anew with each of them where a terminal looks on.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::progress;

/// The table, gone when it is dropped.
pub(super) struct Table {
    display: MultiProgress,
    bar: ProgressBar,
}

impl Table {
    /// Drawn on standard error; with `quiet`, or where that is no terminal, nowhere.
    pub(super) fn new(quiet: bool) -> Self {
        let display = progress::display(quiet);
        let bar = display.add(ProgressBar::no_length());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Table { display, bar }
    }

    /// Does something that writes to the terminal, and draws the table below what that wrote.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.display.suspend(write)
    }

    /// Draws these lines.
    pub(super) fn show(&self, lines: &[String]) {
        self.bar.set_message(lines.join("\n"));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
