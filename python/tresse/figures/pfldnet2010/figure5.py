"""Figure 5: mean message delay of each stream over buffer size, and the claims P5 to P7."""

from collections.abc import Iterator
from dataclasses import dataclass

import matplotlib.figure
import numpy as np
import pandas as pd

from tresse.claims import TOLERANCE, Claim, Judgement, Measure, NotMeasured, Verdict, worst
from tresse.evidence import Evidence, alike, at_points, by_seed, everywhere, gain, higher
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010 import delays
from tresse.figures.pfldnet2010.delays import CURVES, DELAYS_B_MS, FIXED, ROUND_ROBIN, SIGMAS_KIB, Curve
from tresse.metrics import Mean, mean, summarise
from tresse.plots.theme import PAPER, new_figure, style
from tresse.tables import Tables

_TOLERANCE_TEXT = f"{100 * TOLERANCE:.0f} %"


@dataclass(frozen=True)
class _Pair:
    """The delays and throughputs of both streams at one point."""

    curve: Curve
    sigma_kib: int
    delay_ms: tuple[Mean, Mean]
    delay_difference_ms: Mean
    """Stream 1 minus stream 0, paired by seed: both streams of a run share its randomness."""
    gaps_of_runs: tuple[float, ...]
    """`delay_gap` of each run separately, as an absolute value."""
    throughput_mbps: tuple[Mean, Mean]
    rate_difference: Mean
    """Throughput of stream 1 minus that of stream 0, paired by seed, as a share of the latter's mean."""

    @property
    def text(self) -> str:
        return f"{self.curve.text}, {self.sigma_kib} KiB"

    @property
    def delay_gap(self) -> float:
        """Difference of the mean delays as a share of their mean; positive if that of stream 1 is longer."""
        first, second = (delay.value for delay in self.delay_ms)
        return _gap(first, second)

    @property
    def relative_difference(self) -> Mean:
        """The difference of the delays as a share of their mean, with its interval."""
        middle = (self.delay_ms[0].value + self.delay_ms[1].value) / 2
        found = self.delay_difference_ms
        return Mean(found.value / middle, found.half_width / middle, found.n)

    @property
    def median_of_runs(self) -> float:
        """Difference of the streams' delays in the median run, as a share of their mean."""
        return float(np.median(self.gaps_of_runs))

    @property
    def throughput_gap(self) -> float:
        """Difference of the throughputs as a share of their mean."""
        first, second = (throughput.value for throughput in self.throughput_mbps)
        return abs(_gap(first, second))

    def delays(self) -> Iterator[Measure]:
        for stream, value in enumerate(self.delay_ms):
            yield Measure(f"{self.text}, stream {stream} delay", value, "ms", 1)

    def throughputs(self) -> Iterator[Measure]:
        for stream, value in enumerate(self.throughput_mbps):
            yield Measure(f"{self.text}, stream {stream}", value, "Mbit/s")


def _gap(first: float, second: float) -> float:
    return (second - first) / ((first + second) / 2)


def _pair(tables: Tables, curve: Curve, sigma_kib: int) -> _Pair:
    rows = delays.measured(curve.of(tables).where(sigma_kib=sigma_kib).streams, curve, sigma_kib)
    if rows["delay_mean_ms"].isna().any():
        raise NotMeasured(f"a stream got no message at {curve.text}, {sigma_kib} KiB")
    by_stream = [rows[rows["stream"] == stream].sort_values("seed") for stream in (0, 1)]
    first, second = (stream["delay_mean_ms"].to_numpy(dtype=float) for stream in by_stream)
    return _Pair(
        curve,
        sigma_kib,
        (mean(first), mean(second)),
        mean(second - first),
        tuple(map(abs, map(_gap, first, second))),
        (mean(by_stream[0]["throughput_mbps"]), mean(by_stream[1]["throughput_mbps"])),
        gain(*(by_seed(stream, "throughput_mbps", curve.text) for stream in reversed(by_stream))),
    )


def _pairs(tables: Tables, mapping: str, delays_b_ms: tuple[int, ...]) -> list[_Pair]:
    return [_pair(tables, Curve(delay, mapping), sigma) for delay in delays_b_ms for sigma in SIGMAS_KIB]


@dataclass(frozen=True)
class _SingleGaps:
    """Differences of the streams' delays in single runs."""

    runs: int
    apart: int
    median: float
    largest: float


def _single_gaps(pairs: list[_Pair], delay_b_ms: int) -> _SingleGaps:
    gaps = np.array([gap for pair in pairs if pair.curve.delay_b_ms == delay_b_ms for gap in pair.gaps_of_runs])
    return _SingleGaps(gaps.size, int((gaps > TOLERANCE).sum()), float(np.median(gaps)), float(gaps.max()))


def _alike(pair: _Pair) -> Evidence:
    """Judge whether both streams of one point have the same delay, for the mean over runs and for the median run."""
    if pair.median_of_runs > TOLERANCE:
        return Evidence.ABSENT
    return alike(pair.relative_difference)


def _judge_p5(tables: Tables) -> Judgement:
    pairs = _pairs(tables, ROUND_ROBIN, DELAYS_B_MS)
    found = {pair.text: _alike(pair) for pair in pairs}
    verdict = worst(
        at_points(found[pair.text] for pair in pairs if pair.curve.delay_b_ms == delay) for delay in DELAYS_B_MS
    )
    apart = [where for where, evidence in found.items() if evidence is Evidence.ABSENT]
    worst_mean = max(pairs, key=lambda pair: abs(pair.delay_gap))
    worst_run = max(pairs, key=lambda pair: pair.median_of_runs)
    finding = (
        f"apart at {len(apart)} of {len(pairs)} points; the means differ by up to "
        f"{100 * abs(worst_mean.delay_gap):.1f} % ({worst_mean.text}), the median single run by up to "
        f"{100 * worst_run.median_of_runs:.1f} % ({worst_run.text})"
    )
    difference = Measure(f"{worst_mean.text}, stream 1 - stream 0", worst_mean.delay_difference_ms, "ms", 1)
    return Judgement(verdict, finding, (*worst_mean.delays(), difference))


def _judge_p6(tables: Tables) -> Judgement:
    pairs = _pairs(tables, FIXED, (50, 75))
    served = [pair for pair in pairs if pair.sigma_kib >= delays.bandwidth_delay_kib(pair.curve.delay_b_ms)]
    closest = min(pairs, key=lambda pair: pair.delay_gap)
    uneven = max(served, key=lambda pair: pair.throughput_gap)
    verdicts = []
    for delay in (50, 75):
        of_delay = [pair for pair in pairs if pair.curve.delay_b_ms == delay]
        verdicts.append(at_points(higher(pair.relative_difference, TOLERANCE) for pair in of_delay))
        verdicts.append(at_points(alike(pair.rate_difference) for pair in of_delay if pair in served))
    finding = (
        f"stream 0's delay is smaller by {100 * closest.delay_gap:.0f} % or more (least at {closest.text}); "
        f"throughputs differ by up to {100 * uneven.throughput_gap:.1f} % where σ satisfies equation 1 "
        f"(most at {uneven.text})"
    )
    return Judgement(worst(verdicts), finding, (*closest.delays(), *uneven.throughputs()))


@dataclass(frozen=True)
class _Growth:
    """A straight line through the mean delays of one stream from the minimum sigma on."""

    text: str
    slope_ms_per_kib: float
    rise: Mean
    """Rise from the smallest to the largest sigma, along the line of each run, as a share of the mean delay."""
    deviation: float
    """Largest distance from the line, as a share of the line."""


def _growth(tables: Tables, curve: Curve, stream: int, sigmas_kib: list[int]) -> _Growth:
    rows = curve.of(tables).streams
    rows = rows[(rows["stream"] == stream) & rows["sigma_kib"].isin(sigmas_kib)]
    by_run = rows.pivot_table(index="sigma_kib", columns="seed", values="delay_mean_ms").dropna(axis="columns")
    if by_run.empty:
        raise NotMeasured(f"no run of {curve.text} with every sigma")
    sigmas, runs = by_run.index.to_numpy(dtype=float), by_run.to_numpy(dtype=float)
    found = runs.mean(axis=1)
    slope, base = np.polyfit(sigmas, found, 1)
    line = base + slope * sigmas
    rises = np.polyfit(sigmas, runs, 1)[0] * (sigmas[-1] - sigmas[0]) / found.mean()
    deviation = float(np.max(np.abs(found / line - 1)))
    return _Growth(f"{curve.mapping}, stream {stream}", float(slope), mean(rises), deviation)


def _judge_p7(tables: Tables) -> Judgement:
    growths, steady, spreads, measures = [], [], [], []
    for mapping in delays.STREAM_MAPS:
        curve = Curve(10, mapping)
        beyond = [sigma for sigma in SIGMAS_KIB if sigma >= delays.bandwidth_delay_kib(10)]
        growths += [_growth(tables, curve, stream, beyond) for stream in (0, 1)]
        runs = curve.of(tables).runs
        at = {sigma: runs[runs["sigma_kib"] == sigma] for sigma in beyond}
        rates = [by_seed(rows, "throughput_mbps", f"{curve.text}, {sigma} KiB") for sigma, rows in at.items()]
        steady += [alike(gain(rate, rates[0])) for rate in rates[1:]]
        totals = [delays.throughput(tables, curve, sigma) for sigma in beyond]
        values = [total.value for total in totals]
        spreads.append((max(values) - min(values)) / max(values))
        measures += [Measure(f"{curve.text}, {beyond[end]} KiB", totals[end], "Mbit/s") for end in (0, -1)]
    bent = max(growths, key=lambda growth: growth.deviation)
    grows = everywhere(higher(growth.rise, TOLERANCE) for growth in growths)
    linear = Verdict.REPRODUCED if bent.deviation <= TOLERANCE else Verdict.MISSED
    slopes = [growth.slope_ms_per_kib for growth in growths]
    finding = (
        f"{min(slopes):.3f} to {max(slopes):.3f} ms a KiB, at most {100 * bent.deviation:.1f} % off a straight "
        f"line ({bent.text}); throughput varies by {100 * max(spreads):.1f} %"
    )
    return Judgement(worst([grows, linear, everywhere(steady)]), finding, tuple(measures))


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, [axes] = new_figure(9.4, 4.4, columns=2)
    with style():
        for stream, ax in enumerate(axes):
            for curve in CURVES:
                rows = curve.of(tables).streams
                points = summarise(rows[rows["stream"] == stream], ["sigma_kib"], "delay_mean_ms")
                ax.errorbar(
                    points["sigma_kib"],
                    points["mean"],
                    yerr=points["half_width"].fillna(0),
                    label=curve.text,
                    color=curve.colour,
                    linestyle=curve.dash,
                    marker="o" if curve.mapping == FIXED else "s",
                    markerfacecolor=curve.colour if curve.mapping == FIXED else PAPER,
                    capsize=2,
                )
            ax.set_title(f"stream {stream}")
            ax.set_xlabel("send and receive buffer σ [KiB]")
            ax.set_xticks(range(32, SIGMAS_KIB[-1] + 1, 32))
        # Both axes share one scale, so it is known only after both are drawn.
        axes[0].set_ylim(bottom=0)
        axes[0].set_ylabel("mean message delay [ms]")
        axes[0].legend(loc="upper left")
    return figure


def single_runs(tables: Tables) -> pd.DataFrame:
    """Differences of the streams' delays in one run under round-robin: one row for each path delay."""
    pairs = _pairs(tables, ROUND_ROBIN, DELAYS_B_MS)
    rows = []
    for delay in DELAYS_B_MS:
        gaps = _single_gaps(pairs, delay)
        rows.append(
            {
                "delay_b_ms": delay,
                "runs": gaps.runs,
                "apart": gaps.apart,
                "median_percent": 100 * gaps.median,
                "largest_percent": 100 * gaps.largest,
            }
        )
    return pd.DataFrame(rows)


def _delays(tables: Tables) -> pd.DataFrame:
    return summarise(tables.streams, ["delay_b_ms", "mapping", "stream", "sigma_kib"], "delay_mean_ms")


FIGURE = Figure(
    name="pfldnet2010-5",
    title="Figure 5: message delay of each stream on paths of dissimilar delay",
    source=delays.SOURCE,
    sweep=delays.SWEEP,
    drawings=(
        Drawing(
            "delay",
            "Mean time from handing a message to the stack until the receiving application has it, over the buffer "
            "size σ, in the runs of figure 4. Same colour: same delay; dashed: round-robin, solid: fixed mapping "
            "(stream 0 on path A, stream 1 on path B). The paper's text states no values here.",
            _draw,
        ),
    ),
    listings=(
        Listing(
            "single-runs",
            f"How far the streams of one run are apart under round-robin, and how many runs over {_TOLERANCE_TEXT}",
            single_runs,
        ),
        Listing("summary", "Mean message delay in ms, mean over runs and 95 % half-width", _delays),
    ),
    claims=(
        Claim(
            "P5",
            "With round-robin, both streams have the same mean message delay, whatever the paths' delays.",
            "no significant difference",
            f"{_TOLERANCE_TEXT} at every σ by itself, with the whole interval of the mean over {delays.RUNS_OF_TURNS} "
            "runs and for the median single run",
            _judge_p5,
        ),
        Claim(
            "P6",
            "With fixed mapping and delays of 10/50 and 10/75 ms, stream 0 has a clearly smaller delay than stream 1; "
            "both have the same throughput once σ satisfies equation 1.",
            "stream 0 < stream 1; equal throughput",
            f"for each delay; smaller: by {_TOLERANCE_TEXT} or more and beyond the 95 % interval of the paired "
            f"difference, at every σ; same: {_TOLERANCE_TEXT} with the whole interval, from σ = 2 (δA ρA + δB ρB) on",
            _judge_p6,
        ),
        Claim(
            "P7",
            "With delays of 10/10 ms, beyond the minimum σ, message delay grows linearly with σ, throughput does not.",
            "linear",
            f"{_TOLERANCE_TEXT} from a straight line; throughput within {_TOLERANCE_TEXT}",
            _judge_p7,
        ),
    ),
)
