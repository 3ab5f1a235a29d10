//! Comparison of each path alone with all of them together.

use serde::Serialize;

use crate::report::words::rate;

/// Rates of the paths: each alone, and all together.
#[derive(Serialize)]
pub(super) struct Compared {
    single_mbps: Vec<f64>,
    best_mbps: f64,
    sum_mbps: f64,
    together_mbps: f64,
    /// Rate of all together, as a share of the sum.
    share: f64,
}

impl Compared {
    pub(super) fn new(single_mbps: Vec<f64>, together_mbps: f64) -> Self {
        let sum_mbps: f64 = single_mbps.iter().sum();
        let best_mbps = single_mbps.iter().copied().fold(0.0, f64::max);
        let share = if sum_mbps > 0.0 { together_mbps / sum_mbps } else { 0.0 };
        Compared { single_mbps, best_mbps, sum_mbps, together_mbps, share }
    }

    /// Returns the lines of the comparison; `verdict` is the limit of all paths together.
    pub(super) fn lines(&self, verdict: Option<&str>) -> Vec<String> {
        let mbps = |mbps: &f64| rate(mbps * 1e6);
        let alone = self.single_mbps.iter().map(mbps).collect::<Vec<_>>().join(", ");
        let verdict = verdict.map(|name| format!(", limited by {}", name.replace('_', " ")));
        vec![
            format!(
                "each path alone: {alone}; the best {}, the sum {}",
                mbps(&self.best_mbps),
                mbps(&self.sum_mbps)
            ),
            format!(
                "together: {}, {:.0} % of the sum{}",
                mbps(&self.together_mbps),
                self.share * 100.0,
                verdict.unwrap_or_default()
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_and_the_sum_are_said() {
        let lines = Compared::new(vec![29.0, 19.0], 45.6).lines(Some("receive_buffer"));
        assert_eq!(
            lines[0],
            "each path alone: 29.0 Mbit/s, 19.0 Mbit/s; the best 29.0 Mbit/s, the sum 48.0 Mbit/s"
        );
        assert_eq!(lines[1], "together: 45.6 Mbit/s, 95 % of the sum, limited by receive buffer");
        assert_eq!(Compared::new(vec![], 1.0).share, 0.0);
    }
}
