"""The table of verdicts under settings that a paper leaves unsaid."""

from dataclasses import replace

import pandas as pd
import pytest

from tresse import _native, sensitivity
from tresse.claims import Claim, Judgement, Verdict
from tresse.figures import select
from tresse.figures.pfldnet2010 import figure4
from tresse.profiles import QUICK
from tresse.sensitivity import AS_PRESET, Alternative, Thoroughness
from tresse.sweep import Task
from tresse.tables import Tables


def _claim(name: str, limit: float) -> Claim:
    def judged(tables: Tables) -> Judgement:
        verdict = Verdict.REPRODUCED if tables.runs["throughput_mbps"].min() >= limit else Verdict.MISSED
        return Judgement(verdict, "as the only run says")

    return Claim(name, "it is fast", "fast", "none", judged)


def _tables(throughput: float) -> Tables:
    empty = Tables.of([])
    runs = pd.DataFrame([{"throughput_mbps": throughput}])
    return replace(empty, runs=runs)


def test_each_alternative_has_a_column_of_verdicts_of_its_own() -> None:
    figure = replace(figure4.FIGURE, claims=(_claim("P1", 10.0), _claim("P2", 18.0)))
    slower = Alternative("slower", {"framing": "100B"})
    found = sensitivity.verdicts(
        [figure], (AS_PRESET, slower), lambda _figure, alternative: _tables(19.0 if alternative is AS_PRESET else 12.0)
    )
    assert found.to_dict("list") == {
        "row": ["P1", "P2"],
        "preset": ["reproduced", "reproduced"],
        "slower": ["reproduced", "missed"],
    }


def test_an_alternative_changes_every_point_but_what_the_point_varies_itself() -> None:
    late = Alternative("late", {"path.1.delay": "1s", "transport.max_burst": "0"})
    plain = {task.key("") for _, task in sensitivity.plan(figure4.FIGURE, AS_PRESET, Thoroughness(QUICK))}
    planned = sensitivity.plan(figure4.FIGURE, late, Thoroughness(QUICK))
    assert planned
    for point, task in planned:
        overrides = dict(task.overrides)
        assert overrides["transport.max_burst"] == "0"
        assert overrides["path.1.delay"] == f"{point.labels['delay_b_ms']}ms"
        assert "preset" not in overrides
        assert task.key("") not in plain


@pytest.mark.parametrize("name", ["globecom2010-5", "globecom2010-7"])
def test_what_is_watched_changes_only_where_chunks_are_rescheduled(name: str) -> None:
    [figure] = select([name])
    [either] = [one for one in sensitivity.ASYMMETRIC if one.name == "either buffer watched"]

    def watched(alternative: Alternative) -> list[str]:
        planned = sensitivity.plan(figure, alternative, Thoroughness(QUICK, most_runs=1))
        return [dict(task.overrides).get("transport.chunk_rescheduling", "off") for _, task in planned]

    renamed = {"sender": "both", "off": "off"}
    assert watched(either) == [renamed[value] for value in watched(AS_PRESET)]


def test_no_point_has_more_runs_than_asked_for() -> None:
    planned = sensitivity.plan(figure4.FIGURE, AS_PRESET, Thoroughness(QUICK, most_runs=2))
    assert {task.seed for _, task in planned} == {1, 2}


@pytest.mark.parametrize("paper", sorted(sensitivity.PAPERS))
def test_every_alternative_is_a_scenario_that_runs_and_differs_from_the_preset(paper: str) -> None:
    brief = replace(QUICK, overrides={"settle": "0s", "measure": "1ms"})
    figures = [replace(figure, sweep=replace(figure.sweep, profiles={})) for figure in select([paper])]

    def tasks(alternative: Alternative) -> list[Task]:
        plans = [sensitivity.plan(figure, alternative, Thoroughness(brief, most_runs=1)) for figure in figures]
        return [task for points in plans for _, task in points]

    plain = tasks(AS_PRESET)
    for alternative in sensitivity.PAPERS[paper]:
        changed = [one for one, before in zip(tasks(alternative), plain, strict=True) if one != before]
        assert changed, alternative.name
        task = changed[0]
        _native.run(task.scenario, dict(task.overrides), task.seed)
