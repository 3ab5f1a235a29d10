"""The tables of the documentation that `tresse-lab compare --write-docs` writes, and their agreement."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from synthetic import Model

from tresse import doctables
from tresse.cli import main
from tresse.doctables import END, TABLES, DocTable
from tresse.figures import FIGURES
from tresse.standings import AIM

DOCS = Path(__file__).parents[2] / "docs"
FIGURES_TABLE, BELOW_TABLE, DELAYS_TABLE, LOSS_TABLE, LOSS_BY_DELAY_TABLE, UNLIKE_TABLE = TABLES
HEADERS = {
    FIGURES_TABLE: doctables.FIGURE_HEADER,
    BELOW_TABLE: doctables.BELOW_HEADER,
    DELAYS_TABLE: doctables.POINT_HEADER,
    LOSS_TABLE: doctables.LOSS_HEADER,
    LOSS_BY_DELAY_TABLE: doctables.LOSS_BY_DELAY_HEADER,
    UNLIKE_TABLE: doctables.UNLIKE_HEADER,
}


def rows_of(table: DocTable, docs: Path = DOCS) -> list[list[str]]:
    """The rows of a table as it is written, without its head, which is checked."""
    told, *lines = doctables.read((docs / table.page).read_text(encoding="utf-8"), table)
    assert told.startswith("Measured on 20"), told
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert tuple(cells[0]) == HEADERS[table]
    assert cells[1] == ["---"] * len(cells[0])
    assert {len(row) for row in cells} == {len(cells[0])}
    return cells[2:]


def test_every_figure_that_compares_the_preset_has_a_row() -> None:
    rows = rows_of(FIGURES_TABLE)
    assert [row[0] for row in rows] == [figure.name for figure in FIGURES if figure.standings is not None]
    for _, points, below, least, _, _ in rows:
        assert 0 <= int(below) < int(points)
        assert int(below) == 0 or float(least) <= AIM


def test_all_points_of_unlike_delays_stand_in_their_table() -> None:
    rows = rows_of(DELAYS_TABLE)
    sigmas = range(32, 321, 32)
    assert [row[0] for row in rows] == [f"10/{delay} ms, {sigma} KiB" for delay in (50, 75) for sigma in sigmas]
    for _, bound, better, best, ours, share in rows:
        assert better in ("fixed", "round-robin")
        assert float(best) <= float(bound)
        assert float(share) == pytest.approx(float(ours) / float(best), rel=0.05 / float(best) + 0.05 / float(ours))


def test_all_losses_and_delays_stand_in_their_tables() -> None:
    assert [row[0] for row in rows_of(LOSS_TABLE)] == [f"{loss} %" for loss in range(1, 11)]
    rows = rows_of(LOSS_BY_DELAY_TABLE)
    points = [(f"{loss} %", f"{delay} ms") for loss in (1, 10) for delay in (10, 25, 45, 90, 180, 360)]
    assert [(row[0], row[1]) for row in rows] == points
    for *_, best, ours, less in (*rows_of(LOSS_TABLE), *rows):
        assert float(less.removesuffix(" %")) == pytest.approx(100 * (1 - float(ours) / float(best)), abs=1.5)


def test_no_variant_carries_more_than_the_bound() -> None:
    for _, bound, _, best, ours, _ in rows_of(UNLIKE_TABLE):
        assert max(float(best), float(ours)) <= float(bound)


def test_the_pages_agree_on_every_point_that_both_have() -> None:
    below, delays = rows_of(BELOW_TABLE), rows_of(DELAYS_TABLE)
    for name, _, count, least, at, _ in rows_of(FIGURES_TABLE):
        shares = {where: share for figure, where, _, share in below if figure == name}
        assert len(shares) == int(count)
        if shares:
            assert shares[at] == least == min(shares.values(), key=float)
    there = {where: share for figure, where, _, share in below if figure == "pfldnet2010-4"}
    here = {row[0]: row[-1] for row in delays}
    assert {where: here.get(where, share) for where, share in there.items()} == there
    assert {where for where, share in here.items() if float(share) < AIM} <= set(there)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A copy of the pages."""
    copy = tmp_path / "docs"
    copy.mkdir()
    for table in TABLES:
        shutil.copy(DOCS / table.page, copy)
    return copy


def measure(out: Path) -> None:
    CliRunner().invoke(main, ("reproduce", "pfldnet2010-4", "--quiet", "--out", str(out)))


def test_what_was_measured_is_written_and_the_rest_left(
    tmp_path: Path, docs: Path, made_up: Callable[[Model], None]
) -> None:
    made_up(Model())
    out, before = tmp_path / "out", (docs / "small-buffers.md").read_text(encoding="utf-8")
    measure(out)
    for _ in range(2):
        result = CliRunner().invoke(main, ("compare", "--out", str(out), "--write-docs", str(docs)))
        assert result.exit_code == 0, result.output
    assert "points below the aim: left as it is: pfldnet2010-6" in result.stdout
    assert "streams over unlike delays: written" in result.stdout
    assert (docs / "verdicts.md").read_text(encoding="utf-8") == (DOCS / "verdicts.md").read_text(encoding="utf-8")
    assert len(rows_of(DELAYS_TABLE, docs)) == 20
    after = (docs / "small-buffers.md").read_text(encoding="utf-8")
    assert after != before
    for part in (0, 2):
        assert around(after)[part] == around(before)[part], "only what is between the markers changes"


def around(page: str) -> tuple[str, str, str]:
    head, rest = page.split(DELAYS_TABLE.begin)
    inside, _, tail = rest.partition(END)
    return head, inside, tail


def test_a_page_without_its_markers_is_refused(tmp_path: Path, docs: Path, made_up: Callable[[Model], None]) -> None:
    made_up(Model())
    measure(tmp_path / "out")
    (docs / "small-buffers.md").write_text("# No table\n", encoding="utf-8")
    result = CliRunner().invoke(main, ("compare", "--out", str(tmp_path / "out"), "--write-docs", str(docs)))
    assert result.exit_code == 2
    assert "small-buffers.md: has no line <!-- streams over unlike delays" in result.stderr
    assert (docs / "small-buffers.md").read_text(encoding="utf-8") == "# No table\n"
