"""Sensitivity of verdicts: verdicts on a paper under each alternative of a setting that its text does not state.

Every alternative runs all points of the paper's figures again. This does not decide which setting is right; presets do,
and the table shows which verdicts depend on them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from tresse.claims import judge, rows
from tresse.figures import select
from tresse.figures.figure import Figure
from tresse.reproduction import Display, Progress
from tresse.runner import Workers, run_tasks
from tresse.store import Store, write_atomically
from tresse.sweep import Point, Profile, Task, code_version
from tresse.tables import Tables


@dataclass(frozen=True)
class Alternative:
    """A setting that replaces that of the preset."""

    name: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Values in the overrides of points that are replaced: old and new."""

    def of(self, point: Point) -> Point:
        """Return the point with this setting; the point's own overrides win, except those that are replaced."""
        replaced = {key: new for key, (old, new) in self.replaced.items() if point.overrides.get(key) == old}
        return replace(point, overrides={**self.overrides, **point.overrides, **replaced})


AS_PRESET = Alternative("preset")
"""The settings of the preset and the scenario, unchanged."""

MODEL_OF_2010 = (
    Alternative("no DAC", {"transport.delayed_ack": "false"}),
    Alternative("paths in turn", {"transport.path_scheduler": "round_robin"}),
    Alternative("SACKs to last DATA", {"transport.sack_path": "last_data"}),
    Alternative("SACKs in turn", {"transport.sack_path": "round_robin"}),
    Alternative("window each packet", {"transport.experiment.peer_window_test": "packet"}),
    Alternative("no Max.Burst", {"transport.max_burst": "0"}),
    Alternative("no frames", {"framing": "0B"}),
    Alternative("reading first", {"traffic.read": "before_sack"}),
)
"""Alternatives to the authors' model for settings that neither paper of 2010 states."""

ASYMMETRIC = (
    Alternative("moved chunk as a loss", {"transport.experiment.reinjection_cut": "loss"}),
    Alternative("either buffer watched", replaced={"transport.chunk_rescheduling": ("sender", "both")}),
    Alternative("RED of 1993", {"path.0.red.uniform_drops": "true", "path.1.red.uniform_drops": "true"}),
    Alternative("links of 1.3 ms", {"path.0.delay": "1.3ms", "path.1.delay": "1.3ms"}),
    Alternative("errors in user data", {"path.1.bit_errors_spare": "48B"}),
)
"""Alternatives of settings that only the paper on asymmetric paths does not state."""

PAPERS: Mapping[str, tuple[Alternative, ...]] = {
    "pfldnet2010": MODEL_OF_2010,
    "globecom2010": (*MODEL_OF_2010, *ASYMMETRIC),
}
"""Papers with alternatives, by the first part of their figures' names."""


@dataclass(frozen=True)
class Thoroughness:
    """Extent of the measurement: a profile, with an upper limit of runs for each point."""

    profile: Profile
    most_runs: int | None = None


def measure(
    paper: str,
    alternatives: Sequence[Alternative],
    thoroughness: Thoroughness,
    directory: Path,
    workers: Workers,
    display: Display,
) -> pd.DataFrame:
    """Run the missing tasks under each alternative; write and return the table of verdicts.

    Runs are stored in `directory` like those of figures, so an interrupted call continues where it stopped.
    """
    figures = [figure for figure in select([paper]) if figure.claims]
    store = Store(directory / "runs", code_version())
    plans = {
        (figure.name, alternative.name): plan(figure, alternative, thoroughness)
        for alternative in (AS_PRESET, *alternatives)
        for figure in figures
    }
    tasks = list(dict.fromkeys(task for points in plans.values() for _, task in points))
    kept = sum(store.load(task) is not None for task in tasks)
    with display(Progress(len(tasks), kept)) as on_finished:
        run_tasks(tasks, store, workers, on_finished)

    def measured(figure: Figure, alternative: Alternative) -> Tables:
        points = plans[figure.name, alternative.name]
        return Tables.of([(point, outcome) for point, task in points if (outcome := store.load(task)) is not None])

    found = verdicts(figures, (AS_PRESET, *alternatives), measured)
    write_atomically(directory / f"sensitivity-{paper}.csv", found.to_csv(index=False).encode())
    return found


def plan(figure: Figure, alternative: Alternative, thoroughness: Thoroughness) -> list[tuple[Point, Task]]:
    """Return the points of a figure under an alternative, with a task for each seed; our own preset is left out."""
    points = tuple(alternative.of(point) for point in figure.sweep.points if "preset" not in point.overrides)
    tasks = replace(figure.sweep, points=points).tasks(thoroughness.profile)
    most = thoroughness.most_runs
    return [(point, task) for point, task in tasks if most is None or task.seed <= most]


def verdicts(
    figures: Sequence[Figure],
    alternatives: Sequence[Alternative],
    measured: Callable[[Figure, Alternative], Tables],
) -> pd.DataFrame:
    """Return one row for each row of claims, one column for each alternative; `measured` returns the tables."""
    columns: dict[str, dict[str, str]] = {}
    for alternative in alternatives:
        findings = [
            judge(claim, figure.name, tables)
            for figure in figures
            for tables in [measured(figure, alternative)]
            for claim in figure.claims
        ]
        columns[alternative.name] = {row.id: row.verdict.value for row in rows(findings)}
    ids = list(next(iter(columns.values()), {}))
    return pd.DataFrame({"row": ids} | {name: [column[row] for row in ids] for name, column in columns.items()})
