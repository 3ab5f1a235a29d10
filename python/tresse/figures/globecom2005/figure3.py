"""Figure 3: two paths that are slower than one, and the claim R1."""

import matplotlib.figure

from tresse.claims import Claim, Judgement, Measure, Verdict
from tresse.figures.figure import Drawing, Figure
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import LOSSES_PERCENT, SAME, TWO_PATHS
from tresse.metrics import summarise
from tresse.plots.theme import BLUE, ORANGE, new_figure, style
from tresse.sweep import Point, Sweep
from tresse.tables import Tables

CMT, ONE_PATH = "CMT", "one path"
_BUFFER = {"transport.receive_buffer": "16KiB"}


def _points() -> tuple[Point, ...]:
    cmt = [
        transfers.point(
            {"variant": CMT, "loss_percent": loss},
            _BUFFER,
            transfers.policy_overrides(SAME),
            transfers.loss_overrides(loss),
        )
        for loss in LOSSES_PERCENT
    ]
    # With one path at most, the addresses of the other are ignored.
    alone = transfers.point(
        {"variant": ONE_PATH, "loss_percent": 0},
        _BUFFER,
        {"transport.max_paths": "1", "transport.concurrent": "false"},
    )
    return (*cmt, alone)


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, [[ax]] = new_figure(7.2, 4.4)
    with style():
        curve = summarise(tables.where(variant=CMT).runs, ["loss_percent"], "completed_s")
        ax.errorbar(
            curve["loss_percent"],
            curve["mean"],
            yerr=curve["half_width"].fillna(0),
            color=ORANGE,
            marker="o",
            capsize=2,
            label="CMT over both paths, RTX-SAME",
        )
        alone = transfers.mean_of(tables, "completed_s", variant=ONE_PATH)
        ax.axhline(alone.value, color=BLUE, label="one association over path 1 alone")
        ax.axhspan(alone.low, alone.high, color=BLUE, alpha=0.15, linewidth=0)
        ax.set(xlabel="loss of path 2 [%]", ylabel="time for 8 MB [s]", ylim=(0, None))
        ax.set_xticks(LOSSES_PERCENT)
        ax.legend(loc="upper left")
    return figure


def _judge_r1(tables: Tables) -> Judgement:
    alone = transfers.mean_of(tables, "completed_s", variant=ONE_PATH)
    times = {loss: transfers.mean_of(tables, "completed_s", variant=CMT, loss_percent=loss) for loss in LOSSES_PERCENT}
    slower = [loss for loss, time in times.items() if time.low > alone.high]
    measures = (
        Measure("path 1 alone", alone, "s", 1),
        *(Measure(f"CMT, path 2 at {loss} %", times[loss], "s", 1) for loss in (1, 5, 10)),
    )
    if not slower:
        return Judgement(Verdict.MISSED, "CMT is nowhere slower than path 1 alone", measures)
    first = next(loss for loss in LOSSES_PERCENT if all(other in slower for other in range(loss, 11)))
    return Judgement(Verdict.REPRODUCED, f"CMT is slower from a loss of {first} % on path 2 on", measures)


FIGURE = Figure(
    name="globecom2005-3",
    title="Figure 3: receive buffer blocking makes two paths slower than one",
    source=transfers.SOURCE,
    sweep=Sweep(TWO_PATHS, points=_points(), runs=transfers.RUNS),
    drawings=(
        Drawing(
            "time",
            "Time to transfer 8 MB with a receive buffer of 16 KiB over the loss of path 2; path 1 loses 1 %. Bars and "
            "band: 95 % intervals.",
            _draw,
        ),
    ),
    listings=(),
    claims=(
        Claim(
            "R1",
            "With RTX-SAME and a receive buffer of 16 KB, CMT is slower than one association over path 1 alone.",
            "slower",
            "intervals apart, at the highest losses at least; the loss from which on it holds is reported",
            _judge_r1,
        ),
    ),
)
