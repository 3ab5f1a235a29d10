"""Evidence at one point, and verdicts of several."""

import math

import pandas as pd
import pytest

from tresse.claims import NotMeasured, Verdict
from tresse.evidence import (
    Evidence,
    above,
    alike,
    at_least,
    at_most,
    at_points,
    below,
    by_seed,
    difference,
    everywhere,
    gain,
    graded,
    higher,
    near,
)
from tresse.metrics import Mean

AGAINST, ABSENT, PARTLY, SHOWN = Evidence
REPRODUCED, WEAKER, MISSED = Verdict.REPRODUCED, Verdict.WEAKER, Verdict.MISSED
ONE_RUN = math.nan


@pytest.mark.parametrize(
    ("value", "half", "stated", "expected"),
    [
        (0.02, 0.01, 0.0, SHOWN),
        (0.30, 0.01, 0.25, SHOWN),
        (0.20, 0.01, 0.25, PARTLY),
        (0.30, 0.40, 0.25, PARTLY),
        (0.20, 0.40, 0.25, ABSENT),
        (0.06, 0.07, 0.0, PARTLY),
        (0.04, 0.07, 0.0, ABSENT),
        (0.0, 0.0, 0.0, ABSENT),
        (1e-15, 0.0, 0.0, ABSENT),
        (-1e-15, 0.0, 0.0, ABSENT),
        (-0.06, 0.07, 0.0, ABSENT),
        (-0.06, 0.01, 0.0, AGAINST),
        (-0.04, 0.01, 0.0, ABSENT),
        (0.30, ONE_RUN, 0.25, PARTLY),
        (-0.30, ONE_RUN, 0.25, ABSENT),
    ],
)
def test_a_gain_has_to_be_separated_from_none_and_as_large_as_stated(
    value: float, half: float, stated: float, expected: Evidence
) -> None:
    assert higher(Mean(value, half, 4), stated) is expected


@pytest.mark.parametrize(
    ("value", "half", "expected"),
    [
        (19.0, 0.1, SHOWN),
        (19.0, 3.0, PARTLY),
        (18.3, 0.1, PARTLY),
        (18.0, 0.1, ABSENT),
        (20.3, 0.0, ABSENT),
        (19.0, ONE_RUN, PARTLY),
    ],
)
def test_a_value_has_to_be_near_with_its_interval(value: float, half: float, expected: Evidence) -> None:
    assert near(Mean(value, half, 4), 19.2) is expected
    assert alike(Mean(value / 19.2 - 1, half / 19.2, 4)) is expected


def test_a_limit_holds_for_the_interval() -> None:
    assert [at_least(Mean(10, half, 4), 9.9) for half in (0.05, 0.2, ONE_RUN)] == [SHOWN, PARTLY, PARTLY]
    assert [at_most(Mean(10, half, 4), 10.1) for half in (0.05, 0.2, ONE_RUN)] == [SHOWN, PARTLY, PARTLY]
    assert at_least(Mean(10, 0.5, 4), 10.1) is at_most(Mean(10, 0.5, 4), 9.9) is ABSENT


def test_what_is_at_the_limit_is_neither_above_nor_below() -> None:
    assert [above(Mean(10, half, 4), 9.9) for half in (0.05, 0.2, ONE_RUN)] == [SHOWN, PARTLY, PARTLY]
    assert [below(Mean(10, half, 4), 10.1) for half in (0.05, 0.2, ONE_RUN)] == [SHOWN, PARTLY, PARTLY]
    assert above(Mean(10, 0.0, 4), 10) is below(Mean(10, 0.0, 4), 10) is ABSENT


@pytest.mark.parametrize(
    ("points", "parts_verdict", "points_verdict"),
    [
        ([SHOWN, SHOWN], REPRODUCED, REPRODUCED),
        ([SHOWN, PARTLY], WEAKER, WEAKER),
        ([PARTLY, PARTLY], WEAKER, WEAKER),
        ([SHOWN, ABSENT], MISSED, WEAKER),
        ([PARTLY, ABSENT], MISSED, MISSED),
        ([ABSENT, ABSENT], MISSED, MISSED),
        ([SHOWN, AGAINST], MISSED, MISSED),
    ],
)
def test_points_together(points: list[Evidence], parts_verdict: Verdict, points_verdict: Verdict) -> None:
    assert everywhere(points) is parts_verdict
    assert at_points(points) is points_verdict


@pytest.mark.parametrize(
    ("stated", "effect", "expected"),
    [
        (REPRODUCED, REPRODUCED, REPRODUCED),
        (MISSED, REPRODUCED, WEAKER),
        (REPRODUCED, WEAKER, WEAKER),
        (REPRODUCED, MISSED, MISSED),
        (MISSED, MISSED, MISSED),
    ],
)
def test_an_effect_that_is_not_as_large_as_stated_is_weaker(
    stated: Verdict, effect: Verdict, expected: Verdict
) -> None:
    assert graded(stated, effect) is expected


def test_runs_are_compared_seed_by_seed() -> None:
    first = pd.DataFrame({"seed": [3, 1, 2], "rate": [32.0, 11.0, 22.0]})
    second = pd.DataFrame({"seed": [1, 2, 3, 4], "rate": [10.0, 21.0, 31.0, 500.0]})
    of, less = by_seed(first, "rate", "one"), by_seed(second, "rate", "other")
    assert difference(of, less) == Mean(1.0, 0.0, 3)
    with pytest.raises(NotMeasured, match="no seed that both"):
        difference(of, less[less.index == 4])


def test_a_gain_is_a_share_of_what_it_is_over() -> None:
    over = pd.Series([10.0, 30.0], index=[1, 2])
    assert gain(over * 1.5, over).value == pytest.approx(0.5)
    assert gain(over, over * 0).value == 20, "where there is nothing, it is the difference itself"


def test_a_run_without_a_value_is_no_measurement() -> None:
    runs = pd.DataFrame({"seed": [1, 2], "completed_s": [10.0, math.nan]})
    with pytest.raises(NotMeasured, match="no completed_s of one"):
        by_seed(runs, "completed_s", "one")
    with pytest.raises(NotMeasured):
        by_seed(runs[:0], "completed_s", "one")
