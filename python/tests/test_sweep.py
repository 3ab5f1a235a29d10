"""Tasks and their keys."""

import pytest

from tresse.figures.pfldnet2010.delays import FIXED, ROUND_ROBIN, RUNS_OF_TURNS, SIGMAS_KIB, STREAM_MAPS, SWEEP
from tresse.profiles import PAPER, QUICK
from tresse.sweep import Task, code_version

TASK = Task("text", (("measure", "30s"),), 1)


@pytest.mark.parametrize(
    "other",
    [
        Task("other text", (("measure", "30s"),), 1),
        Task("text", (("measure", "31s"),), 1),
        Task("text", (), 1),
        Task("text", (("measure", "30s"),), 2),
        Task("text", (("measure", "30s"),), 1, reading="stall"),
    ],
)
def test_a_key_changes_with_everything_an_outcome_depends_on(other: Task) -> None:
    assert TASK.key("code") != other.key("code")


def test_a_key_changes_with_the_code() -> None:
    assert TASK.key("code") != TASK.key("other code")


def test_a_key_stays_when_nothing_changes() -> None:
    assert TASK.key("code") == Task("text", (("measure", "30s"),), 1, name="called otherwise").key("code")


def test_the_code_has_one_name() -> None:
    assert len(code_version()) == 16
    assert code_version() == code_version()


def test_variants_share_their_seeds() -> None:
    seeds: dict[str, set[int]] = {}
    for point, task in SWEEP.tasks(PAPER):
        seeds.setdefault(point.text(), set()).add(task.seed)
    assert set(map(frozenset, seeds.values())) == {frozenset(range(1, 25))}


def test_all_points_of_a_seed_come_before_the_next_seed() -> None:
    order = [task.seed for _, task in SWEEP.tasks(QUICK)]
    assert order == sorted(order)


def test_the_sweep_holds_the_points_that_the_paper_names() -> None:
    assert {64, 224, 288} <= set(SIGMAS_KIB)
    of_the_paper = [point for point in SWEEP.points if point.labels["mapping"] in STREAM_MAPS]
    assert len(of_the_paper) == 6 * len(SIGMAS_KIB)
    assert len({task.key("") for _, task in SWEEP.tasks(PAPER)}) == len(SWEEP.points) * PAPER.runs


def test_a_point_may_ask_for_more_runs_than_the_profile() -> None:
    seeds = dict.fromkeys((ROUND_ROBIN, FIXED), 0)
    for point, task in SWEEP.tasks(QUICK):
        seeds[str(point.labels["mapping"])] = task.seed
    assert seeds.pop(ROUND_ROBIN) == RUNS_OF_TURNS
    assert set(seeds.values()) == {QUICK.runs}
