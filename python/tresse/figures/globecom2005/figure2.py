"""Figure 2: how a lossy path blocks the receive buffer for both, and the claim R8."""

from dataclasses import replace
from functools import cache

import matplotlib.figure
import pandas as pd

from tresse import _native, scenarios, traces
from tresse.claims import Claim, Judgement, NotMeasured, Verdict
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import SAME, TWO_PATHS
from tresse.plots.sequence import draw_sequence
from tresse.readings import STALL, longest_stall
from tresse.sweep import Point, Sweep
from tresse.tables import Tables
from tresse.traces import Trace

LOSS_PERCENT = 10
"""Of path 2, as in the paper's example; path 1 loses 1 %."""
LOSSES_PERCENT = (LOSS_PERCENT, 1)
"""With the other one the paths are alike: what the larger loss adds."""
PAYLOAD_BYTES = 1452


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
    """The longest pause of each run, by seed."""
    found = transfers.rows(tables, loss_percent=loss)
    columns = ["stall_s", "stall_window_bytes", "stall_timeouts_0", "stall_timeouts_1"]
    if not set(columns) <= set(found.columns) or found[columns].isna().any(axis=None):
        raise NotMeasured(f"no trace of a run with path 2 at {loss} %")
    return found.set_index("seed")[columns].sort_index()


def _judge_r8(tables: Tables) -> Judgement:
    stall = _stalls(tables, LOSS_PERCENT).iloc[0]
    finding = (
        f"in the run with seed 1 both paths send nothing new for {stall['stall_s']:.1f} s: the peer's window falls to "
        f"{stall['stall_window_bytes']:.0f} bytes; timeouts of path 2 meanwhile: {stall['stall_timeouts_1']:.0f}"
    )
    good = stall["stall_window_bytes"] < PAYLOAD_BYTES and stall["stall_timeouts_1"] > 0 and stall["stall_s"] >= 1
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding)


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
            "With a receive buffer of 16 KB and 10 % loss on path 2, the peer's window collapses and both paths stall "
            "while path 2 recovers by timeouts.",
            "13.5 s in the paper's example",
            "a pause of at least 1 s without new data on either path, with a timeout on path 2 and less than one chunk "
            "of window",
            _judge_r8,
        ),
    ),
)
