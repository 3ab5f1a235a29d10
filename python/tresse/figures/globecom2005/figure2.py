"""Figure 2: a lossy path blocks the receive buffer for both paths; and the claim R8."""

from dataclasses import replace
from functools import cache

import matplotlib.figure
import pandas as pd

from tresse import _native, scenarios, traces
from tresse.claims import Claim, Judgement, Measure, NotMeasured
from tresse.evidence import Evidence, at_points
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import SAME, TWO_PATHS
from tresse.metrics import mean
from tresse.plots.sequence import draw_sequence
from tresse.readings import STALL, longest_stall
from tresse.sweep import Point, Sweep
from tresse.tables import Tables
from tresse.traces import Trace

LOSS_PERCENT = 10
"""Loss of path 2, as in the paper's example; path 1 loses 1 %."""
LOSSES_PERCENT = (LOSS_PERCENT, 1)
"""With the second value both paths have the same loss; the difference is the effect of the larger one."""
PAYLOAD_BYTES = 1452
RTO_MIN_S = 1.0
"""A pause shorter than this cannot come from a timeout."""
REPEATED = 2
"""Timeouts in a pause: the paper states that path 2 recovers "through repeated retransmission timeouts"."""


def _point(loss: int) -> Point:
    return transfers.point(
        {"loss_percent": loss},
        {"transport.receive_buffer": "16KiB"},
        transfers.policy_overrides(SAME),
        transfers.loss_overrides(loss),
    )


@cache
def _trace() -> Trace:
    text = _native.trace(scenarios.read(TWO_PATHS), dict(_point(LOSS_PERCENT).overrides), 1, name=TWO_PATHS)
    return traces.parse(text)


def _draw(_: Tables) -> matplotlib.figure.Figure:
    trace = _trace()
    stall = longest_stall(trace)
    assert stall is not None, "a transfer sends more than two packets"
    return draw_sequence(trace.between(stall.start_s - 1.5, stall.end_s + 1.5), "receive buffer 16 KiB, RTX-SAME")


def _stalls(tables: Tables, loss: int) -> pd.DataFrame:
    """Return the longest pause of each run, by seed."""
    found = transfers.rows(tables, loss_percent=loss)
    columns = ["stall_s", "stall_window_bytes", "stall_timeouts_0", "stall_timeouts_1"]
    if not set(columns) <= set(found.columns) or found[columns].isna().any(axis=None):
        raise NotMeasured(f"no trace of a run with path 2 at {loss} %")
    return found.set_index("seed")[columns].sort_index()


def _stalled(stall: pd.Series) -> Evidence:
    """Return whether the longest pause of a run is of the kind that the paper describes."""
    if stall["stall_s"] < RTO_MIN_S or stall["stall_window_bytes"] >= PAYLOAD_BYTES:
        return Evidence.ABSENT
    timeouts = stall["stall_timeouts_1"]
    return Evidence.SHOWN if timeouts >= REPEATED else Evidence.PARTLY if timeouts else Evidence.ABSENT


def _judge_r8(tables: Tables) -> Judgement:
    stalls = _stalls(tables, LOSS_PERCENT)
    found = [_stalled(stall) for _, stall in stalls.iterrows()]
    finding = (
        f"so in {found.count(Evidence.SHOWN)} of {len(found)} runs, with a single timeout of path 2 in "
        f"{found.count(Evidence.PARTLY)}; the longest pause of a run takes {stalls['stall_s'].min():.1f} to "
        f"{stalls['stall_s'].max():.1f} s"
    )
    measures = (
        Measure("longest pause", mean(stalls["stall_s"]), "s", 1),
        Measure("the peer's window in it", mean(stalls["stall_window_bytes"]), "bytes", 0),
        Measure("timeouts of path 2 in it", mean(stalls["stall_timeouts_1"]), "timeouts", 1),
        Measure("timeouts of path 1 in it", mean(stalls["stall_timeouts_0"]), "timeouts", 1),
    )
    return Judgement(at_points(found), finding, measures)


def _listing(tables: Tables) -> pd.DataFrame:
    return pd.concat(
        [_stalls(tables, loss).reset_index().assign(loss_percent=loss) for loss in LOSSES_PERCENT], ignore_index=True
    )


PROFILES = {name: replace(transfers.PROFILES[name], runs=runs) for name, runs in (("quick", 20), ("paper", 100))}

FIGURE = Figure(
    name="globecom2005-2",
    title="Figure 2: a lossy path blocks the receive buffer for both",
    source=transfers.SOURCE,
    sweep=Sweep(TWO_PATHS, points=tuple(map(_point, LOSSES_PERCENT)), profiles=PROFILES, reading=STALL),
    drawings=(
        Drawing(
            "sequence",
            "The longest pause of one run, path 1 (the paper's path 2) losing 10 %: TSNs by path, the peer's window, "
            "and each path's window and flight on the colour of what limited it. Dotted: timeouts. "
            "`tresse-lab timeline` draws this for any trace.",
            _draw,
        ),
    ),
    listings=(
        Listing(
            "stalls",
            "The longest pause of each run without new data on either path: how long it is, the peer's window at its "
            "smallest, and how often the timer of either path expired in it; with the two losses of path 2",
            _listing,
        ),
    ),
    claims=(
        Claim(
            "R8",
            "With a receive buffer of 16 KB and losses of 1 % on path 1 and 10 % on path 2, the peer's window "
            "collapses and both paths stall while path 2 recovers by timeouts.",
            "13.5 s in the paper's example",
            f"the longest pause of every run without new data on either path: at least {RTO_MIN_S:.0f} s, less than "
            f"one chunk of the peer's window, and {REPEATED} timeouts of path 2 or more; weaker: with one timeout, or "
            "in some runs only",
            _judge_r8,
        ),
    ),
)
