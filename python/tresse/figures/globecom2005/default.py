"""Our preset `cmt` against the best policy of a figure, point by point: how much sooner a file is there.

The preset keeps its own retransmission policies, and its send buffer of 1 MiB; the receive buffer is the figure's.
"""

from collections.abc import Iterable, Mapping

import pandas as pd

from tresse.figures.globecom2005 import transfers
from tresse.metrics import summarise
from tresse.sweep import Label, Point
from tresse.tables import Tables

CMT = "preset cmt"
AIM = 0.97
"""Share of the best policy's throughput that the preset is to reach at every point."""

CAPTION = f"The preset cmt against the best at each point, as throughput; the aim is {100 * AIM:.0f} %"


def point(labels: Mapping[str, Label], *overrides: Mapping[str, str]) -> Point:
    """The point of these labels with the preset in place of a policy."""
    return transfers.point(labels, {"preset": "cmt"}, *overrides)


def against_best(tables: Tables, column: str, by: Iterable[str]) -> pd.DataFrame:
    """One row a point: the best of what `column` tells apart, its time and the preset's, and the throughputs' ratio."""
    keys = list(by)
    times = summarise(transfers.usual(tables).runs, [column, *keys], "completed_s")
    rows = []
    for labels, group in times.groupby(keys, sort=True):
        means = dict(zip(group[column], group["mean"], strict=True))
        ours = means.pop(CMT, None)
        if ours is None or not means:
            continue
        best = min(means, key=lambda name: means[name])
        rows.append(
            {
                **dict(zip(keys, labels, strict=True)),
                "best": best,
                "best_s": means[best],
                "cmt_s": ours,
                "cmt / best": means[best] / ours,
            }
        )
    return pd.DataFrame(rows)
