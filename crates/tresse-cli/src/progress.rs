//! Progress display of a transfer: its fraction done, and the rate of each path.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tresse::{Association, PathState, PathStats};

use crate::report::words::rate;

/// Returns the display of progress lines: standard error, or nothing if that is no terminal or with `quiet`.
pub(crate) fn display(quiet: bool) -> MultiProgress {
    // indicatif itself draws nothing when standard error is no terminal.
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    MultiProgress::with_draw_target(target)
}

/// The progress line of one transfer.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Time at which the rates were last computed, and the bytes of each path at that time.
    last: Option<(Instant, Vec<u64>)>,
    rates: Vec<f64>,
}

impl Progress {
    /// Creates the line of a transfer of `total` bytes, if that is known.
    pub(crate) fn new(display: &MultiProgress, name: &str, total: Option<u64>) -> Self {
        let bar = display.add(total.map_or_else(ProgressBar::no_length, ProgressBar::new));
        let template = match total {
            Some(_) => {
                "{prefix} {percent:>3} % [{bar:20}] {decimal_bytes} of {decimal_total_bytes}{msg}, {eta} left"
            }
            None => "{prefix} {decimal_bytes}{msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.to_owned());
        Progress { bar, last: None, rates: Vec::new() }
    }

    /// Updates the line: `done` bytes are transferred, and `carried` returns the bytes that a path has carried so far.
    fn update(&mut self, done: u64, paths: &[PathStats], carried: fn(&PathStats) -> u64) {
        let bytes: Vec<u64> = paths.iter().map(carried).collect();
        let now = Instant::now();
        self.rates.resize(paths.len(), 0.0);
        if let Some((then, before)) = &self.last {
            let elapsed = now.duration_since(*then).as_secs_f64().max(1e-9);
            for ((rate, now), before) in self.rates.iter_mut().zip(&bytes).zip(before) {
                let current = now.saturating_sub(*before) as f64 * 8.0 / elapsed;
                *rate += SMOOTHING * (current - *rate);
            }
        }
        self.last = Some((now, bytes));
        let each = paths.iter().zip(&self.rates).map(|(path, speed)| match path.state {
            PathState::Active => rate(*speed),
            state => state.name().to_owned(),
        });
        let each = each.collect::<Vec<_>>().join(" + ");
        self.bar.set_message(format!(", {} ({each})", rate(self.rates.iter().sum())));
        self.bar.set_position(done);
    }

    /// Redraws the line until the future is dropped.
    pub(crate) async fn watch(
        mut self,
        association: &Association,
        view: impl Fn(&[PathStats]) -> u64,
        carried: fn(&PathStats) -> u64,
    ) -> Infallible {
        loop {
            let paths = association.path_stats();
            self.update(view(&paths), &paths, carried);
            tokio::time::sleep(TICK).await;
        }
    }
}

impl Drop for Progress {
    /// Removes the line.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Interval at which the line is redrawn.
const TICK: Duration = Duration::from_millis(250);
/// Weight of the newest rate in the moving average.
const SMOOTHING: f64 = 0.4;
