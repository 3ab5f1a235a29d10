"""The preset beside the best variants: rows, the summary, and the smallest buffers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from synthetic import Model

from tresse import standings
from tresse.claims import NotMeasured
from tresse.cli import main
from tresse.figures import FIGURES
from tresse.standings import CMT, Standing


def _point(buffer_kib: float, best: float, ours: float, bound: float, where: str = "here") -> Standing:
    return Standing(where, buffer_kib, "fixed", best, ours, bound)


def test_the_summary_names_the_worst_point_and_counts_those_that_miss_the_aim() -> None:
    points = [_point(16, 10, 9.7, 12), _point(16, 10, 9.69, 12), _point(32, 10, 4, 12, "there")]
    table = standings.summary({"figure": points, "without runs": []})
    [row] = table.to_dict("records")
    assert (row["figure"], row["points"], row["below 97 %"], row["at"]) == ("figure", 3, 2, "there")
    assert row["least cmt / best"] == pytest.approx(0.4)


def test_the_gain_is_asked_for_with_the_smallest_buffer_and_where_the_bound_allows_it() -> None:
    points = [_point(16, 10, 11, 12), _point(16, 10, 10.9, 12), _point(16, 10, 10.9, 10.95), _point(32, 10, 4, 12)]
    table = standings.with_smallest_buffers({"figure": points})
    assert list(table["10 % more"]) == ["reached", "missed", "above the bound"]


def test_no_variant_is_no_comparison() -> None:
    assert standings.best_of({"a": 1.0, "b": 2.0}) == ("b", 2.0)
    with pytest.raises(NotMeasured):
        standings.best_of({})


def test_every_figure_of_throughput_compares_the_preset_and_has_runs_of_it() -> None:
    compared = {figure.name: figure for figure in FIGURES if figure.standings is not None}
    papers = {"globecom2010": range(4, 9), "globecom2005": range(3, 6), "pfldnet2010": (4, 6, 7)}
    assert set(compared) == {f"{paper}-{number}" for paper, numbers in papers.items() for number in numbers}
    for figure in compared.values():
        ours = [point for point in figure.sweep.points if CMT in point.labels.values()]
        assert {point.overrides["preset"] for point in ours} == {"cmt"}, figure.name


def test_compare_prints_what_was_measured_before(tmp_path: Path, made_up: Callable[[Model], None]) -> None:
    made_up(Model())
    out = str(tmp_path / "out")
    CliRunner().invoke(main, ("reproduce", "pfldnet2010-4", "--quiet", "--out", out))
    result = CliRunner().invoke(main, ("compare", "--points", "--out", out))
    assert result.exit_code == 0, result.output
    assert "pfldnet2010-4" in result.stdout
    assert "10/75 ms, 320 KiB" in result.stdout
    document = json.loads(CliRunner().invoke(main, ("compare", "--json", "--out", out)).stdout)
    assert len(document) == 30, "three delays with the ten sigmas of the paper"
    assert {row["best variant"] for row in document} <= {"fixed", "round-robin"}
    assert "Our preset against the best variant" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_compare_without_runs_of_the_preset_says_so(tmp_path: Path, made_up: Callable[[Model], None]) -> None:
    made_up(Model())
    out = str(tmp_path / "out")
    CliRunner().invoke(main, ("reproduce", "pfldnet2010-5", "--quiet", "--out", out))
    result = CliRunner().invoke(main, ("compare", "--out", out))
    assert result.exit_code == 2
    assert "has runs of preset cmt; make some with: tresse-lab reproduce" in result.stderr
