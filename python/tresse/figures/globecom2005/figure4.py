"""Figure 4: five retransmission policies; `ranking` has the claims."""

import math
from collections.abc import Iterator

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes

from tresse import standings
from tresse.claims import Claim
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.globecom2005 import default, ranking, transfers
from tresse.figures.globecom2005.ranking import BUFFER_KIB, BUFFERS_KIB, HIGH_LOSS, LOW_LOSS
from tresse.figures.globecom2005.transfers import (
    LOSSES_PERCENT,
    OTHER_RATES_MBPS,
    POLICIES,
    RATE_MBPS,
    TWO_PATHS,
    policy_text,
)
from tresse.metrics import summarise
from tresse.plots.theme import INK, new_figure, style
from tresse.standings import Standing
from tresse.sweep import Point, Sweep
from tresse.tables import TIMEOUT_ROWS, Tables


def _point(policy: str, loss: int, buffer_kib: int = BUFFER_KIB, rate_mbps: int = RATE_MBPS) -> Point:
    return transfers.point(
        {"policy": policy, "loss_percent": loss, "buffer_kib": buffer_kib},
        {"transport.receive_buffer": f"{buffer_kib}KiB"},
        transfers.policy_overrides(policy),
        transfers.loss_overrides(loss),
        rate_mbps=rate_mbps,
    )


def _cmt(loss: int, buffer_kib: int) -> Point:
    return default.point(
        {"policy": standings.CMT, "loss_percent": loss, "buffer_kib": buffer_kib},
        {"transport.receive_buffer": f"{buffer_kib}KiB"},
        transfers.loss_overrides(loss),
    )


def _points() -> Iterator[Point]:
    yield from (_cmt(loss, BUFFER_KIB) for loss in LOSSES_PERCENT)
    yield from (_cmt(HIGH_LOSS, buffer) for buffer in BUFFERS_KIB if buffer != BUFFER_KIB)
    for policy in POLICIES:
        for loss in LOSSES_PERCENT:
            for buffer in BUFFERS_KIB:
                yield _point(policy, loss, buffer)
        for rate in OTHER_RATES_MBPS:
            yield _point(policy, LOW_LOSS, rate_mbps=rate)
            for buffer in BUFFERS_KIB:
                yield _point(policy, HIGH_LOSS, buffer, rate)


def _draw_over_loss(tables: Tables) -> matplotlib.figure.Figure:
    figure, axes = new_figure(11.4, 3.9, 1, 3, share_y="none")
    columns = (
        ("completed_s", "time for 8 MB [s]"),
        ("timeouts", "timeouts"),
        ("tsn_ms", "mean time to get a TSN across [ms]"),
    )
    with style():
        for ax, (column, label) in zip(axes[0], columns, strict=True):
            _draw_policies(ax, transfers.usual(tables).where(buffer_kib=BUFFER_KIB), column)
            ax.set(xlabel="loss of path 2 [%]", ylabel=label, ylim=(0, None))
        axes[0][0].legend(loc="upper left")
    return figure


def _draw_policies(ax: Axes, tables: Tables, column: str) -> None:
    for policy, colour in POLICIES.items():
        curve = summarise(tables.where(policy=policy).runs, ["loss_percent"], column)
        ax.errorbar(
            curve["loss_percent"],
            curve["mean"],
            yerr=curve["half_width"].fillna(0),
            color=colour,
            marker="o",
            capsize=2,
            label=policy_text(policy),
        )
    ours = summarise(tables.where(policy=standings.CMT).runs, ["loss_percent"], column)
    ax.plot(ours["loss_percent"], ours["mean"], color=INK, linestyle=":", marker="D", label=standings.CMT)


def _draw_rows(tables: Tables) -> matplotlib.figure.Figure:
    figure, [[ax]] = new_figure(7.2, 3.8)
    width = 0.8 / len(POLICIES)
    usual = transfers.usual(tables)
    with style():
        for position, (policy, colour) in enumerate(POLICIES.items()):
            found = [ranking.row_of(usual, policy, n) for n in range(1, TIMEOUT_ROWS + 1)]
            ax.bar(
                [n + (position - 2) * width for n in range(1, TIMEOUT_ROWS + 1)],
                [value.value for value in found],
                width,
                yerr=[0 if math.isnan(value.half_width) else value.half_width for value in found],
                color=colour,
                label=policy_text(policy),
                capsize=2,
            )
        ax.set_xticks(range(1, TIMEOUT_ROWS + 1), [*map(str, range(1, TIMEOUT_ROWS)), f"≥ {TIMEOUT_ROWS}"])
        ax.set(xlabel="timeouts of a path in a row", ylabel="expirations a transfer")
        ax.legend(loc="upper right")
    return figure


def _buffers(tables: Tables) -> pd.DataFrame:
    rows = []
    for buffer in BUFFERS_KIB:
        times = {p: ranking.mean_of(transfers.usual(tables), "completed_s", p, HIGH_LOSS, buffer) for p in POLICIES}
        rows.append({"buffer_kib": buffer, **{policy_text(p): f"{time.value:.1f} s" for p, time in times.items()}})
    return pd.DataFrame(rows)


def _against_best(tables: Tables) -> list[Standing]:
    return default.against_best(tables, "policy", ["loss_percent", "buffer_kib"])


FIGURE = Figure(
    name="globecom2005-4",
    title="Figure 4: five retransmission policies with a receive buffer of 64 KiB",
    source=transfers.SOURCE,
    sweep=Sweep(TWO_PATHS, points=tuple(_points()), profiles=transfers.PROFILES),
    drawings=(
        Drawing(
            "loss",
            "Time for 8 MB, timeouts of a transfer, and the time from a TSN's first transmission until it reached the "
            "receiver, over the loss of path 2; path 1 loses 1 %. Bars: 95 % intervals.",
            _draw_over_loss,
        ),
        Drawing(
            "rows",
            f"How often a path's timer expired for the n-th time in a row, nothing sent there having been acknowledged "
            f"in between; path 2 loses {HIGH_LOSS} %.",
            _draw_rows,
        ),
    ),
    listings=(
        Listing("buffers", f"Time for 8 MB by receive buffer, path 2 at {HIGH_LOSS} %", _buffers),
        Listing("default", standings.CAPTION, standings.listing(_against_best)),
        Listing(
            "rates", "R2 to R6 by the rate of both paths", transfers.verdicts_by_rate(ranking.JUDGES, ranking.ELSEWHERE)
        ),
    ),
    claims=(
        Claim(
            "R2",
            "With 64 KB, RTX-SAME takes longest, RTX-ASAP next, then CWND, SSTHRESH and LOSSRATE together; the gap of "
            "RTX-SAME grows with the loss.",
            "SAME > ASAP > the rest",
            f"at every loss, by paired differences; together: within {100 * ranking.TOGETHER:.0f} % of each other; "
            "grows: by the line through each seed's gaps",
            transfers.at_usual_rate(ranking.judge_r2),
        ),
        Claim(
            "R3",
            "RTX-SAME has the most timeouts, then RTX-ASAP; the policies based on loss have the fewest.",
            "SAME > ASAP > the rest",
            "at every loss, by paired differences",
            transfers.at_usual_rate(ranking.judge_r3),
        ),
        Claim(
            "R4",
            "The mean time to get a TSN across is highest with RTX-SAME.",
            "SAME highest",
            "at every loss, by paired differences",
            transfers.at_usual_rate(ranking.judge_r4),
        ),
        Claim(
            "R5",
            "With path 2 at 10 %, the policies based on loss have about half of RTX-SAME's back-to-back timeouts, or "
            "fewer.",
            "about half or fewer",
            f"at most {ranking.ABOUT_HALF:g} for each of them, and fewer by the paired difference; counted: "
            "expirations of a path's T3 that follow another one, nothing sent on that path having been acknowledged in "
            "between",
            transfers.at_usual_rate(ranking.judge_r5),
        ),
        Claim(
            "R6",
            "The ranking is the same from 16 to 256 KB; all degrade as the buffer shrinks; RTX-SAME stays poor.",
            "same ranking",
            "SAME > ASAP > the rest at every loss, for each size by itself, by paired differences; degrade: each size "
            "takes longer than the next larger one, all losses together",
            transfers.at_usual_rate(ranking.judge_r6),
        ),
    ),
    standings=_against_best,
)
