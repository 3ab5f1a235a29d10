"""Means with confidence intervals.

Every number in the lab's reports is a mean over runs that differ only in their seed, with a Student-t interval and the
number of runs.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over `n` runs: the true one lies within `value` ± `half_width` with 95 % confidence.

    With a single run there is no interval, and `half_width` is nan.
    """

    value: float
    half_width: float
    n: int

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + self.half_width

    def text(self, unit: str, digits: int = 2) -> str:
        """Print as "19.20 ± 0.01 Mbit/s (n = 24)"."""
        spread = "" if math.isnan(self.half_width) else f" ± {self.half_width:.{digits}f}"
        return f"{self.value:.{digits}f}{spread} {unit} (n = {self.n})"


def mean(values: Iterable[float], confidence: float = CONFIDENCE) -> Mean:
    """Return the mean of independent runs with its Student-t interval.

    Raises `ValueError` if there are no values or one of them is not a number.
    """
    sample = np.asarray(list(values), dtype=float)
    if sample.size == 0:
        raise ValueError("a mean needs at least one run")
    if not np.isfinite(sample).all():
        raise ValueError("a mean needs finite values")
    if sample.size == 1:
        return Mean(float(sample[0]), math.nan, 1)
    standard_error = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    quantile = float(stats.t.ppf((1 + confidence) / 2, sample.size - 1))
    return Mean(float(sample.mean()), quantile * standard_error, int(sample.size))


def summarise(table: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Return one row for each combination of `by`: columns `mean`, `half_width` and `n` of `column`.

    Runs without a value are left out, which `n` shows: a stream without messages, for example, has no delay.
    """
    rows = []
    for labels, group in table.dropna(subset=[column]).groupby(list(by), sort=True):
        found = mean(group[column])
        keys = dict(zip(by, labels, strict=True))
        rows.append({**keys, "mean": found.value, "half_width": found.half_width, "n": found.n})
    return pd.DataFrame(rows, columns=[*by, "mean", "half_width", "n"])
