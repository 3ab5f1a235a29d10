"""Means and their intervals, against worked numbers."""

import math

import pandas as pd
import pytest

from tresse.metrics import mean, summarise


def test_the_interval_is_students() -> None:
    # Four runs: standard deviation 2.582, t(0.975, 3) = 3.182, so 3.182 * 2.582 / 2 = 4.108.
    found = mean([2.0, 4.0, 6.0, 8.0])
    assert found.value == 5.0
    assert found.half_width == pytest.approx(4.108, abs=0.001)
    assert (found.low, found.high) == pytest.approx((0.892, 9.108), abs=0.001)
    assert found.n == 4


def test_one_run_has_no_interval() -> None:
    found = mean([3.0])
    assert math.isnan(found.half_width)
    assert found.text("ms", 1) == "3.0 ms (n = 1)"


def test_equal_runs_have_an_empty_interval() -> None:
    assert mean([7.0, 7.0, 7.0]).half_width == 0.0


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_is_no_sample_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="a mean needs"):
        mean(values)


def test_text_carries_unit_interval_and_n() -> None:
    assert mean([2.0, 4.0, 6.0, 8.0]).text("Mbit/s") == "5.00 ± 4.11 Mbit/s (n = 4)"


def test_summaries_have_a_row_for_each_point() -> None:
    table = pd.DataFrame({"sigma": [1, 1, 2, 2], "rate": [1.0, 3.0, 5.0, 5.0]})
    summary = summarise(table, ["sigma"], "rate")
    assert summary["sigma"].tolist() == [1, 2]
    assert summary["mean"].tolist() == [2.0, 5.0]
    assert summary["n"].tolist() == [2, 2]
    assert summary["half_width"].tolist() == pytest.approx([12.706, 0.0], abs=0.001)


def test_a_summary_of_nothing_has_its_columns() -> None:
    empty = pd.DataFrame({"sigma": [], "rate": []})
    assert summarise(empty, ["sigma"], "rate").columns.tolist() == ["sigma", "mean", "half_width", "n"]
