"""A reproduction from end to end, on a made-up stack, and the report that it makes."""

import html.parser
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import synthetic

from tresse import _native, report, reproduction
from tresse.claims import Verdict
from tresse.figures import select
from tresse.reproduction import OutputError, Progress
from tresse.runner import Workers
from tresse.sweep import Profile
from tresse.tables import Tables

FIGURES = select(["pfldnet2010-4", "pfldnet2010-5"])
FIGURE_5 = FIGURES[1]
SHORT = Profile("quick", runs=2, overrides={"measure": "1s"})
RUNS = len(FIGURE_5.sweep.tasks(SHORT))
"""Those of figure 5 without the recorded ones."""


@contextmanager
def no_display(_: Progress) -> Iterator[Callable[[], None]]:
    yield lambda: None


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = reproduction.open_directory(tmp_path_factory.mktemp("reproduced"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "run", synthetic.run_of(synthetic.Model()))
        reproduction.reproduce(FIGURES, SHORT, directory, Workers(jobs=2), "tresse-lab reproduce", no_display)
    return directory


def test_figures_that_share_runs_share_them(reproduced: Path) -> None:
    recorded = len(FIGURE_5.sweep.recorded)
    of_figure_5 = [point.overrides for point in FIGURE_5.sweep.points]
    assert all(point.overrides in of_figure_5 for point in FIGURES[0].sweep.points)
    assert len(list((reproduced / "runs").iterdir())) == RUNS + recorded


def test_tables_stand_beside_each_figure_in_both_formats(reproduced: Path) -> None:
    for figure in FIGURES:
        names = {file.name for file in (reproduced / figure.name).iterdir()}
        expected = {
            f"{table}.{kind}" for table in ("runs", "streams", "paths", "samples") for kind in ("csv", "parquet")
        }
        drawn = {f"{drawing.name}.{kind}" for drawing in figure.drawings for kind in ("svg", "pdf")}
        assert expected | drawn | {"summary.csv"} <= names


def test_saved_tables_are_read_back_as_they_were(tmp_path: Path) -> None:
    tables = synthetic.tables(synthetic.Model())
    tables.save(tmp_path)
    loaded = Tables.load(tmp_path)
    for name in ("runs", "streams", "paths", "samples"):
        assert getattr(loaded, name).equals(getattr(tables, name))


class References(html.parser.HTMLParser):
    """Collects whatever a page would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "iframe", "object", "img"):
            self.loaded.append(tag)
        self.loaded.extend(f"{name}={value}" for name, value in attrs if name in ("src", "srcset"))


def test_the_report_is_one_page_that_stands_alone_and_is_made_anew_the_same(reproduced: Path) -> None:
    measured = reproduction.load(reproduced)
    page = report.render(measured)
    references = References()
    references.feed(page)
    assert references.loaded == []
    assert page.count("<svg") == sum(len(figure.drawings) for figure in FIGURES)
    assert all(f'<tr id="P{number}">' in page for number in range(1, 8))
    assert re.search(r"19\.\d\d ± 0\.\d\d Mbit/s \(n = 2\)", page)
    assert "<code>tresse-lab reproduce</code>" in page
    assert "is incomplete" not in page
    assert report.render(reproduction.load(reproduced)) == page


def test_an_interrupted_reproduction_is_reported_as_incomplete_and_goes_on(
    tmp_path: Path, made_up: Callable[[synthetic.Model], None]
) -> None:
    made_up(synthetic.Model())
    directory = reproduction.open_directory(tmp_path / "out")

    @contextmanager
    def interrupting(progress: Progress) -> Iterator[Callable[[], None]]:
        finished = 0

        def advance() -> None:
            nonlocal finished
            finished += 1
            if finished == 40:
                raise KeyboardInterrupt

        yield advance

    with pytest.raises(KeyboardInterrupt):
        reproduction.reproduce([FIGURE_5], SHORT, directory, Workers(jobs=1), "again", interrupting)
    partial = reproduction.load(directory)
    assert partial[0].made.finished_runs == 38
    assert {finding.judgement.verdict for finding in partial[0].findings} >= {Verdict.NOT_MEASURED}
    assert f"38 of\n{RUNS} runs" in report.render(partial)

    seen: list[Progress] = []

    @contextmanager
    def noting(progress: Progress) -> Iterator[Callable[[], None]]:
        seen.append(progress)
        yield lambda: None

    reproduction.reproduce([FIGURE_5], SHORT, directory, Workers(jobs=1), "again", noting)
    assert seen == [Progress(all_runs=RUNS + len(FIGURE_5.sweep.recorded), kept_runs=40)]
    assert reproduction.load(directory)[0].made.finished_runs == RUNS


def test_a_directory_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="not the lab's"):
        reproduction.open_directory(tmp_path)


def test_a_damaged_manifest_is_one_clear_error(reproduced: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(reproduced, copy)
    (copy / reproduction.MANIFEST).write_text("{")
    with pytest.raises(OutputError, match=r"lab\.json is damaged"):
        reproduction.load(copy)
    (copy / reproduction.MANIFEST).write_text(json.dumps({FIGURES[0].name: {"profile": "quick"}}))
    with pytest.raises(OutputError, match=r"lab\.json is damaged"):
        reproduction.load(copy)


def test_tables_of_another_version_are_one_clear_error(reproduced: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(reproduced, copy)
    tables = Tables.load(copy / FIGURES[0].name)
    older = Tables(tables.runs.rename(columns={"sigma_kib": "sigma"}), tables.streams, tables.paths, tables.samples)
    older.save(copy / FIGURES[0].name)
    with pytest.raises(OutputError, match=r"pfldnet2010-4: its tables have no column 'sigma_kib'.*misnames it"):
        reproduction.load(copy)
