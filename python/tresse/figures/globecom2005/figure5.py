"""Figure 5: the cost of a bounded receive buffer by delay, and the claim R7."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import matplotlib.figure

from tresse import standings
from tresse.claims import Claim, Judgement, Measure, Verdict, worst
from tresse.evidence import Evidence, Runs, at_least, at_most, at_points, everywhere, gain, graded, higher
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.globecom2005 import default, transfers
from tresse.figures.globecom2005.transfers import OTHER_RATES_MBPS, RATE_MBPS, SSTHRESH, TWO_PATHS
from tresse.metrics import Mean, mean
from tresse.plots.theme import BLUE, GREEN, ORANGE, PURPLE, SKY, YELLOW, new_figure, style
from tresse.standings import Standing
from tresse.sweep import Label, Point, Sweep
from tresse.tables import Tables

DELAYS_MS = {10: ORANGE, 25: YELLOW, 45: BLUE, 90: SKY, 180: GREEN, 360: PURPLE}
"""One-way delay of both paths."""
BUFFERS_KIB = (16, 32, 64, 128, 256)
INFINITE_KIB = 16 * 1024
"""Larger than the file, so that the buffer is never a limit."""
LOSSES_PERCENT = (1, 10)
"""Losses of path 2: the paper does not state which one it used here."""
_KNEE_KIB = (16, 64, 256)
"""The buffers that the judge of the knee compares."""


def _points() -> Iterator[Point]:
    for loss in LOSSES_PERCENT:
        for delay in DELAYS_MS:
            for buffer in BUFFERS_KIB:
                yield _cmt(delay, buffer, loss)
    for loss in LOSSES_PERCENT:
        for delay in DELAYS_MS:
            for buffer in (*BUFFERS_KIB, INFINITE_KIB):
                yield _point(delay, buffer, loss, RATE_MBPS)
        for rate in OTHER_RATES_MBPS:
            for delay in (min(DELAYS_MS), max(DELAYS_MS)):
                for buffer in (*_KNEE_KIB, INFINITE_KIB):
                    yield _point(delay, buffer, loss, rate)


def _point(delay: int, buffer_kib: int, loss: int, rate_mbps: int) -> Point:
    return transfers.point(
        {"policy": SSTHRESH, "delay_ms": delay, "buffer_kib": buffer_kib, "loss_percent": loss},
        _settings(delay, buffer_kib),
        transfers.policy_overrides(SSTHRESH),
        transfers.loss_overrides(loss),
        rate_mbps=rate_mbps,
    )


def _cmt(delay: int, buffer_kib: int, loss: int) -> Point:
    labels: dict[str, Label] = {
        "policy": standings.CMT,
        "delay_ms": delay,
        "buffer_kib": buffer_kib,
        "loss_percent": loss,
    }
    return default.point(labels, _settings(delay, buffer_kib), transfers.loss_overrides(loss))


def _settings(delay: int, buffer_kib: int) -> dict[str, str]:
    return {
        "path.0.delay": f"{delay}ms",
        "path.1.delay": f"{delay}ms",
        "transport.receive_buffer": f"{buffer_kib}KiB",
    }


def _ratio(tables: Tables, delay: int, buffer_kib: int, loss: int) -> float:
    """Return the throughput without a bound divided by that with the buffer."""
    return _time(tables, delay, buffer_kib, loss).value / _time(tables, delay, INFINITE_KIB, loss).value


def _time(tables: Tables, delay: int, buffer_kib: int, loss: int) -> Mean:
    return transfers.mean_of(
        tables, "completed_s", policy=SSTHRESH, delay_ms=delay, buffer_kib=buffer_kib, loss_percent=loss
    )


def _draw(all_rates: Tables) -> matplotlib.figure.Figure:
    tables = transfers.usual(all_rates)
    figure, axes = new_figure(9.6, 4.0, 1, len(LOSSES_PERCENT))
    with style():
        for ax, loss in zip(axes[0], LOSSES_PERCENT, strict=True):
            for delay, colour in DELAYS_MS.items():
                ratios = [_ratio(tables, delay, buffer, loss) for buffer in BUFFERS_KIB]
                ax.plot(BUFFERS_KIB, ratios, color=colour, marker="o", label=f"{delay} ms")
            ax.axhline(1, color="0.6", linewidth=0.8)
            ax.set_title(f"path 2 loses {loss} %")
            ax.set(xlabel="receive buffer [KiB]", xscale="log")
            ax.set_xticks(BUFFERS_KIB, [str(buffer) for buffer in BUFFERS_KIB])
            ax.minorticks_off()
        # All axes share one scale, so it is known only after all are drawn.
        axes[0][0].set(ylabel="throughput without bound / with it", ylim=(0, None))
        axes[0][-1].legend(loc="upper right", ncols=2)
    return figure


def _ratios(tables: Tables, delay: int, buffer_kib: int, loss: int) -> Runs:
    """Return the same seed by seed."""
    labels: dict[str, Label] = {"policy": SSTHRESH, "delay_ms": delay, "loss_percent": loss}
    with_it, without = (
        transfers.runs_of(tables, "completed_s", **labels, buffer_kib=buffer) for buffer in (buffer_kib, INFINITE_KIB)
    )
    return (with_it / without).dropna()


@dataclass(frozen=True)
class _Curves:
    """Curves of one loss rate of path 2."""

    knee: list[Evidence]
    """By delay: whether a buffer of 64 KiB gives most of the throughput that a larger buffer can give."""
    larger: list[Evidence]
    """By pairs of neighbouring delays: whether the shorter one costs more at 16 KiB."""
    highest: Mean
    """The ratio at the shortest delay with 16 KiB."""

    @property
    def verdict(self) -> Verdict:
        effect = worst([at_points(self.knee), at_points(self.larger), everywhere([at_most(self.highest, _AT_MOST)])])
        return graded(everywhere([at_least(self.highest, _AT_LEAST)]), effect)


def _curves(tables: Tables, delays: Sequence[int], loss: int) -> _Curves:
    found = {delay: {buffer: _ratios(tables, delay, buffer, loss) for buffer in _KNEE_KIB} for delay in delays}
    knee = []
    for curve in found.values():
        left = _LEFT_AT_KNEE * (curve[16] - curve[256]) - (curve[64] - curve[256])
        knee.append(at_least(mean(left.dropna()), 0))
    larger = [higher(gain(found[short][16], found[long][16])) for short, long in pairwise(delays)]
    return _Curves(knee, larger, mean(found[delays[0]][16]))


def _judge_r7(tables: Tables) -> Judgement:
    delays = sorted(int(delay) for delay in transfers.rows(tables, policy=SSTHRESH)["delay_ms"].unique())
    shortest = delays[0]
    found = {loss: _curves(tables, delays, loss) for loss in LOSSES_PERCENT}
    order = list(Verdict)
    best = min((curves.verdict for curves in found.values()), key=order.index)
    finding = "; ".join(
        f"{loss} %: {curves.verdict}, {curves.highest.value:.1f} ± {curves.highest.half_width:.1f} at {shortest} ms "
        f"and 16 KiB, knee at 64 KiB in {curves.knee.count(Evidence.SHOWN)} of {len(delays)} curves, more for the "
        f"shorter delay in {curves.larger.count(Evidence.SHOWN)} of {len(delays) - 1} pairs"
        for loss, curves in found.items()
    )
    measures = tuple(
        Measure(f"{shortest} ms, {buffer} KiB, {loss} %", _time(tables, shortest, buffer, loss), "s", 1)
        for loss in LOSSES_PERCENT
        for buffer in (16, INFINITE_KIB)
    )
    return Judgement(best, finding, measures)


_LEFT_AT_KNEE = 0.35
"""Share of the excess at 16 KiB that may be left at a knee."""
_AT_LEAST, _AT_MOST = 8.0, 12.0
"""Limits of a ratio that counts as about 10."""


def _against_best(tables: Tables) -> list[Standing]:
    return default.against_best(tables, "policy", ["loss_percent", "delay_ms", "buffer_kib"])


FIGURE = Figure(
    name="globecom2005-5",
    title="Figure 5: what a bounded receive buffer costs, by delay",
    source=transfers.SOURCE,
    sweep=Sweep(
        TWO_PATHS,
        points=tuple(_points()),
        profiles=transfers.PROFILES,
    ),
    drawings=(
        Drawing(
            "degradation",
            "Throughput with a receive buffer larger than the file, divided by that with the buffer on the axis; "
            "RTX-SSTHRESH, both paths of the same delay (one way).",
            _draw,
        ),
    ),
    listings=(
        Listing("default", standings.CAPTION, standings.listing(_against_best)),
        Listing(
            "rates",
            "R7 by the rate of both paths; with 2 and 100 Mbit/s for the shortest and the longest delay only",
            transfers.verdicts_by_rate({"R7": _judge_r7}),
        ),
    ),
    claims=(
        Claim(
            "R7",
            "Throughput without a bound over that with a receive buffer has a knee near 64 KB, is larger for shorter "
            "delays, and is up to about 10 at 10 ms and 16 KB.",
            "up to ~10",
            "at 1 % or at 10 % of path 2, of which the paper says nothing: every curve has lost 65 % of its excess by "
            "64 KiB, at 16 KiB a shorter delay costs more than the next longer one, by paired differences, and the "
            "ratio is 8 to 12 at the shortest, with the whole interval; weaker: less than 8",
            transfers.at_usual_rate(_judge_r7),
        ),
    ),
    standings=_against_best,
)
