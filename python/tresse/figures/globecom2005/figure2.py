"""Figure 2: how a lossy path blocks the receive buffer for both, and the claim R8."""

from functools import cache

import matplotlib.figure

from tresse import _native, scenarios, traces
from tresse.claims import Claim, Judgement, Verdict
from tresse.figures.figure import Drawing, Figure
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import SAME, TWO_PATHS
from tresse.plots.sequence import draw_sequence
from tresse.readings import longest_stall
from tresse.sweep import Sweep
from tresse.tables import Tables
from tresse.traces import Trace

_POINT = transfers.point(
    {"loss_percent": 10},
    {"transport.receive_buffer": "16KiB"},
    transfers.policy_overrides(SAME),
    transfers.loss_overrides(10),
)
PAYLOAD_BYTES = 1452


@cache
def _trace() -> Trace:
    text = _native.trace(scenarios.read(TWO_PATHS), dict(_POINT.overrides), 1, name=TWO_PATHS)
    return traces.parse(text)


def _draw(_: Tables) -> matplotlib.figure.Figure:
    trace = _trace()
    stall = longest_stall(trace)
    return draw_sequence(trace.between(stall.start_s - 1.5, stall.end_s + 1.5), "receive buffer 16 KiB, RTX-SAME")


def _judge_r8(tables: Tables) -> Judgement:
    transfers.rows(tables, loss_percent=10)
    stall = longest_stall(_trace())
    finding = (
        f"in the run with seed 1 both paths send nothing new for {stall.end_s - stall.start_s:.1f} s: the peer's "
        f"window falls to {stall.window_bytes} bytes; timeouts of path 2 meanwhile: {stall.timeouts}"
    )
    good = stall.window_bytes < PAYLOAD_BYTES and stall.timeouts > 0 and stall.end_s - stall.start_s >= 1
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding)


FIGURE = Figure(
    name="globecom2005-2",
    title="Figure 2: a lossy path blocks the receive buffer for both",
    source=transfers.SOURCE,
    sweep=Sweep(TWO_PATHS, points=(_POINT,), profiles=transfers.PROFILES),
    drawings=(
        Drawing(
            "sequence",
            "The longest pause of one run, path 1 (the paper's path 2) losing 10 %: TSNs by path, the peer's window, "
            "and each path's window and flight on the colour of what limited it. Dotted: timeouts. "
            "`tresse-lab timeline` draws this for any trace.",
            _draw,
        ),
    ),
    listings=(),
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
