"""A complete reproduction: runs the missing tasks, and creates tables, verdicts, plots and the report.

All results are in one directory that belongs to the lab; a directory with other contents is refused.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tresse import machine
from tresse.claims import Finding, Judgement, NotMeasured, Row, Verdict, judge, rows
from tresse.figures import FIGURES
from tresse.figures.figure import Figure
from tresse.plots import theme
from tresse.runner import Workers, run_tasks
from tresse.standings import Standing
from tresse.store import Store, write_atomically
from tresse.sweep import Point, Profile, Task, code_version
from tresse.tables import Tables

MANIFEST = "lab.json"
"""File that marks a directory as the lab's, with a record of how each figure in it was made."""


class OutputError(ValueError):
    """A directory cannot be used for output, or has no results."""


@dataclass(frozen=True)
class Made:
    """Record of how one figure of a directory was made."""

    profile: str
    command: str
    finished_runs: int
    all_runs: int
    when: str
    machine: dict[str, str]


@dataclass(frozen=True)
class Measured:
    """One figure with its measurements and verdicts."""

    figure: Figure
    tables: Tables
    findings: tuple[Finding, ...]
    made: Made


@dataclass(frozen=True)
class Progress:
    """Interface of a display: gets the number of runs, the number of those kept from before, and each run that ends."""

    all_runs: int
    kept_runs: int


Display = Callable[[Progress], AbstractContextManager[Callable[[], None]]]


def open_directory(directory: Path) -> Path:
    """Mark `directory` as the lab's; raise `OutputError` if it has other contents."""
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"{directory} is a file; name a directory")
    if directory.is_dir() and not (directory / MANIFEST).exists() and any(directory.iterdir()):
        raise OutputError(f"{directory} holds files that are not the lab's; name an empty or new directory with --out")
    if not (directory / MANIFEST).exists():
        _write_manifest(directory, {})
    return directory


def reproduce(
    figures: Sequence[Figure],
    profile: Profile,
    directory: Path,
    workers: Workers,
    command: str,
    display: Display,
) -> None:
    """Measure `figures` and write their tables and plots into `directory`, for `load` to read.

    Runs that were finished before are not run again. If a run fails or is interrupted, the results so far are written
    before the exception is raised further.
    """
    store = Store(directory / "runs", code_version())
    plans = {figure.name: figure.sweep.tasks(profile) for figure in figures}
    recordings = {figure.name: figure.sweep.recordings() for figure in figures}
    planned = [*recordings.values(), *plans.values()]
    tasks = list(dict.fromkeys(task for plan in planned for _, task in plan))
    kept = sum(store.load(task) is not None for task in tasks)
    try:
        with display(Progress(len(tasks), kept)) as on_finished:
            run_tasks(tasks, store, workers, on_finished)
    finally:
        for figure in figures:
            plan = plans[figure.name]
            done = _finished(plan, store)
            if done:
                tables = Tables.of(done, _finished(recordings[figure.name], store))
                _write_figure(figure, tables, directory)
                _record(figure, _made(figure.sweep.profile(profile), command, len(done), len(plan)), directory)


def _finished(plan: Sequence[tuple[Point, Task]], store: Store) -> list[tuple[Point, dict[str, Any]]]:
    return [(point, outcome) for point, task in plan if (outcome := store.load(task)) is not None]


def load(directory: Path) -> list[Measured]:
    """Return every figure that was measured into `directory`; raise `OutputError` if there is none."""
    if not (directory / MANIFEST).is_file():
        raise OutputError(f"no results in {directory}; make some with: tresse-lab reproduce --out {directory}")
    manifest = _read_manifest(directory)
    measured = []
    for figure in FIGURES:
        if figure.name in manifest:
            made = _made_of(manifest[figure.name], directory)
            with _tables_of_this_version(figure):
                measured.append(_judged(figure, Tables.load(directory / figure.name), made))
    if not measured:
        raise OutputError(f"no finished run in {directory}; continue with: tresse-lab reproduce --out {directory}")
    return measured


def all_rows(measured: Sequence[Measured]) -> list[Row]:
    """Return all rows; the claims of figures without runs are "not measured"."""
    findings = {each.figure.name: each.findings for each in measured}
    return rows(finding for figure in FIGURES for finding in findings.get(figure.name) or _unmeasured(figure))


def rows_of(measured: Sequence[Measured]) -> list[Row]:
    """Return the rows that have a claim of one of these figures."""
    ids = {finding.claim.id for each in measured for finding in each.findings}
    return [row for row in all_rows(measured) if row.id in ids]


def _unmeasured(figure: Figure) -> tuple[Finding, ...]:
    judgement = Judgement(Verdict.NOT_MEASURED, f"make it with: tresse-lab reproduce {figure.name}")
    return tuple(Finding(claim, figure.name, judgement) for claim in figure.claims)


def standings(measured: Sequence[Measured]) -> dict[str, list[Standing]]:
    """Compare our preset with the best variants at the points of each figure that has runs of it.

    Raises `OutputError` if the tables of a figure come from another version of the lab.
    """
    found = {}
    for each in measured:
        if each.figure.standings is not None:
            with contextlib.suppress(NotMeasured), _tables_of_this_version(each.figure):
                found[each.figure.name] = each.figure.standings(each.tables)
    return {name: points for name, points in found.items() if points}


@contextlib.contextmanager
def _tables_of_this_version(figure: Figure) -> Iterator[None]:
    try:
        yield
    except KeyError as missing:
        raise OutputError(
            f"{figure.name}: its tables have no column {missing}: another version of the lab wrote them "
            f"(make them anew with: tresse-lab reproduce {figure.name}), or a judge of the figure misnames it"
        ) from missing


def _judged(figure: Figure, tables: Tables, made: Made) -> Measured:
    findings = tuple(judge(claim, figure.name, tables) for claim in figure.claims)
    return Measured(figure, tables, findings, made)


def _write_figure(figure: Figure, tables: Tables, directory: Path) -> None:
    home = directory / figure.name
    tables.save(home)
    for listing in figure.listings:
        # Tables and drawings that need points without a run are left out until these have one.
        with contextlib.suppress(NotMeasured):
            write_atomically(home / f"{listing.name}.csv", listing.make(tables).to_csv(index=False).encode())
    for drawing in figure.drawings:
        with contextlib.suppress(NotMeasured):
            theme.save(drawing.draw(tables), home, drawing.name)


def _made(profile: Profile, command: str, finished: int, planned: int) -> Made:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Made(profile.text(), command, finished, planned, now, machine.describe())


def _made_of(entry: Any, directory: Path) -> Made:
    try:
        return Made(**entry)
    except TypeError:
        raise OutputError(f"{directory / MANIFEST} is damaged; remove {directory} or name another") from None


def _record(figure: Figure, made: Made, directory: Path) -> None:
    _write_manifest(directory, _read_manifest(directory) | {figure.name: asdict(made)})


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OutputError(f"{path} is damaged ({error}); remove {directory} or name another with --out") from None
    if not isinstance(manifest, dict):
        raise OutputError(f"{path} is not the lab's; name another directory with --out")
    return manifest


def _write_manifest(directory: Path, manifest: dict[str, Any]) -> None:
    write_atomically(directory / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
