"""Sweeps: points of a scenario, each run with the same seeds.

A task is one scenario, its overrides and one seed; only the version of the code also affects its outcome. Its key is a
digest of all of these, so a stored outcome is found again and never mistaken for another.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tresse import _native, scenarios
from tresse.objects import Outcome, Scenario
from tresse.schedulers import ControllerFactory, PathSchedulerFactory, SchedulerFactory

Label = str | int | float


@cache
def code_version() -> str:
    """Return the name of the code that produces outcomes: a digest of the native module's file."""
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
    """Name of the scenario in errors."""
    reading: str = ""
    """Name in `readings` of the additional reading from the trace of the run."""

    def key(self, code: str) -> str:
        """Return a digest of everything on which the outcome depends."""
        identity = [self.scenario, self.overrides, self.seed, code, *filter(None, [self.reading])]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Point:
    """One point of a sweep: the labels that identify it, and its overrides."""

    labels: Mapping[str, Label]
    overrides: Mapping[str, str]
    least_runs: int = 1
    """Least number of runs, if the profile has fewer and a mean over these would show nothing."""

    def __post_init__(self) -> None:
        _check_texts(self.overrides)

    def text(self) -> str:
        """Print as "delay_b_ms=50, sigma_kib=64"."""
        return ", ".join(f"{key}={value}" for key, value in self.labels.items())


@dataclass(frozen=True)
class Profile:
    """Extent of a measurement: the number of runs for each point, and overrides of all points."""

    name: str
    runs: int
    overrides: Mapping[str, str]

    def text(self) -> str:
        """Print as "quick (4 runs a point, measure=30s)"."""
        settings = "".join(f", {key}={value}" for key, value in self.overrides.items())
        return f"{self.name} ({self.runs} runs a point{settings})"


@dataclass(frozen=True)
class Sweep:
    """Points of one scenario file."""

    scenario: str
    """Path below `scenarios/`."""
    points: tuple[Point, ...]
    recorded: tuple[Point, ...] = ()
    """Points that are run once more, with overrides that record the state over time."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """Profiles by name that replace the lab's: numbers and lengths of runs as in a paper."""
    reading: str = ""
    """Name in `readings` of the additional reading from the trace of each run: columns of the table of runs."""

    def recordings(self) -> list[tuple[Point, Task]]:
        """Return the recorded points, with the first seed; they are the same in every profile."""
        text = scenarios.read(self.scenario)
        return [(point, Task(text, _merged(point.overrides), 1, self.scenario)) for point in self.recorded]

    def profile(self, profile: Profile) -> Profile:
        """Return the profile of this sweep that has the name of `profile`, or `profile` if it has none."""
        return self.profiles.get(profile.name, profile)

    def tasks(self, profile: Profile) -> list[tuple[Point, Task]]:
        """Return every point with every seed, all points of one seed first: an early stop leaves complete curves.

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
    A `UserWarning` names each setting that has no effect beside the others, and each scheduler and controller that the
    scenario does not name.
    Raises `ScenarioError` for bad input and `RunError` when the run fails.
    """
    _check_texts(overrides or {})
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
    passed = {"stream_scheduler": schedulers, "path_scheduler": path_schedulers, "congestion_control": controllers}
    for setting, policies in passed.items():
        for unused in (policies or {}).keys() - _chosen(outcome.scenario, setting):
            warnings.warn(f'"{unused}" is not used: name it with transport.{setting}', stacklevel=2)
    for failure in outcome.association.scheduler_failures:
        warnings.warn(f"failed, and a built-in one took its place: {failure}", RuntimeWarning, stacklevel=2)
    return outcome


def _check_texts(overrides: Mapping[str, object]) -> None:
    for key, value in overrides.items():
        if not isinstance(value, str):
            said = str(value).lower() if isinstance(value, bool) else value
            raise _native.ScenarioError(f'override {key}: {value!r} is not a text, such as "{said}"')


def _chosen(scenario: Mapping[str, Any], setting: str) -> set[str]:
    """Return the values of a setting of the transport at both hosts."""
    tables = (scenario.get(name, {}) for name in ("transport", "sender", "receiver"))
    return {table[setting] for table in tables if setting in table}


def _merged(*parts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    merged: dict[str, str] = {}
    for part in parts:
        merged.update(part)
    return tuple(sorted(merged.items()))
