"""Typed scenarios and outcomes: they say the same as the TOML and the JSON."""

from pathlib import Path as File

import pytest

import tresse
from tresse import Change, Link, Outcome, Path, Scenario, ScenarioError, Traffic, Transport, _native, scenarios

FILES = sorted(scenarios.DIRECTORY.rglob("*.toml"))
TWO_PATHS = Scenario(
    name="two",
    settle="1s",
    measure="2s",
    transport=Transport({"send_buffer": "128KiB", "max_burst": 0, "experiment.min_ssthresh": 2}),
    traffic=Traffic(streams=2),
    paths=(
        Path(rate="10Mbit/s", delay="10ms", loss=0.01, changes=(Change(at="2s", delay="20ms"),)),
        Path(rate="5Mbit/s", delay="20ms", queue="64KiB", reverse=Link(rate="1Mbit/s", changes=())),
    ),
)


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(scenarios.DIRECTORY)) for file in FILES])
def test_every_scenario_survives_objects(file: File) -> None:
    text = file.read_text(encoding="utf-8")
    scenario = Scenario.from_toml(text)
    assert _native.resolve(scenario.to_toml(), {}) == _native.resolve(text, {})
    assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_every_scenario_that_is_resolved_survives_objects() -> None:
    resolved = _native.resolve(TWO_PATHS.to_toml(), {})
    assert _native.resolve(Scenario.from_toml(resolved).to_toml(), {}) == resolved


def test_a_scenario_of_objects_runs_as_its_text() -> None:
    outcome = tresse.run(TWO_PATHS)
    assert outcome == tresse.run(TWO_PATHS.to_toml())
    assert outcome.name == "two"
    assert [path.id for path in outcome.paths] == [0, 1]
    assert outcome.streams[0].delay_ms is not None
    assert outcome.document["paths"][1]["wire_mbps"] == outcome.paths[1].wire_mbps
    assert tresse.run(TWO_PATHS, {"measure": "1s"}).measured_s == 1


@pytest.mark.parametrize(
    "lines",
    [
        '[traffic]\nordered = "false"\n',
        'loss_oracle = "false"\n',
        '[record]\nrecovery = "true"\n',
        '[traffic]\nstreams = "2"\n',
        'seed = "18446744073709551615"\n',
    ],
)
def test_values_in_quotes_mean_what_the_simulator_reads(lines: str) -> None:
    text = f'{lines}[[path]]\nrate = "1Mbit/s"\ndelay = "1ms"\n'
    assert _native.resolve(Scenario.from_toml(text).to_toml(), {}) == _native.resolve(text, {})


def test_values_of_a_path_in_quotes_mean_what_the_simulator_reads() -> None:
    red = 'discipline = "red"\n[path.red]\nweight = "0.2%"\nidle_rate = "150"\n'
    text = f'[[path]]\nrate = "1Mbit/s"\ndelay = "1ms"\n{red}[[path.change]]\nat = "1s"\noutage = "false"\n'
    assert _native.resolve(Scenario.from_toml(text).to_toml(), {}) == _native.resolve(text, {})


def test_the_largest_seed_is_written_as_the_simulator_reads_it() -> None:
    Scenario(seed=2**64 - 1, paths=TWO_PATHS.paths).check()


def test_what_does_not_exist_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match='"send_bufer"'):
        Transport({"send_bufer": "1KiB"})
    with pytest.raises(ScenarioError, match="rte"):
        Scenario.from_toml('[[path]]\nrate = "1Mbit/s"\nrte = "1Mbit/s"\ndelay = "1ms"\n')
    with pytest.raises(ScenarioError, match="fast"):
        Scenario(paths=(Path(rate="fast", delay="1ms"),)).check()
    with pytest.raises(ValueError, match="schema 2"):
        Outcome.of({"schema": 2})
