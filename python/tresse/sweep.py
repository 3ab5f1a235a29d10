"""Sweeps: points of a scenario, each run with the same seeds.

A task is one scenario, its overrides and one seed; nothing else can change its outcome but the code. Its key
names exactly that, so a kept outcome is found again and never mistaken for another.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tresse import _native, scenarios
from tresse.objects import Outcome, Scenario
from tresse.schedulers import ControllerFactory, PathSchedulerFactory, SchedulerFactory

Label = str | int | float


@cache
def code_version() -> str:
    """Name of the code that produces outcomes: a digest of the native module's own bytes."""
    file = _native.__file__
    if file is None:
        raise RuntimeError("the native module has no file")
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Task:
    """One run: a scenario as TOML text, sorted overrides, a seed."""

    scenario: str
    overrides: tuple[tuple[str, str], ...]
    seed: int
    name: str = "scenario"
    """What errors call the scenario."""
    reading: str = ""
    """What is read off the trace of the run besides, by its name in `readings`."""

    def key(self, code: str) -> str:
        """Digest of everything that the outcome depends on."""
        identity = [self.scenario, self.overrides, self.seed, code, *filter(None, [self.reading])]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Point:
    """One point of a sweep: the columns that tell it apart, and the overrides that make it."""

    labels: Mapping[str, Label]
    overrides: Mapping[str, str]
    least_runs: int = 1
    """Runs that it gets although the profile asks for fewer, where a mean over few says nothing."""

    def text(self) -> str:
        """Print as "delay_b_ms=50, sigma_kib=64"."""
        return ", ".join(f"{key}={value}" for key, value in self.labels.items())


@dataclass(frozen=True)
class Profile:
    """Extent of a measurement: runs a point, and overrides that every point gets."""

    name: str
    runs: int
    overrides: Mapping[str, str]

    def text(self) -> str:
        """Print as "quick (4 runs a point, measure=30s)"."""
        settings = "".join(f", {key}={value}" for key, value in self.overrides.items())
        return f"{self.name} ({self.runs} runs a point{settings})"


@dataclass(frozen=True)
class Sweep:
    """Points over one scenario file."""

    scenario: str
    """Path below `scenarios/`."""
    points: tuple[Point, ...]
    recorded: tuple[Point, ...] = ()
    """Points that are run once more, with overrides that record the state over time."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """By name, those that take the place of the lab's: a paper's own numbers of runs and times."""
    reading: str = ""
    """What is read off the trace of each run besides, by its name in `readings`: columns of the table of runs."""

    def recordings(self) -> list[tuple[Point, Task]]:
        """The recorded points, with the first seed; they are the same in every profile."""
        text = scenarios.read(self.scenario)
        return [(point, Task(text, _merged(point.overrides), 1, self.scenario)) for point in self.recorded]

    def profile(self, profile: Profile) -> Profile:
        """Extent of the measurement of this sweep with the given `profile`."""
        return self.profiles.get(profile.name, profile)

    def tasks(self, profile: Profile) -> list[tuple[Point, Task]]:
        """Every point with every seed, all points of one seed first: an early stop leaves whole curves.

        Variants that are compared share their seeds.
        """
        text = scenarios.read(self.scenario)
        own = self.profile(profile)
        most = max((own.runs, *(point.least_runs for point in self.points)))
        return [
            (point, Task(text, _merged(own.overrides, point.overrides), seed, self.scenario, self.reading))
            for seed in range(1, most + 1)
            for point in self.points
            if seed <= max(own.runs, point.least_runs)
        ]


def run(
    scenario: str | Scenario,
    overrides: Mapping[str, str] | None = None,
    seed: int | None = None,
    schedulers: Mapping[str, SchedulerFactory] | None = None,
    path_schedulers: Mapping[str, PathSchedulerFactory] | None = None,
    controllers: Mapping[str, ControllerFactory] | None = None,
) -> Outcome:
    """Run the scenario, an object or TOML text, once and return its outcome.

    `overrides` are dotted keys and values as `tresse sim --set` takes them: {"path.1.delay": "75ms"}.
    `seed` takes the place of the scenario's own, which is 1 where it names none.
    `schedulers` are stream schedulers by the names that the scenario may use, `path_schedulers` path schedulers,
    `controllers` congestion controllers; one that fails is replaced by `first_come`, `in_order` or `rfc9260`, with a
    `RuntimeWarning` and its reason in the outcome's `association.scheduler_failures`.
    A `UserWarning` names each setting that has no effect beside the others.
    Raises `ScenarioError` for bad input and `RunError` when the run fails.
    """
    document = scenario.to_toml() if isinstance(scenario, Scenario) else scenario
    for idle in _native.idle_settings(document, dict(overrides or {})):
        warnings.warn(idle, stacklevel=2)
    text = _native.run(
        document,
        dict(overrides or {}),
        seed,
        schedulers=dict(schedulers or {}),
        path_schedulers=dict(path_schedulers or {}),
        controllers=dict(controllers or {}),
    )
    outcome = Outcome.of(json.loads(text))
    for failure in outcome.association.scheduler_failures:
        warnings.warn(f"failed, and a built-in one took its place: {failure}", RuntimeWarning, stacklevel=2)
    return outcome


def _merged(*parts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    merged: dict[str, str] = {}
    for part in parts:
        merged.update(part)
    return tuple(sorted(merged.items()))
