"""Our preset `cmt` compared with the best policy of a figure at each point, by the transfer time of a file.

The preset keeps its own retransmission policies and its send buffer of 1 MiB; the receive buffer is the figure's. The
preset does not use loss rates: only the policy `loss_rate` reads the scenario's oracle.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tresse.bound import BoundPath, throughput_bound
from tresse.figures.globecom2005 import transfers
from tresse.metrics import summarise
from tresse.standings import CMT, Standing, best_of
from tresse.sweep import Label, Point
from tresse.tables import Tables

USUAL: Mapping[str, Any] = {"delay_ms": 45, "buffer_kib": 16}
"""Labels of the scenario or the figure that a point does not set itself."""


def point(labels: Mapping[str, Label], *overrides: Mapping[str, str]) -> Point:
    """Return the point with these labels and with the preset instead of a policy."""
    return transfers.point(labels, {"preset": "cmt", "loss_oracle": "false"}, *overrides)


def against_best(
    tables: Tables, column: str, by: Iterable[str], everywhere: Mapping[str, float] | None = None
) -> list[Standing]:
    """Compare at every point of `by`: variants are the values of `column`, and `everywhere` with fixed times in s."""
    keys = list(by)
    times = summarise(transfers.usual(tables).runs, [column, *keys], "completed_s")
    found = []
    for values, group in times.groupby(keys, sort=True):
        # A transfer that did not end has no time.
        means = {name: time for name, time in zip(group[column], group["mean"], strict=True) if not math.isnan(time)}
        ours = means.pop(CMT, None)
        if ours is None or not means:
            continue
        rates = {name: transfers.VOLUME_MBIT / time for name, time in {**means, **(everywhere or {})}.items()}
        labels = {**USUAL, **dict(zip(keys, values, strict=True))}
        found.append(
            Standing(
                f"path 2 loses {labels['loss_percent']} %, {labels['delay_ms']} ms, {labels['buffer_kib']} KiB",
                float(labels["buffer_kib"]),
                *best_of(rates),
                transfers.VOLUME_MBIT / ours,
                _bound_mbps(float(labels["delay_ms"]), int(labels["buffer_kib"])),
            )
        )
    return found


def _bound_mbps(delay_ms: float, buffer_kib: int) -> float:
    path = BoundPath.of(transfers.RATE_MBPS, delay_ms, transfers.PACKET_BYTES, transfers.PAYLOAD_BYTES)
    return throughput_bound([path, path], buffer_kib * 1024)
