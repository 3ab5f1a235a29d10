"""Figure 4: five retransmission policies, and the claims R2 to R6."""

import math

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes

from tresse.claims import Claim, Judgement, Measure, Verdict
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import (
    ASAP,
    LOSS_BASED,
    LOSSES_PERCENT,
    POLICIES,
    SAME,
    SSTHRESH,
    TWO_PATHS,
    policy_text,
)
from tresse.metrics import Mean, mean, summarise
from tresse.plots.theme import new_figure, style
from tresse.sweep import Point, Sweep
from tresse.tables import TIMEOUT_ROWS, Tables

BUFFER_KIB = 64
BUFFERS_KIB = (16, 32, 64, 128, 256)
RATES_MBPS = (10, 100)
"""Of both paths: the paper's is not known."""
HIGH_LOSS = 10
_TOGETHER = 0.10
"""The three policies based on loss count as equal within this share of their mean."""


def _point(policy: str, loss: int, buffer_kib: int, rate_mbps: int) -> Point:
    return transfers.point(
        {"policy": policy, "loss_percent": loss, "buffer_kib": buffer_kib, "rate_mbps": rate_mbps},
        {
            "transport.receive_buffer": f"{buffer_kib}KiB",
            "path.0.rate": f"{rate_mbps}Mbit/s",
            "path.1.rate": f"{rate_mbps}Mbit/s",
        },
        transfers.policy_overrides(policy),
        transfers.loss_overrides(loss),
    )


def _points() -> tuple[Point, ...]:
    curves = [_point(policy, loss, BUFFER_KIB, 10) for policy in POLICIES for loss in LOSSES_PERCENT]
    buffers = [
        _point(policy, HIGH_LOSS, buffer, 10) for policy in POLICIES for buffer in BUFFERS_KIB if buffer != BUFFER_KIB
    ]
    rates = [_point(policy, HIGH_LOSS, BUFFER_KIB, rate) for policy in POLICIES for rate in RATES_MBPS[1:]]
    return (*curves, *buffers, *rates)


def _mean(
    tables: Tables, column: str, policy: str, loss: int, buffer_kib: int = BUFFER_KIB, rate_mbps: int = 10
) -> Mean:
    return transfers.mean_of(
        tables, column, policy=policy, loss_percent=loss, buffer_kib=buffer_kib, rate_mbps=rate_mbps
    )


def _draw_over_loss(tables: Tables) -> matplotlib.figure.Figure:
    figure, axes = new_figure(11.4, 3.9, 1, 3, share_y="none")
    columns = (
        ("completed_s", "time for 8 MB [s]"),
        ("timeouts", "timeouts"),
        ("tsn_ms", "mean time to get a TSN across [ms]"),
    )
    with style():
        for ax, (column, label) in zip(axes[0], columns, strict=True):
            _draw_policies(ax, tables.where(buffer_kib=BUFFER_KIB, rate_mbps=10), column)
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


def _draw_rows(tables: Tables) -> matplotlib.figure.Figure:
    figure, [[ax]] = new_figure(7.2, 3.8)
    width = 0.8 / len(POLICIES)
    with style():
        for position, (policy, colour) in enumerate(POLICIES.items()):
            found = [_row(tables, policy, n) for n in range(1, TIMEOUT_ROWS + 1)]
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


def _row(tables: Tables, policy: str, n: int) -> Mean:
    return _mean(tables, f"timeouts_in_row_{n}", policy, HIGH_LOSS)


def _in_a_row(tables: Tables, policy: str) -> Mean:
    """Expirations that followed another one of the same path, nothing sent there acknowledged in between."""
    found = transfers.rows(tables, policy=policy, loss_percent=HIGH_LOSS, buffer_kib=BUFFER_KIB, rate_mbps=10)
    columns = [f"timeouts_in_row_{n}" for n in range(2, TIMEOUT_ROWS + 1)]
    return mean(found[columns].sum(axis=1))


def _buffers(tables: Tables) -> pd.DataFrame:
    rows = []
    for buffer in BUFFERS_KIB:
        times = {policy: _mean(tables, "completed_s", policy, HIGH_LOSS, buffer) for policy in POLICIES}
        rows.append({"buffer_kib": buffer, **{policy_text(p): f"{time.value:.1f} s" for p, time in times.items()}})
    return pd.DataFrame(rows)


def _rates(tables: Tables) -> pd.DataFrame:
    rows = []
    for rate in RATES_MBPS:
        times = {p: _mean(tables, "completed_s", p, HIGH_LOSS, BUFFER_KIB, rate) for p in POLICIES}
        rows.append({"rate_mbps": rate, **{policy_text(p): f"{time.value:.1f} s" for p, time in times.items()}})
    return pd.DataFrame(rows)


def _together(times: dict[str, Mean]) -> bool:
    values = [times[policy].value for policy in LOSS_BASED]
    return max(values) - min(values) <= _TOGETHER * sum(values) / len(values)


def _judge_r2(tables: Tables) -> Judgement:
    high = {policy: _mean(tables, "completed_s", policy, HIGH_LOSS) for policy in POLICIES}
    low = {policy: _mean(tables, "completed_s", policy, 2) for policy in POLICIES}
    best = min(high[policy].value for policy in LOSS_BASED)
    gaps = [times[SAME].value - min(times[p].value for p in LOSS_BASED) for times in (low, high)]
    ordered = high[SAME].value > high[ASAP].value > max(high[policy].value for policy in LOSS_BASED)
    measures = tuple(Measure(f"{policy_text(p)}, {HIGH_LOSS} %", high[p], "s", 1) for p in POLICIES)
    finding = (
        f"at {HIGH_LOSS} % RTX-SAME takes {high[SAME].value / best:.2f} times, RTX-ASAP {high[ASAP].value / best:.2f} "
        f"times as long as the best; RTX-SAME is behind by {gaps[0]:.1f} s at 2 % and {gaps[1]:.1f} s at {HIGH_LOSS} %"
    )
    good = ordered and _together(high) and gaps[1] > gaps[0]
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, measures)


def _judge_worst_to_best(tables: Tables, column: str, unit: str, digits: int, asap_between: bool) -> Judgement:
    found = {policy: _mean(tables, column, policy, HIGH_LOSS) for policy in POLICIES}
    measures = tuple(Measure(f"{policy_text(p)}, {HIGH_LOSS} %", found[p], unit, digits) for p in POLICIES)
    most = max(found[policy].value for policy in LOSS_BASED)
    good = found[SAME].value > max(found[policy].value for policy in POLICIES if policy != SAME)
    if asap_between:
        good = good and found[ASAP].value > most
    order = " > ".join(policy_text(p) for p in sorted(POLICIES, key=lambda p: -found[p].value))
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, f"at {HIGH_LOSS} %: {order}", measures)


def _judge_r3(tables: Tables) -> Judgement:
    return _judge_worst_to_best(tables, "timeouts", "timeouts", 1, asap_between=True)


def _judge_r4(tables: Tables) -> Judgement:
    return _judge_worst_to_best(tables, "tsn_ms", "ms", 1, asap_between=False)


def _judge_r5(tables: Tables) -> Judgement:
    found = {policy: _in_a_row(tables, policy) for policy in POLICIES}
    share = max(found[policy].value for policy in LOSS_BASED) / found[SAME].value if found[SAME].value else math.inf
    measures = tuple(Measure(f"{policy_text(p)}", found[p], "a transfer", 2) for p in POLICIES)
    finding = f"the policies based on loss have at most {share:.2f} of RTX-SAME's expirations in a row"
    return Judgement(Verdict.REPRODUCED if share <= 0.55 else Verdict.MISSED, finding, measures)


def _judge_r6(tables: Tables) -> Judgement:
    times = {b: {p: _mean(tables, "completed_s", p, HIGH_LOSS, b) for p in POLICIES} for b in BUFFERS_KIB}
    worst = all(times[b][SAME].value == max(t.value for t in times[b].values()) for b in BUFFERS_KIB)
    degrade = all(times[BUFFERS_KIB[0]][p].value > times[BUFFERS_KIB[-1]][p].value for p in POLICIES)
    ranks = {b: [policy_text(p) for p in sorted(POLICIES, key=lambda p: -times[b][p].value)][:2] for b in BUFFERS_KIB}
    same = len({tuple(rank) for rank in ranks.values()}) == 1
    measures = tuple(
        Measure(f"{policy_text(p)}, {b} KiB", times[b][p], "s", 1) for b in (16, 256) for p in (SAME, SSTHRESH)
    )
    finding = "; ".join(f"{b} KiB: {' > '.join(rank)} > the rest" for b, rank in ranks.items())
    return Judgement(Verdict.REPRODUCED if worst and degrade and same else Verdict.MISSED, finding, measures)


FIGURE = Figure(
    name="globecom2005-4",
    title="Figure 4: five retransmission policies with a receive buffer of 64 KiB",
    source=transfers.SOURCE,
    sweep=Sweep(TWO_PATHS, points=_points(), runs=transfers.RUNS),
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
        Listing("rates", f"Time for 8 MB by the rate of both paths, 64 KiB, path 2 at {HIGH_LOSS} %", _rates),
    ),
    claims=(
        Claim(
            "R2",
            "With 64 KB, RTX-SAME takes longest, RTX-ASAP next, then CWND, SSTHRESH and LOSSRATE together; the gap of "
            "RTX-SAME grows with the loss.",
            "SAME > ASAP > the rest",
            f"order of the means at {HIGH_LOSS} %; together: within {100 * _TOGETHER:.0f} % of their mean",
            _judge_r2,
        ),
        Claim(
            "R3",
            "RTX-SAME has the most timeouts, then RTX-ASAP; the policies based on loss have the fewest.",
            "SAME > ASAP > the rest",
            f"order of the means at {HIGH_LOSS} %",
            _judge_r3,
        ),
        Claim(
            "R4",
            "The mean time to get a TSN across is highest with RTX-SAME.",
            "SAME highest",
            f"order of the means at {HIGH_LOSS} %",
            _judge_r4,
        ),
        Claim(
            "R5",
            "With path 2 at 10 %, the policies based on loss have about half of RTX-SAME's back-to-back timeouts, or "
            "fewer.",
            "about half or fewer",
            "at most 0.55; counted: expirations of a path's T3 that follow another one, nothing sent on that path "
            "having been acknowledged in between",
            _judge_r5,
        ),
        Claim(
            "R6",
            "The ranking is the same from 16 to 256 KB; all degrade as the buffer shrinks; RTX-SAME stays poor.",
            "same ranking",
            f"order of the two worst means at {HIGH_LOSS} %; the policies based on loss count as one",
            _judge_r6,
        ),
    ),
)
