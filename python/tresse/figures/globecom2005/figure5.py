"""Figure 5: what a bounded receive buffer costs by delay, and the claim R7."""

import matplotlib.figure

from tresse.claims import Claim, Judgement, Measure, Verdict
from tresse.figures.figure import Drawing, Figure
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import SSTHRESH, TWO_PATHS
from tresse.metrics import Mean
from tresse.plots.theme import BLUE, GREEN, ORANGE, PURPLE, SKY, YELLOW, new_figure, style
from tresse.sweep import Point, Sweep
from tresse.tables import Tables

DELAYS_MS = {10: ORANGE, 25: YELLOW, 45: BLUE, 90: SKY, 180: GREEN, 360: PURPLE}
"""One way, of both paths."""
BUFFERS_KIB = (16, 32, 64, 128, 256)
INFINITE_KIB = 16 * 1024
"""Larger than the file."""
LOSSES_PERCENT = (1, 10)
"""Of path 2: the paper does not say which it took here."""


def _point(delay: int, buffer_kib: int, loss: int) -> Point:
    return transfers.point(
        {"delay_ms": delay, "buffer_kib": buffer_kib, "loss_percent": loss},
        {
            "path.0.delay": f"{delay}ms",
            "path.1.delay": f"{delay}ms",
            "transport.receive_buffer": f"{buffer_kib}KiB",
        },
        transfers.policy_overrides(SSTHRESH),
        transfers.loss_overrides(loss),
    )


def _ratio(tables: Tables, delay: int, buffer_kib: int, loss: int) -> float:
    """Throughput without a bound over that with the buffer: how many times as long the transfer takes."""
    return _time(tables, delay, buffer_kib, loss).value / _time(tables, delay, INFINITE_KIB, loss).value


def _time(tables: Tables, delay: int, buffer_kib: int, loss: int) -> Mean:
    return transfers.mean_of(tables, "completed_s", delay_ms=delay, buffer_kib=buffer_kib, loss_percent=loss)


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, axes = new_figure(9.6, 4.0, 1, len(LOSSES_PERCENT))
    with style():
        for ax, loss in zip(axes[0], LOSSES_PERCENT, strict=True):
            for delay, colour in DELAYS_MS.items():
                ratios = [_ratio(tables, delay, buffer, loss) for buffer in BUFFERS_KIB]
                ax.plot(BUFFERS_KIB, ratios, color=colour, marker="o", label=f"{delay} ms")
            ax.axhline(1, color="0.6", linewidth=0.8)
            ax.set_title(f"path 2 loses {loss} %")
            ax.set(xlabel="receive buffer [KiB]", xscale="log", ylim=(0, None))
            ax.set_xticks(BUFFERS_KIB, [str(buffer) for buffer in BUFFERS_KIB])
            ax.minorticks_off()
        axes[0][0].set_ylabel("throughput without bound / with it")
        axes[0][-1].legend(loc="upper right", ncols=2)
    return figure


def _judge_r7(tables: Tables) -> Judgement:
    found = {
        loss: {d: {b: _ratio(tables, d, b, loss) for b in BUFFERS_KIB} for d in DELAYS_MS} for loss in LOSSES_PERCENT
    }
    # A knee: most of what a larger buffer can give has been given at 64 KiB.
    knees = {
        loss: sum(curve[64] - curve[256] <= 0.35 * (curve[16] - curve[256]) for curve in by_delay.values())
        for loss, by_delay in found.items()
    }
    falls = {loss: by_delay[10][16] > by_delay[360][16] for loss, by_delay in found.items()}
    highest = max(by_delay[10][16] for by_delay in found.values())
    finding = (
        "; ".join(
            f"{loss} %: {found[loss][10][16]:.1f} at 10 ms and 16 KiB, {found[loss][360][16]:.1f} at 360 ms, knee at "
            f"64 KiB in {knees[loss]} of {len(DELAYS_MS)} curves"
            for loss in LOSSES_PERCENT
        )
        + f"; up to {highest:.1f} times"
    )
    measures = tuple(
        Measure(f"10 ms, {buffer} KiB, {loss} %", _time(tables, 10, buffer, loss), "s", 1)
        for loss in LOSSES_PERCENT
        for buffer in (16, INFINITE_KIB)
    )
    good = any(knees[loss] == len(DELAYS_MS) and falls[loss] for loss in LOSSES_PERCENT) and highest >= 8
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, measures)


FIGURE = Figure(
    name="globecom2005-5",
    title="Figure 5: what a bounded receive buffer costs, by delay",
    source=transfers.SOURCE,
    sweep=Sweep(
        TWO_PATHS,
        points=tuple(
            _point(delay, buffer, loss)
            for loss in LOSSES_PERCENT
            for delay in DELAYS_MS
            for buffer in (*BUFFERS_KIB, INFINITE_KIB)
        ),
        runs=transfers.RUNS,
    ),
    drawings=(
        Drawing(
            "degradation",
            "Throughput with a receive buffer larger than the file, divided by that with the buffer on the axis; "
            "RTX-SSTHRESH, both paths of the same delay (one way).",
            _draw,
        ),
    ),
    listings=(),
    claims=(
        Claim(
            "R7",
            "Throughput without a bound over that with a receive buffer has a knee near 64 KB, is larger for shorter "
            "delays, and is up to about 10 at 10 ms and 16 KB.",
            "up to ~10",
            "at one loss rate: every curve has lost 65 % of its excess by 64 KiB and the shortest delay is the worst "
            "at 16 KiB; the highest ratio is at least 8",
            _judge_r7,
        ),
    ),
)
