"""Ranking of the five retransmission policies, and the claims R2 to R6: judges of runs at one rate."""

from collections.abc import Sequence
from functools import partial
from itertools import combinations, pairwise
from typing import cast

import numpy as np
import pandas as pd

from tresse.claims import Judgement, Measure, NotMeasured, worst
from tresse.evidence import Evidence, Runs, alike, at_points, everywhere, gain, higher, shortfall
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import (
    ASAP,
    LOSS_BASED,
    LOSSES_PERCENT,
    POLICIES,
    SAME,
    SSTHRESH,
    policy_text,
)
from tresse.metrics import Mean, mean
from tresse.tables import TIMEOUT_ROWS, Tables

BUFFER_KIB = 64
BUFFERS_KIB = (16, 32, 64, 128, 256)
LOW_LOSS, HIGH_LOSS = 2, 10
"""The two losses of path 2 in percent that are compared if only two are."""
TOGETHER = 0.10
"""The three policies based on loss count as equal within this share."""


def mean_of(tables: Tables, column: str, policy: str, loss: int, buffer_kib: int = BUFFER_KIB) -> Mean:
    """Mean of a column over the transfers with one policy, loss and buffer."""
    return transfers.mean_of(tables, column, policy=policy, loss_percent=loss, buffer_kib=buffer_kib)


def row_of(tables: Tables, policy: str, n: int) -> Mean:
    """Return how often the timer of a path expired for the `n`-th time in a row."""
    return mean_of(tables, f"timeouts_in_row_{n}", policy, HIGH_LOSS)


class _Column(dict[tuple[str, int, int], Runs]):
    """A column of all runs, by policy, loss and buffer; cached because judges read hundreds of points."""

    def __init__(self, tables: Tables, name: str) -> None:
        self._name = name
        labels = ["policy", "loss_percent", "buffer_kib"]
        for point, rows in tables.runs.groupby(labels, sort=False):
            self[cast("tuple[str, int, int]", point)] = rows.set_index("seed")[name].sort_index()

    def at(self, policy: str, loss: int, buffer_kib: int = BUFFER_KIB) -> Runs:
        """Return one point, by seed; raise `NotMeasured` if it has no run or a transfer did not end."""
        found = self.get((policy, loss, buffer_kib))
        if found is None or found.isna().any():
            raise NotMeasured(f"no {self._name} of {policy_text(policy)} at {loss} %, {buffer_kib} KiB")
        return found

    def more(self, above: str, under: str, loss: int, buffer_kib: int = BUFFER_KIB) -> Mean:
        """Return how much more one policy has than another, as a share, compared seed by seed."""
        return gain(self.at(above, loss, buffer_kib), self.at(under, loss, buffer_kib))


def _in_a_row(tables: Tables) -> dict[str, Runs]:
    """Return the T3 expirations that followed another one on the same path without an acknowledgement in between."""
    columns = [_Column(tables, f"timeouts_in_row_{n}") for n in range(2, TIMEOUT_ROWS + 1)]
    return {policy: pd.DataFrame([rows.at(policy, HIGH_LOSS) for rows in columns]).sum() for policy in POLICIES}


def _ranks(found: _Column, loss: int, buffer_kib: int = BUFFER_KIB) -> Evidence:
    """Judge whether SAME has more than ASAP, and ASAP more than each policy based on loss."""
    pairs = [(SAME, ASAP), *((ASAP, policy) for policy in LOSS_BASED)]
    return min(higher(found.more(above, under, loss, buffer_kib)) for above, under in pairs)


def _together(times: _Column, loss: int) -> Evidence:
    """Judge whether the three policies based on loss take the same time."""
    return min(alike(times.more(one, other, loss), TOGETHER) for one, other in combinations(LOSS_BASED, 2))


def _growth(times: _Column, losses: Sequence[int]) -> Mean:
    """Return how much SAME falls further behind the policies based on loss from the smallest loss to the largest.

    The growth is that of a line through the gaps of each seed, as a share of the time of the policies based on loss.
    """
    rest = [
        pd.DataFrame({policy: times.at(policy, loss) for policy in LOSS_BASED}).mean(axis="columns") for loss in losses
    ]
    gaps = pd.DataFrame({loss: times.at(SAME, loss) - other for loss, other in zip(losses, rest, strict=True)}).dropna()
    slopes = np.polyfit(np.array(losses, dtype=float), gaps.to_numpy().T, 1)[0]
    scale = float(np.mean([float(other.mean()) for other in rest]))
    return mean(slopes * (max(losses) - min(losses)) / scale)


def _points_text(found: Sequence[Evidence]) -> str:
    """Describe the number of points that have the order, and of those that have the opposite order."""
    return f"{found.count(Evidence.SHOWN)} of {len(found)} points, against it at {found.count(Evidence.AGAINST)}"


def judge_r2(tables: Tables, losses: Sequence[int] = LOSSES_PERCENT) -> Judgement:
    """SAME takes longest, then ASAP, then the three based on loss together; the gap grows with the loss."""
    high = {policy: mean_of(tables, "completed_s", policy, HIGH_LOSS) for policy in POLICIES}
    best = min(high[policy].value for policy in LOSS_BASED)
    times = _Column(tables, "completed_s")
    ranks = [_ranks(times, loss) for loss in losses]
    together = [_together(times, loss) for loss in losses]
    growth = _growth(times, losses)
    measures = tuple(Measure(f"{policy_text(p)}, {HIGH_LOSS} %", high[p], "s", 1) for p in POLICIES)
    finding = (
        f"at {HIGH_LOSS} % RTX-SAME takes {high[SAME].value / best:.2f} times, RTX-ASAP {high[ASAP].value / best:.2f} "
        f"times as long as the best; the order holds at {_points_text(ranks)}; the rest is together at "
        f"{together.count(Evidence.SHOWN)}; the gap of RTX-SAME grows by {100 * growth.value:.0f} ± "
        f"{100 * growth.half_width:.0f} % of their time"
    )
    verdict = worst([at_points(ranks), at_points(together), everywhere([higher(growth)])])
    return Judgement(verdict, finding, measures)


def _judge_order(tables: Tables, column: str, unit: str, points: Sequence[Evidence]) -> Judgement:
    found = {policy: mean_of(tables, column, policy, HIGH_LOSS) for policy in POLICIES}
    measures = tuple(Measure(f"{policy_text(p)}, {HIGH_LOSS} %", found[p], unit, 1) for p in POLICIES)
    order = " > ".join(policy_text(p) for p in sorted(POLICIES, key=lambda p: -found[p].value))
    finding = f"the order holds at {_points_text(points)}; at {HIGH_LOSS} %: {order}"
    return Judgement(at_points(points), finding, measures)


def judge_r3(tables: Tables, losses: Sequence[int] = LOSSES_PERCENT) -> Judgement:
    """SAME has the most timeouts, then ASAP."""
    found = _Column(tables, "timeouts")
    return _judge_order(tables, "timeouts", "timeouts", [_ranks(found, loss) for loss in losses])


def judge_r4(tables: Tables, losses: Sequence[int] = LOSSES_PERCENT) -> Judgement:
    """A TSN takes longest with SAME."""
    others = [policy for policy in POLICIES if policy != SAME]
    found = _Column(tables, "tsn_ms")
    points = [min(higher(found.more(SAME, other, loss)) for other in others) for loss in losses]
    return _judge_order(tables, "tsn_ms", "ms", points)


def judge_r5(tables: Tables) -> Judgement:
    """The policies based on loss have about half of the timeouts in a row that SAME has."""
    found = _in_a_row(tables)
    fewer = {policy: shortfall(found[policy], found[SAME]) for policy in LOSS_BASED}
    least = min(fewer.values(), key=lambda share: share.value)
    measures = tuple(Measure(f"{policy_text(p)}", mean(found[p]), "a transfer", 2) for p in POLICIES)
    finding = (
        f"the policies based on loss have at most {1 - least.value:.2f} ± {least.half_width:.2f} of RTX-SAME's "
        "expirations in a row"
    )
    return Judgement(everywhere(higher(share, 1 - ABOUT_HALF) for share in fewer.values()), finding, measures)


ABOUT_HALF = 0.55
"""One half, with a tolerance of a tenth of it."""


def judge_r6(tables: Tables, losses: Sequence[int] = LOSSES_PERCENT) -> Judgement:
    """The ranking is the same with every receive buffer, and all take longer the smaller it is."""
    times = _Column(tables, "completed_s")
    ranks = {b: [_ranks(times, loss, b) for loss in losses] for b in BUFFERS_KIB}
    slower = [
        [
            higher(gain(_over(times, policy, losses, small), _over(times, policy, losses, large)))
            for small, large in pairwise(BUFFERS_KIB)
        ]
        for policy in POLICIES
    ]
    measures = tuple(
        Measure(f"{policy_text(p)}, {b} KiB, {HIGH_LOSS} %", mean_of(tables, "completed_s", p, HIGH_LOSS, b), "s", 1)
        for b in (16, 256)
        for p in (SAME, ASAP, SSTHRESH)
    )
    steps = [step for by_policy in slower for step in by_policy]
    finding = (
        "the order holds at "
        + "; ".join(f"{buffer} KiB: {_points_text(points)}" for buffer, points in ranks.items())
        + f"; a smaller buffer takes longer at {_points_text(steps)}"
    )
    verdict = worst([*map(at_points, ranks.values()), *map(at_points, slower)])
    return Judgement(verdict, finding, measures)


def _over(times: _Column, policy: str, losses: Sequence[int], buffer_kib: int) -> Runs:
    """Return the sum of the times of all losses."""
    by_loss = {loss: times.at(policy, loss, buffer_kib) for loss in losses}
    return pd.DataFrame(by_loss).sum(axis="columns", skipna=False).dropna()


JUDGES: dict[str, transfers.Judge] = {"R2": judge_r2, "R3": judge_r3, "R4": judge_r4, "R5": judge_r5, "R6": judge_r6}
"""Judges by claim."""
ELSEWHERE: dict[str, transfers.Judge] = {
    **JUDGES,
    "R2": partial(judge_r2, losses=(LOW_LOSS, HIGH_LOSS)),
    "R3": partial(judge_r3, losses=(LOW_LOSS, HIGH_LOSS)),
    "R4": partial(judge_r4, losses=(LOW_LOSS, HIGH_LOSS)),
    "R6": partial(judge_r6, losses=(HIGH_LOSS,)),
}
"""Judges for other rates, at which there are fewer points."""
