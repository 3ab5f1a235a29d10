"""Figure 3: two paths with less throughput than one, and the claim R1."""

import matplotlib.figure

from tresse import standings
from tresse.claims import Claim, Judgement, Measure, Verdict
from tresse.evidence import Evidence, gain, higher
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.globecom2005 import default, transfers
from tresse.figures.globecom2005.transfers import LOSSES_PERCENT, OTHER_RATES_MBPS, RATE_MBPS, SAME, TWO_PATHS
from tresse.metrics import mean, summarise
from tresse.plots.theme import BLUE, INK, ORANGE, new_figure, style
from tresse.standings import Standing
from tresse.sweep import Point, Sweep
from tresse.tables import Tables

CMT, ONE_PATH = "CMT", "one path"
_BUFFER = {"transport.receive_buffer": "16KiB"}


_SHOWN_PERCENT = (1, 5, 10)
"""Losses of path 2 at which the other rates and their verdicts are shown."""


def _points() -> tuple[Point, ...]:
    cmt = [_cmt(loss, RATE_MBPS) for loss in LOSSES_PERCENT]
    cmt += [_cmt(loss, rate) for rate in OTHER_RATES_MBPS for loss in _SHOWN_PERCENT]
    cmt += [
        default.point({"variant": standings.CMT, "loss_percent": loss}, _BUFFER, transfers.loss_overrides(loss))
        for loss in LOSSES_PERCENT
    ]
    return (*cmt, *(_alone(rate) for rate in (RATE_MBPS, *OTHER_RATES_MBPS)))


def _cmt(loss: int, rate_mbps: int) -> Point:
    return transfers.point(
        {"variant": CMT, "loss_percent": loss},
        _BUFFER,
        transfers.policy_overrides(SAME),
        transfers.loss_overrides(loss),
        rate_mbps=rate_mbps,
    )


def _alone(rate_mbps: int) -> Point:
    # With one path at most, the addresses of the other are ignored.
    one_path = {"transport.max_paths": "1", "transport.concurrent": "false"}
    return transfers.point({"variant": ONE_PATH, "loss_percent": 0}, _BUFFER, one_path, rate_mbps=rate_mbps)


def _draw(all_rates: Tables) -> matplotlib.figure.Figure:
    tables = transfers.usual(all_rates)
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
        ours = summarise(tables.where(variant=standings.CMT).runs, ["loss_percent"], "completed_s")
        ax.plot(ours["loss_percent"], ours["mean"], color=INK, linestyle=":", marker="D", label=standings.CMT)
        alone = transfers.mean_of(tables, "completed_s", variant=ONE_PATH)
        ax.axhline(alone.value, color=BLUE, label="one association over path 1 alone")
        ax.axhspan(alone.low, alone.high, color=BLUE, alpha=0.15, linewidth=0)
        ax.set(xlabel="loss of path 2 [%]", ylabel="time for 8 MB [s]", ylim=(0, None))
        ax.set_xticks(LOSSES_PERCENT)
        ax.legend(loc="upper left")
    return figure


def _against_best(tables: Tables) -> list[Standing]:
    usual = transfers.usual(tables)
    # The runs over path 1 alone do not depend on the loss of path 2.
    alone = {ONE_PATH: transfers.mean_of(usual, "completed_s", variant=ONE_PATH).value}
    two = Tables(usual.runs[usual.runs["variant"] != ONE_PATH], usual.streams, usual.paths, usual.samples)
    return default.against_best(two, "variant", ["loss_percent"], alone)


def _judge_r1(tables: Tables) -> Judgement:
    alone = transfers.runs_of(tables, "completed_s", variant=ONE_PATH)
    losses = sorted(int(loss) for loss in transfers.rows(tables, variant=CMT)["loss_percent"].unique())
    times = {loss: transfers.runs_of(tables, "completed_s", variant=CMT, loss_percent=loss) for loss in losses}
    found = {loss: higher(gain(time, alone)) for loss, time in times.items()}
    measures = (
        Measure("path 1 alone", mean(alone), "s", 1),
        *(Measure(f"CMT, path 2 at {loss} %", mean(times[loss]), "s", 1) for loss in _SHOWN_PERCENT if loss in times),
    )
    slower = [loss for loss in losses if found[loss] is Evidence.SHOWN]
    first = next((loss for loss in losses if all(other in slower for other in losses if other >= loss)), None)
    if first is not None:
        return Judgement(Verdict.REPRODUCED, f"CMT is slower from a loss of {first} % on path 2 on", measures)
    where = f"at {', '.join(map(str, slower))} % only" if slower else "nowhere, beyond chance"
    weaker = slower or found[losses[-1]] is Evidence.PARTLY
    finding = f"CMT is slower than path 1 alone {where}"
    return Judgement(Verdict.WEAKER if weaker else Verdict.MISSED, finding, measures)


FIGURE = Figure(
    name="globecom2005-3",
    title="Figure 3: receive buffer blocking makes two paths slower than one",
    source=transfers.SOURCE,
    sweep=Sweep(TWO_PATHS, points=_points(), profiles=transfers.PROFILES),
    drawings=(
        Drawing(
            "time",
            "Time to transfer 8 MB with a receive buffer of 16 KiB over the loss of path 2; path 1 loses 1 %. Bars and "
            "band: 95 % intervals.",
            _draw,
        ),
    ),
    listings=(
        Listing("default", standings.CAPTION, standings.listing(_against_best)),
        Listing(
            "rates",
            "R1 by the rate of both paths; with 2 and 100 Mbit/s at losses of 1, 5 and 10 % only",
            transfers.verdicts_by_rate({"R1": _judge_r1}),
        ),
    ),
    claims=(
        Claim(
            "R1",
            "With RTX-SAME and a receive buffer of 16 KB, CMT is slower than one association over path 1 alone.",
            "slower",
            "by paired differences, from some loss on; the row asks for that loss; weaker: at some losses only",
            transfers.at_usual_rate(_judge_r1),
        ),
    ),
    standings=_against_best,
)
