"""The judges of GLOBECOM 2005 on outcomes made up to reach each verdict."""

from collections.abc import Callable

import pandas as pd
import pytest
import synthetic

from tresse import standings
from tresse.claims import Verdict, judge
from tresse.figures.globecom2005 import default, figure3, figure4, figure5
from tresse.figures.globecom2005.transfers import POLICIES, SAME
from tresse.standings import CMT
from tresse.sweep import Point, Sweep
from tresse.tables import Tables

EMPTY = pd.DataFrame()
Outcome = Callable[[Point], dict[str, float]]


def _tables(sweep: Sweep, outcome: Outcome) -> Tables:
    rows = [{**point.labels, "seed": seed, **outcome(point)} for point in sweep.points for seed in (1, 2)]
    return Tables(pd.DataFrame(rows), EMPTY, EMPTY, EMPTY)


def _verdicts(figure_module: object, outcome: Outcome) -> dict[str, Verdict]:
    figure = figure_module.FIGURE  # type: ignore[attr-defined]
    tables = _tables(figure.sweep, outcome)
    return {claim.id: judge(claim, figure.name, tables).judgement.verdict for claim in figure.claims}


def _as_published(point: Point) -> dict[str, float]:
    rank = {"same": 3.0, "asap": 2.0}.get(str(point.labels["policy"]), 1.0)
    loss, buffer = float(point.labels["loss_percent"]), float(point.labels["buffer_kib"])
    rows = {f"timeouts_in_row_{n}": rank**2 / n for n in range(1, 5)}
    return {"completed_s": 10 + rank * loss * 64 / buffer, "timeouts": rank * loss, "tsn_ms": 50 + rank, **rows}


def test_what_the_paper_says_is_reproduced() -> None:
    assert set(_verdicts(figure4, _as_published).values()) == {Verdict.REPRODUCED}


def test_a_stack_to_which_policies_make_no_difference_misses() -> None:
    def indifferent(point: Point) -> dict[str, float]:
        return _as_published(Point({**point.labels, "policy": SAME}, {}))

    verdicts = _verdicts(figure4, indifferent)
    assert {verdicts[claim] for claim in ("R2", "R3", "R4", "R5")} == {Verdict.MISSED}


def test_a_transfer_that_did_not_end_is_no_measurement() -> None:
    def never(point: Point) -> dict[str, float]:
        return {**_as_published(point), "completed_s": float("nan")}

    assert _verdicts(figure4, never)["R2"] is Verdict.NOT_MEASURED


@pytest.mark.parametrize(("slowest", "verdict"), [(30.0, Verdict.REPRODUCED), (5.0, Verdict.MISSED)])
def test_two_paths_are_slower_than_one_or_not(slowest: float, verdict: Verdict) -> None:
    def outcome(point: Point) -> dict[str, float]:
        alone = point.labels["variant"] == figure3.ONE_PATH
        return {"completed_s": 10.0 if alone else slowest * float(point.labels["loss_percent"]) / 10}

    assert _verdicts(figure3, outcome) == {"R1": verdict}


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, Verdict.REPRODUCED), (0.3, Verdict.BETTER), (2.0, Verdict.MISSED)]
)
def test_the_knee(factor: float, verdict: Verdict) -> None:
    def outcome(point: Point) -> dict[str, float]:
        buffer, delay = float(point.labels["buffer_kib"]), float(point.labels["delay_ms"])
        return {"completed_s": 10 * (1 + factor * 9 * (16 / buffer) ** 1.5 * (10 / delay) ** 0.2)}

    assert _verdicts(figure5, outcome) == {"R7": verdict}


def test_a_policy_that_overtakes_at_one_size_changes_the_ranking() -> None:
    def quick_when_small(point: Point) -> dict[str, float]:
        found = _as_published(point)
        quick = point.labels["policy"] == "asap" and point.labels["buffer_kib"] == 16
        return {**found, "completed_s": found["completed_s"] / 4} if quick else found

    assert _verdicts(figure4, quick_when_small)["R6"] is Verdict.MISSED


def test_verdicts_at_other_rates_are_listed_and_do_not_count() -> None:
    def poor_when_fast(point: Point) -> dict[str, float]:
        return _as_published(Point({**point.labels, "policy": SAME}, {}) if point.labels["rate_mbps"] == 100 else point)

    tables = _tables(figure4.FIGURE.sweep, poor_when_fast)
    [rates] = [listing.make(tables) for listing in figure4.FIGURE.listings if listing.name == "rates"]
    verdicts = rates[rates["claim"] == "R2"].set_index("rate_mbps")["verdict"].to_dict()
    assert verdicts == {2: Verdict.REPRODUCED, 10: Verdict.REPRODUCED, 100: Verdict.MISSED}
    assert _verdicts(figure4, poor_when_fast)["R2"] is Verdict.REPRODUCED


def test_every_policy_has_its_curve() -> None:
    assert {point.labels["policy"] for point in figure4.FIGURE.sweep.points} == {*POLICIES, CMT}


def test_the_preset_is_compared_with_the_best_of_each_point() -> None:
    def outcome(point: Point) -> dict[str, float]:
        if point.labels["policy"] == CMT:
            return {"completed_s": 10.0}
        return {"completed_s": 8.0 if point.labels["policy"] == "cwnd" else 20.0}

    points = default.against_best(_tables(figure4.FIGURE.sweep, outcome), "policy", ["loss_percent", "buffer_kib"])
    assert len(points) == 14, "ten losses with 64 KiB, four more buffers at the highest loss"
    assert {point.best for point in points} == {"cwnd"}
    assert [point.share for point in points] == pytest.approx([0.8] * 14)
    # 16 KiB leave 131,072 bits each 91.2 ms: the round trip of 45 ms each way and a packet of 1.2 ms.
    [least] = standings.smallest(points)
    assert least.buffer_kib == 16
    assert least.bound_mbps == pytest.approx(131.072 / 91.2)


def test_one_path_may_be_the_best() -> None:
    def outcome(point: Point) -> dict[str, float]:
        return {"completed_s": {figure3.ONE_PATH: 9.0, CMT: 10.0}.get(str(point.labels["variant"]), 30.0)}

    assert figure3.FIGURE.standings is not None
    points = figure3.FIGURE.standings(_tables(figure3.FIGURE.sweep, outcome))
    assert {point.best for point in points} == {figure3.ONE_PATH}
    assert [point.share for point in points] == pytest.approx([0.9] * len(points))


def test_a_larger_factor_in_the_second_panel_is_not_cut_off() -> None:
    drawings = {drawing.name: drawing for drawing in figure5.FIGURE.drawings}
    assert synthetic.all_is_shown(drawings["degradation"].draw(_tables(figure5.FIGURE.sweep, _as_published)))
