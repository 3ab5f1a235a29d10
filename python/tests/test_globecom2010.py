"""The judges of GLOBECOM 2010 on throughputs made up to reach each verdict, and what the sweeps are made of."""

from collections.abc import Callable

import pandas as pd
import pytest

from tresse import _native, scenarios
from tresse.claims import Verdict, judge
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, figure4, figure5, figure6, ordered, paths
from tresse.figures.globecom2010.mechanisms import CMT
from tresse.figures.globecom2010.paths import ERRORS, RATE
from tresse.sweep import Point
from tresse.tables import Tables

FIGURES = (figure4.FIGURE, figure5.FIGURE, figure6.FIGURE, ordered.FIGURE_7, ordered.FIGURE_8)
Throughput = Callable[[Point], float]


def _tables(figure: Figure, throughput: Throughput) -> Tables:
    empty = pd.DataFrame()
    rows = [
        {**point.labels, "seed": seed, "throughput_mbps": throughput(point)}
        for point in figure.sweep.points
        for seed in (1, 2)
    ]
    return Tables(pd.DataFrame(rows), empty, empty, empty)


def _verdicts(figure: Figure, throughput: Throughput) -> dict[str, Verdict]:
    tables = _tables(figure, throughput)
    return {claim.id: judge(claim, figure.name, tables).judgement.verdict for claim in figure.claims}


def _is(point: Point, *words: str) -> bool:
    return all(word in str(point.labels["variant"]) for word in words)


def _capacity(point: Point) -> float:
    """What both paths carry; of damaged packets nothing."""
    value = float(point.labels["value"])
    if point.labels["panel"] == RATE.name:
        return (100 + value) * 0.968
    return ERRORS.bound_mbps(value, ERRORS.buffers) if point.labels["panel"] == ERRORS.name else 193.6


def _splitting_as_published(point: Point) -> float:
    if float(point.labels["value"]) < 100:
        return 106
    helps = {figure4.LEFT: ("receiver", "both"), figure4.RIGHT: ("sender", "both")}
    good = helps.get(str(point.labels["panel"]), ("sender", "receiver", "both"))
    return 106 if any(_is(point, name) for name in good) else 20


def _unordered_as_published(point: Point) -> float:
    full, value = _capacity(point), float(point.labels["value"])
    split = str(point.labels["variant"]).startswith("split")
    if point.labels["panel"] == RATE.name:
        share = {(True, True): 1.0, (False, True): 0.7, (False, False): 0.05 + value / 200}
        return full * share.get((split, _is(point, "NR-SACK")), 0.01 + value / 300)
    if point.labels["panel"] == ERRORS.name:
        plain = 1 - (0.3 if _is(point, "NR-SACK") else 0.95) * value / 5e-6
        return full * (0.98 if _is(point, "reports") else plain)
    return full * (0.6 if _is(point, "no smart") else 0.9 if _is(point, "NR-SACK") else 0.5)


def _ordered_as_published(point: Point) -> float:
    full, value = _capacity(point), float(point.labels["value"])
    if point.labels["panel"] == RATE.name:
        decays = value <= 1 and not _is(point, "split, rescheduling")
        return full * (0.3 if decays else 1)
    if point.labels["panel"] == ERRORS.name:
        return full * (1 if _is(point, "reports") else 1 - 0.5 * value / 5e-6)
    return full * (0.7 if _is(point, "no smart") else 0.9)


@pytest.mark.parametrize(
    ("figure", "throughput"),
    [
        (figure4.FIGURE, _splitting_as_published),
        (figure5.FIGURE, _unordered_as_published),
        (ordered.FIGURE_7, _ordered_as_published),
        (ordered.FIGURE_8, _ordered_as_published),
    ],
)
def test_what_the_paper_says_is_reproduced(figure: Figure, throughput: Throughput) -> None:
    assert set(_verdicts(figure, throughput).values()) == {Verdict.REPRODUCED}


@pytest.mark.parametrize("figure", [figure4.FIGURE, figure5.FIGURE, figure6.FIGURE, ordered.FIGURE_7])
def test_a_stack_to_which_mechanisms_make_no_difference_misses(figure: Figure) -> None:
    indifferent = _verdicts(figure, _capacity)
    assert {verdict for claim, verdict in indifferent.items() if claim != "G6"} <= {Verdict.MISSED, Verdict.REPRODUCED}
    assert Verdict.MISSED in indifferent.values()


def test_nr_sack_that_suffices_alone_is_better() -> None:
    def better(point: Point) -> float:
        alone = point.labels["panel"] == RATE.name and _is(point, "no split", "NR-SACK")
        return _capacity(point) if alone else _unordered_as_published(point)

    assert _verdicts(figure5.FIGURE, better)["G5"] is Verdict.BETTER


def test_pooling_needs_splitting() -> None:
    def pooled(point: Point) -> float:
        if float(point.labels["value"]) == 100:
            return 192 if str(point.labels["variant"]).startswith("split") else 175
        return _capacity(point) * (1.0 if str(point.labels["variant"]).startswith("split") else 0.9)

    assert set(_verdicts(figure6.FIGURE, pooled).values()) == {Verdict.REPRODUCED}


def test_verdicts_under_other_settings_stand_beside_those_of_the_figure() -> None:
    def helped(point: Point) -> float:
        if float(point.labels["value"]) != 100:
            return _capacity(point)
        split = str(point.labels["variant"]).startswith("split")
        if _is(point, "primary path first"):
            return 192 if split else 175
        return 180 if split else 150

    listing = next(listing for listing in figure6.FIGURE.listings if listing.name == "settings")
    table = listing.make(_tables(figure6.FIGURE, helped))
    assert list(table["claim"]) == ["G10", "G10"]
    assert list(table["verdict"]) == [Verdict.MISSED, Verdict.REPRODUCED]
    assert "primary path first" in table["setting"][1]


@pytest.mark.parametrize("figure", [figure5.FIGURE, figure6.FIGURE, ordered.FIGURE_7, ordered.FIGURE_8])
def test_every_point_that_a_judge_needs_is_measured_under_the_other_settings(figure: Figure) -> None:
    listing = next(listing for listing in figure.listings if listing.name == "settings")
    table = listing.make(_tables(figure, _capacity))
    assert set(table["verdict"]) <= {Verdict.MISSED, Verdict.REPRODUCED}


def test_the_preset_is_compared_with_the_best_variant_at_every_point() -> None:
    tables = _tables(figure5.FIGURE, lambda point: 90.0 if _is(point, CMT.name) else _unordered_as_published(point))
    points = default.against_best(tables, figure5.MIX)
    assert len(points) == sum(len(panel.values) for panel in paths.PANELS)
    assert (points[0].where, points[0].best) == ("path 2: 0.5 Mbit/s", "split, NR-SACK")
    assert points[0].share == pytest.approx(90.0 / (100.5 * 0.968))


def test_a_point_without_a_run_is_not_measured() -> None:
    tables = _tables(figure5.FIGURE, _unordered_as_published)
    tables = Tables(tables.runs[tables.runs["value"] != 1], tables.streams, tables.paths, tables.samples)
    assert judge(figure5.FIGURE.claims[0], "", tables).judgement.verdict is Verdict.NOT_MEASURED


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_point_is_a_scenario_of_its_own(figure: Figure) -> None:
    text = scenarios.read(figure.sweep.scenario)
    variants = {str(point.labels["variant"]): point for point in figure.sweep.points}
    resolved = {_native.resolve(text, dict(point.overrides)) for point in variants.values()}
    assert len(resolved) == len(variants), "two variants are the same settings"
