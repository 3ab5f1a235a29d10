"""Evidence: the support of measurements for a statement at one point, and the verdict over all points.

A statement has one of three kinds: one quantity is higher than another (`higher`), two are equal (`alike`), or one has
a stated value or limit (`near`, `at_least`, `below` and the like). Each is judged by the 95 % interval, not only by the
mean; quantities are compared seed by seed. A single run has no interval, so it separates nothing.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeAlias

import pandas as pd

from tresse.claims import TOLERANCE, NotMeasured, Verdict
from tresse.metrics import Mean, mean

Runs: TypeAlias = "pd.Series[float]"
"""Values of a quantity in the runs of one point, by seed."""


class Evidence(IntEnum):
    """Degree to which one point supports a statement, in ascending order."""

    AGAINST = 0
    """The opposite holds for the whole interval, by more than the tolerance for equality."""
    ABSENT = 1
    """The statement does not hold."""
    PARTLY = 2
    """The statement holds for the mean but not for the interval, or the effect is smaller than stated."""
    SHOWN = 3
    """The statement holds for the whole interval."""


def by_seed(rows: pd.DataFrame, column: str, what: str) -> Runs:
    """Return a column of the runs of one point, by seed; raise `NotMeasured` if a run or a value is missing."""
    values: Runs = rows.set_index("seed")[column].sort_index()
    if values.empty or values.isna().any():
        raise NotMeasured(f"no {column} of {what}")
    return values


def difference(of: Runs, less: Runs) -> Mean:
    """Return how much larger `of` is than `less`, compared seed by seed, because variants share their seeds."""
    pairs = (of - less).dropna()
    if pairs.empty:
        raise NotMeasured("no seed that both have runs of")
    return mean(pairs)


def gain(of: Runs, over: Runs) -> Mean:
    """Return the difference divided by the mean of `over`; the difference itself if that mean is zero."""
    scale = abs(float(over.mean())) or 1.0
    return difference(of / scale, over / scale)


def shortfall(of: Runs, under: Runs) -> Mean:
    """Return how much smaller `of` is than `under`, divided by the mean of `under`."""
    found = gain(of, under)
    return Mean(-found.value, found.half_width, found.n)


_ROUNDING = 1e-9
"""A gain up to this is zero: runs without randomness differ only by the rounding of sums."""


def higher(found: Mean, stated: float = 0.0) -> Evidence:
    """Judge whether a gain is positive, and as large as `stated`.

    SHOWN: the interval is above zero and the mean is as large as stated. PARTLY: only one of these holds, where the
    mean must also reach the tolerance. ABSENT: neither holds. AGAINST: the interval is below zero and the
    mean is below the negative tolerance, because among hundreds of comparisons a few are reversed by chance.
    """
    if found.low > _ROUNDING:
        return Evidence.SHOWN if found.value >= stated else Evidence.PARTLY
    if found.high < 0 and found.value <= -TOLERANCE:
        return Evidence.AGAINST
    return Evidence.PARTLY if found.value >= max(stated, TOLERANCE) else Evidence.ABSENT


def alike(found: Mean, tolerance: float = TOLERANCE) -> Evidence:
    """Judge whether a gain is zero within the tolerance."""
    return near(Mean(1 + found.value, found.half_width, found.n), 1, tolerance)


def near(found: Mean, wanted: float, tolerance: float = TOLERANCE) -> Evidence:
    """Judge whether a quantity equals `wanted` within the tolerance."""
    return min(at_least(found, wanted * (1 - tolerance)), at_most(found, wanted * (1 + tolerance)))


def at_least(found: Mean, limit: float) -> Evidence:
    """Judge whether a quantity is not below the limit."""
    return _within(found.low >= limit, found.value >= limit)


def at_most(found: Mean, limit: float) -> Evidence:
    """Judge whether a quantity is not above the limit."""
    return _within(found.high <= limit, found.value <= limit)


def below(found: Mean, limit: float) -> Evidence:
    """Judge whether a quantity is below the limit."""
    return _within(found.high < limit, found.value < limit)


def above(found: Mean, limit: float) -> Evidence:
    """Judge whether a quantity is above the limit."""
    return _within(found.low > limit, found.value > limit)


def _within(by_interval: bool, by_mean: bool) -> Evidence:
    return Evidence.SHOWN if by_interval else Evidence.PARTLY if by_mean else Evidence.ABSENT


def everywhere(found: Iterable[Evidence]) -> Verdict:
    """Return the verdict on a statement that must hold at every point: a value, a limit, parts of a row."""
    least = min(found)
    if least is Evidence.SHOWN:
        return Verdict.REPRODUCED
    return Verdict.WEAKER if least is Evidence.PARTLY else Verdict.MISSED


def at_points(found: Iterable[Evidence]) -> Verdict:
    """Return the verdict on an effect along an axis; it is weaker if only some of the points show it.

    It is missed if any point shows the opposite by its interval, because then the effect does not have the right sign.
    """
    points = list(found)
    if Evidence.AGAINST in points:
        return Verdict.MISSED
    if all(point is Evidence.SHOWN for point in points):
        return Verdict.REPRODUCED
    partly = all(point is Evidence.PARTLY for point in points)
    return Verdict.WEAKER if partly or Evidence.SHOWN in points else Verdict.MISSED


def graded(stated: Verdict, effect: Verdict) -> Verdict:
    """Return the verdict on an effect of a stated size; it is weaker if the effect exists without that size."""
    if effect is Verdict.MISSED:
        return Verdict.MISSED
    return Verdict.REPRODUCED if stated is effect is Verdict.REPRODUCED else Verdict.WEAKER
