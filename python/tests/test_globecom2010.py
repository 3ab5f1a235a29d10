"""The judges of GLOBECOM 2010 on throughputs made up to reach each verdict, and what the sweeps are made of."""

from collections.abc import Callable

import pandas as pd
import pytest

from tresse import _native, scenarios
from tresse.claims import Verdict, judge
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, figure4, figure5, figure6, ordered, paths
from tresse.figures.globecom2010.mechanisms import CMT
from tresse.figures.globecom2010.paths import DELAY, ERRORS, RATE
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
    """Capacity of both paths; damaged packets carry nothing."""
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
        alone = 1.0 if value == 100 else 0.7
        share = {(True, True): 1.0, (False, True): alone, (False, False): 0.05 + value / 200}
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


def _verdict(figure: Figure, claim: str, throughput: Throughput) -> Verdict:
    return _verdicts(figure, throughput)[claim]


@pytest.mark.parametrize(
    ("claim", "panel", "split", "value", "mbps", "verdict"),
    [
        # What is to keep the throughput loses it somewhere; at the largest φ it is still more than without.
        ("G1", figure4.LEFT, "receiver", 60, 90, Verdict.WEAKER),
        ("G1", figure4.LEFT, "both", 200, 60, Verdict.WEAKER),
        ("G1", figure4.LEFT, "both", 200, 20, Verdict.MISSED),
        ("G2", figure4.RIGHT, "sender", 200, 15, Verdict.MISSED),
        ("G3", figure4.MIDDLE, "receiver", 20, 90, Verdict.WEAKER),
        # Smaller queues than one bandwidth-delay product leave the link idle after each loss.
        ("G3", figure4.MIDDLE, "receiver", 10, 90, Verdict.REPRODUCED),
        # What is to sink does so by less, or not at all.
        ("G1", figure4.LEFT, "none", 200, 40, Verdict.WEAKER),
        ("G1", figure4.LEFT, "sender", 200, 106, Verdict.MISSED),
        ("G2", figure4.RIGHT, "receiver", 200, 106, Verdict.MISSED),
        ("G3", figure4.MIDDLE, "none", 200, 106, Verdict.MISSED),
    ],
)
def test_each_curve_of_figure_4_can_miss_it(
    claim: str, panel: str, split: str, value: float, mbps: float, verdict: Verdict
) -> None:
    def but_for_one(point: Point) -> float:
        labels = point.labels
        one = (labels["panel"], labels["variant"], labels["value"]) == (panel, f"split {split}", value)
        return mbps if one else _splitting_as_published(point)

    assert _verdict(figure4.FIGURE, claim, but_for_one) is verdict


def one_curve(published: Throughput, panel: paths.Panel, value: float, name: str, mbps: float) -> Throughput:
    """As published, but for one point."""

    def found(point: Point) -> float:
        labels = point.labels
        one = (labels["panel"], labels["variant"], labels["value"]) == (panel.name, name, value)
        return mbps if one else published(point)

    return found


def verdict_of(figure: Figure, claim: str, tables: Tables) -> Verdict:
    [found] = [claim_ for claim_ in figure.claims if claim_.id == claim]
    return judge(found, figure.name, tables).judgement.verdict


def unsure(tables: Tables, panel: paths.Panel, value: float, name: str, percent: float) -> Tables:
    """The tables with one point so much higher in the first run and lower in the second."""
    runs = tables.runs.copy()
    one = (runs["panel"] == panel.name) & (runs["variant"] == name) & (runs["value"] == value)
    for seed, sign in ((1, 1), (2, -1)):
        runs.loc[one & (runs["seed"] == seed), "throughput_mbps"] *= 1 + sign * percent / 100
    return Tables(runs, tables.streams, tables.paths, tables.samples)


@pytest.mark.parametrize(
    ("mbps", "verdict"),
    [(9.0, Verdict.REPRODUCED), (30.0, Verdict.WEAKER), (97.768, Verdict.MISSED), (100.0, Verdict.MISSED)],
)
def test_g4_is_about_1_mbps(mbps: float, verdict: Verdict) -> None:
    neither = one_curve(_unordered_as_published, RATE, 1, "no split, SACK", mbps)
    assert _verdict(figure5.FIGURE, "G4", neither) is verdict


def test_g4_is_judged_by_the_interval() -> None:
    tables = unsure(_tables(figure5.FIGURE, _unordered_as_published), RATE, 1, "no split, SACK", 1000)
    assert verdict_of(figure5.FIGURE, "G4", tables) is Verdict.WEAKER


@pytest.mark.parametrize(
    ("rate", "verdict"), [(10, Verdict.MISSED), (100, Verdict.MISSED), (50, Verdict.WEAKER), (0.5, Verdict.WEAKER)]
)
def test_each_rate_of_g6(rate: float, verdict: Verdict) -> None:
    slow = one_curve(_unordered_as_published, RATE, rate, "split, NR-SACK", 0.94 * (100 + rate) * 0.968)
    assert _verdict(figure5.FIGURE, "G6", slow) is verdict
    tables = unsure(_tables(figure5.FIGURE, _unordered_as_published), RATE, rate, "split, NR-SACK", 4)
    assert verdict_of(figure5.FIGURE, "G6", tables) is Verdict.WEAKER


@pytest.mark.parametrize(
    ("name", "mbps", "verdict"),
    [
        ("no split, SACK", 40.0, Verdict.WEAKER),
        ("split, SACK", 40.0, Verdict.WEAKER),
        ("no split, SACK", 150.0, Verdict.MISSED),
        ("no split, NR-SACK", 9.0, Verdict.MISSED),
        ("split, NR-SACK", 9.0, Verdict.MISSED),
        ("split, NR-SACK", 10.5, Verdict.WEAKER),
        ("split, NR-SACK", 100.0, Verdict.WEAKER),
    ],
)
def test_each_curve_of_g7(name: str, mbps: float, verdict: Verdict) -> None:
    found = one_curve(_unordered_as_published, ERRORS, 5e-6, name, mbps)
    assert _verdict(figure5.FIGURE, "G7", found) is verdict


@pytest.mark.parametrize("split", ["no split", "split"])
@pytest.mark.parametrize(
    ("reports", "mbps", "verdict"),
    [(", drop reports", 160.0, Verdict.WEAKER), (", drop reports", 120.0, Verdict.MISSED), ("", 187.0, Verdict.MISSED)],
)
def test_each_curve_of_g8(split: str, reports: str, mbps: float, verdict: Verdict) -> None:
    found = one_curve(_unordered_as_published, ERRORS, 5e-6, f"{split}, NR-SACK{reports}", mbps)
    assert _verdict(figure5.FIGURE, "G8", found) is verdict


@pytest.mark.parametrize("split", ["no split", "split"])
@pytest.mark.parametrize(
    ("curve", "delay", "share", "verdict"),
    [
        # Published is 0.9 with smart fast retransmission, 0.6 without, 0.5 without NR-SACK.
        ("NR-SACK, no smart FR", 100, 0.87, Verdict.WEAKER),
        ("NR-SACK, no smart FR", 100, 0.9, Verdict.MISSED),
        ("NR-SACK, no smart FR", 100, 0.95, Verdict.MISSED),
        ("NR-SACK, no smart FR", 10, 0.9, Verdict.REPRODUCED),
        ("NR-SACK, no smart FR", 10, 0.99, Verdict.WEAKER),
        ("SACK", 10, 0.99, Verdict.WEAKER),
        ("SACK", 100, 0.99, Verdict.WEAKER),
    ],
)
def test_each_curve_of_g9(split: str, curve: str, delay: float, share: float, verdict: Verdict) -> None:
    found = one_curve(_unordered_as_published, DELAY, delay, f"{split}, {curve}", share * 193.6)
    assert _verdict(figure5.FIGURE, "G9", found) is verdict


def test_a_gain_of_g9_that_is_not_separated_is_weaker() -> None:
    tables = unsure(_tables(figure5.FIGURE, _unordered_as_published), DELAY, 100, "split, NR-SACK, no smart FR", 30)
    assert verdict_of(figure5.FIGURE, "G9", tables) is Verdict.WEAKER


def test_what_never_had_the_throughput_does_not_sink() -> None:
    def always_poor(point: Point) -> float:
        return 20 if _is(point, "none") else _splitting_as_published(point)

    assert _verdict(figure4.FIGURE, "G1", always_poor) is Verdict.WEAKER


@pytest.mark.parametrize("figure", [figure4.FIGURE, figure5.FIGURE, figure6.FIGURE, ordered.FIGURE_7])
def test_a_stack_to_which_mechanisms_make_no_difference_misses(figure: Figure) -> None:
    indifferent = _verdicts(figure, _capacity)
    assert {verdict for claim, verdict in indifferent.items() if claim != "G6"} <= {Verdict.MISSED, Verdict.REPRODUCED}
    assert Verdict.MISSED in indifferent.values()


def _alike_curves(point: Point, name: str, other: str) -> float:
    """As published, but for one curve that is as another."""
    if point.labels["panel"] != RATE.name or point.labels["variant"] != name:
        return _unordered_as_published(point)
    return _unordered_as_published(Point({**point.labels, "variant": other}, {}))


@pytest.mark.parametrize(
    ("name", "other", "verdict"),
    [
        # NR-SACK that suffices alone improves by more than somewhat.
        ("no split, NR-SACK", "split, NR-SACK", Verdict.WEAKER),
        ("no split, NR-SACK", "no split, SACK", Verdict.MISSED),
        ("split, SACK", "no split, SACK", Verdict.MISSED),
        ("split, SACK", "split, NR-SACK", Verdict.MISSED),
    ],
)
def test_the_order_of_g5(name: str, other: str, verdict: Verdict) -> None:
    assert _verdict(figure5.FIGURE, "G5", lambda point: _alike_curves(point, name, other)) is verdict


@pytest.mark.parametrize(
    ("name", "mbps", "verdict"),
    [("no split, NR-SACK", 145.0, Verdict.WEAKER), ("split, SACK", 100.0, Verdict.MISSED)],
)
def test_one_rate_of_g5(name: str, mbps: float, verdict: Verdict) -> None:
    """NR-SACK as good as both at one rate is not somewhat there; splitting better than neither is the wrong sign."""
    found = one_curve(_unordered_as_published, RATE, 50, name, mbps)
    assert _verdict(figure5.FIGURE, "G5", found) is verdict


def test_pooling_needs_splitting() -> None:
    def pooled(point: Point) -> float:
        if float(point.labels["value"]) == 100:
            return 192 if str(point.labels["variant"]).startswith("split") else 175
        return _capacity(point) * (1.0 if str(point.labels["variant"]).startswith("split") else 0.9)

    assert set(_verdicts(figure6.FIGURE, pooled).values()) == {Verdict.REPRODUCED}


@pytest.mark.parametrize("figure", [ordered.FIGURE_7, ordered.FIGURE_8])
@pytest.mark.parametrize("rate", [0.5, 1])
@pytest.mark.parametrize(
    ("name", "mbps", "verdict"),
    [
        # What path 1 carries alone is 96.8 Mbit/s; without rescheduling 29 are published here.
        ("split, rescheduling", 80.0, Verdict.WEAKER),
        ("split, rescheduling", 20.0, Verdict.MISSED),
        ("no split, no rescheduling", 97.0, Verdict.WEAKER),
        ("split, no rescheduling", 97.0, Verdict.WEAKER),
        ("split, no rescheduling", 105.0, Verdict.MISSED),
        ("no split, rescheduling", 97.0, Verdict.REPRODUCED),
    ],
)
def test_each_curve_of_g12(figure: Figure, rate: float, name: str, mbps: float, verdict: Verdict) -> None:
    assert _verdict(figure, "G12", one_curve(_ordered_as_published, RATE, rate, name, mbps)) is verdict


def test_a_path_that_stalls_in_one_run_of_two_leaves_g12_weaker() -> None:
    tables = unsure(_tables(ordered.FIGURE_8, _ordered_as_published), RATE, 1, "split, rescheduling", 55)
    assert verdict_of(ordered.FIGURE_8, "G12", tables) is Verdict.WEAKER


@pytest.mark.parametrize("figure", [ordered.FIGURE_7, ordered.FIGURE_8])
@pytest.mark.parametrize("split", ["no split", "split"])
@pytest.mark.parametrize(
    ("name", "error_rate", "mbps", "verdict"),
    [
        # 193.6 Mbit/s without errors, half of that without reports at 5e-6.
        ("rescheduling, drop reports", 1e-6, 150.0, Verdict.WEAKER),
        ("rescheduling, drop reports", 5e-6, 150.0, Verdict.WEAKER),
        ("rescheduling, drop reports", 5e-6, 90.0, Verdict.MISSED),
        ("rescheduling", 5e-6, 188.0, Verdict.MISSED),
    ],
)
def test_each_curve_of_g13(
    figure: Figure, split: str, name: str, error_rate: float, mbps: float, verdict: Verdict
) -> None:
    found = one_curve(_ordered_as_published, ERRORS, error_rate, f"{split}, {name}", mbps)
    assert _verdict(figure, "G13", found) is verdict


def test_g13_is_judged_by_the_interval() -> None:
    tables = _tables(ordered.FIGURE_8, _ordered_as_published)
    by_chance = unsure(tables, ERRORS, 5e-6, "split, rescheduling, drop reports", 15)
    assert verdict_of(ordered.FIGURE_8, "G13", by_chance) is Verdict.WEAKER


@pytest.mark.parametrize("figure", [ordered.FIGURE_7, ordered.FIGURE_8])
@pytest.mark.parametrize("split", ["no split", "split"])
@pytest.mark.parametrize("delay", DELAY.values)
def test_each_delay_of_g14(figure: Figure, split: str, delay: float) -> None:
    # 0.9 of both paths is published with smart fast retransmission, 0.7 without.
    def at_one(mbps: float) -> Verdict:
        name = f"{split}, rescheduling, no smart FR"
        return _verdict(figure, "G14", one_curve(_ordered_as_published, DELAY, delay, name, mbps))

    apart = delay > 1
    assert at_one(0.9 * 193.6) is (Verdict.WEAKER if apart else Verdict.REPRODUCED), "no gain at one delay"
    assert at_one(0.95 * 193.6) is (Verdict.MISSED if apart else Verdict.REPRODUCED), "the wrong sign at one delay"


def test_gains_of_g14_that_chance_makes_are_none() -> None:
    def hardly(point: Point) -> float:
        return 100.0 if _is(point, "no smart") else 102.0

    tables = _tables(ordered.FIGURE_7, hardly)
    noise = tables.runs["variant"].str.contains("no smart") * (0.2 * tables.runs["seed"] - 0.3)
    runs = tables.runs.assign(throughput_mbps=tables.runs["throughput_mbps"] * (1 + noise))
    by_chance = Tables(runs, tables.streams, tables.paths, tables.samples)
    assert verdict_of(ordered.FIGURE_7, "G14", by_chance) is Verdict.MISSED


def _pooled_errors(point: Point) -> float:
    """Splitting gains a tenth, and the best curves are those with drop reports."""
    split = str(point.labels["variant"]).startswith("split")
    return (110.0 if split else 100.0) * (1.2 if _is(point, "reports") else 1.0)


@pytest.mark.parametrize("error_rate", ERRORS.values)
def test_each_error_rate_of_g11(error_rate: float) -> None:
    def at_one(mbps: float) -> Verdict:
        found = one_curve(_pooled_errors, ERRORS, error_rate, "no split, NR-SACK, drop reports", mbps)
        return _verdict(figure6.FIGURE, "G11", found)

    assert at_one(120.0) is Verdict.REPRODUCED
    assert at_one(132.0) is Verdict.WEAKER, "no gain at one error rate"
    assert at_one(140.0) is Verdict.MISSED, "the wrong sign at one error rate"
    tables = _tables(figure6.FIGURE, _pooled_errors)
    by_chance = unsure(tables, ERRORS, error_rate, "no split, NR-SACK, drop reports", 9)
    assert verdict_of(figure6.FIGURE, "G11", by_chance) is Verdict.WEAKER


def test_splitting_that_gains_nowhere_misses_g11() -> None:
    assert _verdict(figure6.FIGURE, "G11", _capacity) is Verdict.MISSED


@pytest.mark.parametrize(
    ("without", "with_split", "pooled", "plain"),
    [
        (175, 192, Verdict.REPRODUCED, Verdict.MISSED),
        (192, 192, Verdict.MISSED, Verdict.REPRODUCED),
        (150, 192, Verdict.WEAKER, Verdict.MISSED),
        (170, 180, Verdict.WEAKER, Verdict.MISSED),
        (180, 175, Verdict.MISSED, Verdict.MISSED),
        (192, 175, Verdict.MISSED, Verdict.MISSED),
    ],
)
def test_g10_over_equal_paths(without: float, with_split: float, pooled: Verdict, plain: Verdict) -> None:
    def found(point: Point) -> float:
        return float(with_split if str(point.labels["variant"]).startswith("split") else without)

    assert _verdict(figure6.FIGURE, "G10", found) is pooled
    assert _verdict(figure5.FIGURE, "G10", found) is plain
    tables = unsure(_tables(figure6.FIGURE, found), RATE, 100, "split, NR-SACK", 9)
    assert verdict_of(figure6.FIGURE, "G10", tables) is not Verdict.REPRODUCED


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


def test_differences_without_a_size_get_more_runs() -> None:
    for figure, panel in ((figure6.FIGURE, ERRORS), (ordered.FIGURE_7, DELAY), (ordered.FIGURE_8, DELAY)):
        runs = {point.least_runs for point in figure.sweep.points if point.labels["panel"] == panel.name}
        assert runs == {1, paths.RUNS_OF_DIFFERENCES}, "the preset does not need them"


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_point_is_a_scenario_of_its_own(figure: Figure) -> None:
    text = scenarios.read(figure.sweep.scenario)
    variants = {str(point.labels["variant"]): point for point in figure.sweep.points}
    resolved = {_native.resolve(text, dict(point.overrides)) for point in variants.values()}
    assert len(resolved) == len(variants), "two variants are the same settings"


def test_captions_speak_of_diamonds_only_where_some_are_drawn() -> None:
    for figure in FIGURES:
        caption = figure.drawings[0].caption
        assert ("Diamonds" in caption) == (figure not in (ordered.FIGURE_7, ordered.FIGURE_8)), caption
