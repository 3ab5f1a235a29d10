"""A handful of points as short simulations: what a change of the stack breaks first, with the thresholds of claims.md.

A figure's axes are cut down to the points, and its own judge reads their tables. What it is to say stands here, and is
never worse than what `expected.toml` expects of the whole row: a row has the worst verdict of all its points. So a row
that is missed may come out at these, and one that is weaker for these points is weaker here: nothing is made easier.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tresse import _native, expected, scenarios
from tresse.claims import Verdict, judge, worst
from tresse.figures import FIGURES
from tresse.figures.figure import Figure
from tresse.figures.globecom2005 import figure3, transfers
from tresse.figures.globecom2010 import figure4 as splitting
from tresse.figures.globecom2010 import figure5 as unordered
from tresse.figures.globecom2010.mechanisms import NR_SPLIT
from tresse.figures.globecom2010.paths import RATE
from tresse.figures.pfldnet2010 import delays
from tresse.figures.pfldnet2010 import figure4 as dissimilar
from tresse.figures.pfldnet2010.delays import FIXED, ROUND_ROBIN, Curve
from tresse.sweep import Point
from tresse.tables import Tables

EXPECTED = Path(__file__).parents[1] / "expected.toml"
SETTLED = {"settle": "9s", "measure": "6s"}
"""Of paths whose buffers fill within a second; the profiles measure longer."""


@cache
def _expected() -> dict[str, expected.Expected]:
    return expected.load(EXPECTED, {claim.id for figure in FIGURES for claim in figure.claims})


def _measured(figure: Figure, points: Iterable[Point], seeds: int, overrides: dict[str, str]) -> Tables:
    text = scenarios.read(figure.sweep.scenario)
    runs = [
        (point, json.loads(_native.run(text, {**overrides, **point.overrides}, seed)))
        for point in points
        for seed in range(1, seeds + 1)
    ]
    return Tables.of(runs)


def _judged(row: str, figure: Figure, tables: Tables, verdict: Verdict) -> None:
    """Return whether the judge of the row says `verdict` of these tables, and the row is not expected to be better."""
    [claim] = [claim for claim in figure.claims if claim.id == row]
    judgement = judge(claim, figure.name, tables).judgement
    assert judgement.verdict is verdict, (judgement.finding, [measure.text() for measure in judgement.measures])
    # Better than published shows at other points only.
    of_row = _expected()[row].verdict
    assert worst([verdict, of_row]) is worst([Verdict.REPRODUCED, of_row]), "a row is no better than its points"


@pytest.mark.parametrize(("row", "mapping", "sigmas"), [("P2", FIXED, (224,)), ("P3", ROUND_ROBIN, (224, 288))])
def test_sigma_that_gives_full_throughput_at_10_75_ms(
    row: str, mapping: str, sigmas: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delays, "SIGMAS_KIB", sigmas)
    points = [delays.point(Curve(75, mapping), sigma) for sigma in sigmas]
    tables = _measured(dissimilar.FIGURE, points, 4, {"measure": "20s"})
    # P2 is missed by what larger buffers give.
    _judged(row, dissimilar.FIGURE, tables, Verdict.REPRODUCED)


def test_what_splitting_keeps_of_the_throughput_with_long_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (splitting._FILLS, splitting.CAPACITIES[-1])
    monkeypatch.setattr(splitting, "CAPACITIES", ends)
    points = [splitting._point(splitting.LEFT, queue, variant) for variant in splitting.VARIANTS for queue in ends]
    # Without the splitting that helps it sinks to about 28 Mbit/s, where 20 are stated.
    _judged("G1", splitting.FIGURE, _measured(splitting.FIGURE, points, 3, SETTLED), Verdict.WEAKER)


def test_throughput_is_linear_in_the_rate_of_path_2(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = replace(RATE, values=unordered._NAMED_MBPS)
    monkeypatch.setattr(unordered, "RATE", rates)
    points = [
        point
        for point in unordered.FIGURE.sweep.points
        if (point.labels["panel"], point.labels["variant"]) == (RATE.name, NR_SPLIT.name)
        and point.labels["value"] in rates.values
    ]
    assert len(points) == 2
    _judged("G6", unordered.FIGURE, _measured(unordered.FIGURE, points, 3, SETTLED), Verdict.REPRODUCED)


def test_two_paths_are_slower_than_one_at_the_highest_loss() -> None:
    loss, rate = transfers.LOSSES_PERCENT[-1], transfers.RATE_MBPS
    points = [figure3._cmt(loss, rate), figure3._alone(rate)]
    _judged("R1", figure3.FIGURE, _measured(figure3.FIGURE, points, 6, {"measure": "3600s"}), Verdict.REPRODUCED)
