"""Evidence: what measurements say about a statement at one point, and the verdict of all points together.

A statement is of one of three kinds: one quantity is higher than another (`higher`), two are the same (`alike`), or one
has a stated value or limit (`near`, `at_least`, `below` and the like). Each is judged by the 95 % interval, not by the
mean alone; quantities are compared seed by seed. With a single run nothing is separated.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeAlias

import pandas as pd

from tresse.claims import TOLERANCE, NotMeasured, Verdict
from tresse.metrics import Mean, mean

Runs: TypeAlias = "pd.Series[float]"
"""A quantity of the runs of one point, by seed."""


class Evidence(IntEnum):
    """Degree to which one point supports a statement, the least first."""

    AGAINST = 0
    """The opposite is so, by the whole interval, and by more than what counts as equal."""
    ABSENT = 1
    """It is not so."""
    PARTLY = 2
    """It is so by the mean and not by the interval, or is smaller than stated."""
    SHOWN = 3
    """It is so, by the whole interval."""


def by_seed(rows: pd.DataFrame, column: str, what: str) -> Runs:
    """A column of the runs of one point, by seed; raises `NotMeasured` when there is none or one has no value."""
    values: Runs = rows.set_index("seed")[column].sort_index()
    if values.empty or values.isna().any():
        raise NotMeasured(f"no {column} of {what}")
    return values


def difference(of: Runs, less: Runs) -> Mean:
    """Difference by which `of` is larger, seed by seed: variants share their seeds."""
    pairs = (of - less).dropna()
    if pairs.empty:
        raise NotMeasured("no seed that both have runs of")
    return mean(pairs)


def gain(of: Runs, over: Runs) -> Mean:
    """The same as a share of the mean of `over`; where that is zero, as it is."""
    scale = abs(float(over.mean())) or 1.0
    return difference(of / scale, over / scale)


def shortfall(of: Runs, under: Runs) -> Mean:
    """Difference by which `of` is smaller, as a share of the mean of the other."""
    found = gain(of, under)
    return Mean(-found.value, found.half_width, found.n)


_ROUNDING = 1e-9
"""A gain up to this is none: runs without chance differ by how sums were rounded."""


def higher(found: Mean, stated: float = 0.0) -> Evidence:
    """Judge whether a gain is positive, and as large as `stated`.

    One that is smaller but separated from none is there in part; so is one that is large enough and not separated. One
    that is neither is nothing: without a stated size, large enough is more than what counts as equal. The opposite has
    to be that large as well: of hundreds of comparisons a few come out reversed by chance.
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
    """Judge whether a quantity is about the stated one."""
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
    """The verdict of a statement that one point without it refutes: a value, a promise, parts of a row."""
    least = min(found)
    if least is Evidence.SHOWN:
        return Verdict.REPRODUCED
    return Verdict.WEAKER if least is Evidence.PARTLY else Verdict.MISSED


def at_points(found: Iterable[Evidence]) -> Verdict:
    """The verdict of an effect over an axis: at some of the points only it is weaker.

    Where the opposite is so at any point, by its interval, the effect does not have the right sign.
    """
    points = list(found)
    if Evidence.AGAINST in points:
        return Verdict.MISSED
    if all(point is Evidence.SHOWN for point in points):
        return Verdict.REPRODUCED
    partly = all(point is Evidence.PARTLY for point in points)
    return Verdict.WEAKER if partly or Evidence.SHOWN in points else Verdict.MISSED


def graded(stated: Verdict, effect: Verdict) -> Verdict:
    """The verdict of a statement with sizes: without them it is weaker as long as the effect is there."""
    if effect is Verdict.MISSED:
        return Verdict.MISSED
    return Verdict.REPRODUCED if stated is effect is Verdict.REPRODUCED else Verdict.WEAKER
