"""Figure 6: unordered transfers with pooled resources (CMT/RP), and the claims G10 and G11."""

from functools import partial

from tresse.claims import Claim, Judgement, Measure
from tresse.evidence import Runs, at_points, gain, higher
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, equal, paths, plots
from tresse.figures.globecom2010.mechanisms import UNORDERED, Variant
from tresse.figures.globecom2010.mixes import Mix, runs
from tresse.figures.globecom2010.paths import ERRORS, RATE
from tresse.metrics import mean
from tresse.tables import Tables

MIX = Mix(
    ordered=False,
    controller="cmt_rp_v1",
    variants=UNORDERED,
    least_runs={ERRORS: paths.RUNS_OF_DIFFERENCES},
)


def _judge_g11(tables: Tables) -> Judgement:
    gains, measures = {}, []
    for error_rate in ERRORS.values:
        split, other = (_best(tables, error_rate, is_split) for is_split in (True, False))
        gains[error_rate] = gain(split[1], other[1])
        measures += [
            Measure(f"{error_rate:g}: {variant.name}", mean(found), "Mbit/s", 1) for variant, found in (split, other)
        ]
    finding = "best with splitting over best without: " + ", ".join(
        f"{100 * share.value:+.1f} ± {100 * share.half_width:.1f} % at {error_rate:g}"
        for error_rate, share in gains.items()
    )
    return Judgement(at_points(higher(share) for share in gains.values()), finding, tuple(measures))


def _best(tables: Tables, error_rate: float, is_split: bool) -> tuple[Variant, Runs]:
    """Return the curve with the highest mean of those with splitting, or of those without, and its runs."""
    found = {
        variant: runs(tables, ERRORS, error_rate, variant)
        for variant in MIX.variants[ERRORS]
        if (variant.overrides["transport.buffer_split"] != "none") == is_split
    }
    return max(found.items(), key=lambda item: float(item[1].mean()))


FIGURE = Figure(
    name="globecom2010-6",
    title="Figure 6: unordered CMT/RP over unlike paths",
    source=paths.SOURCE,
    sweep=MIX.sweep(),
    drawings=plots.drawings(MIX, {RATE: ((100, equal.WITHOUT_MBPS), (100, equal.WITH_MBPS))}),
    listings=default.listings(MIX),
    claims=(
        equal.OF_CMT_RP,
        Claim(
            "G11",
            "At every bit error rate, the highest throughput is only reached with splitting.",
            "highest with splitting",
            "at every error rate the best curve with splitting is above the best without, by the paired difference",
            _judge_g11,
        ),
    ),
    standings=partial(default.against_best, mix=MIX),
)
