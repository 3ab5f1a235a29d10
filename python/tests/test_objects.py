"""Typed scenarios and outcomes: they say the same as the TOML and the JSON."""

from collections.abc import Callable
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


VALUES = (
    *("3", "3.0", "1e-3", "0", "-1", "nan", "true", "1979-05-27", "[]", "{}"),
    *('"3"', '"true"', '"1%"', '"1B"', '"1s"', '""'),
)
"""Values of every kind that TOML has, and texts that some key accepts."""

PLACES = {
    "seed = @": "",
    "name = @": "",
    "preset = @": "",
    "settle = @": "",
    "framing = @": "",
    "loss_oracle = @": "",
    "": "loss = @",
    "[traffic]\nstreams = @": "",
    "[traffic]\nmessage_size = @": "",
    "[traffic]\nordered = @": "",
    "[traffic]\nsporadic = @": "",
    "[transport]\nmax_burst = @": "",
    "[transport]\nsend_buffer = @": "",
    "[transport]\npath_scheduler = @": "",
    "[transport.experiment]\nmin_ssthresh = @": "",
    "[transport]\nexperiment = @": "",
    "[host]\npacket_time = @": "",
    "[record]\nrecovery = @": "",
    "access = @": "",
    'cross = [{ kind = "web", users = @ }]': "",
    'cross = [{ kind = "web", response_shape = @ }]': "",
    "cross = @": "queue = @",
    "path = @": "mtu = @",
    "# a path": "reverse = @",
    "# a change": "change = @",
    "# one change": 'change = [{ at = "1s", outage = @ }]',
    "# red": "red = { min_threshold = @ }",
    "# red ages": "red = { idle_rate = @ }",
}
"""Lines before a path, and lines in it."""


def read(reader: Callable[[str], str], text: str) -> str:
    """What `reader` makes of the text, or why it refuses it."""
    try:
        return reader(text)
    except ScenarioError as refusal:
        return f"refused: {refusal}"


@pytest.mark.parametrize(("before", "within"), PLACES.items(), ids=[" ".join(place) for place in PLACES.items()])
def test_objects_accept_and_refuse_what_the_simulator_does(before: str, within: str) -> None:
    for value in VALUES:
        text = f'{before}\n[[path]]\nrate = "1Mbit/s"\ndelay = "1ms"\n{within}\n'.replace("@", value)
        expected = read(lambda text: _native.resolve(text, {}), text)
        assert read(lambda text: _native.resolve(Scenario.from_toml(text).to_toml(), {}), text) == expected


def test_objects_read_the_toml_that_the_simulator_reads() -> None:
    text = 'name = "\\e\\x41"\npath = [{\n  rate = "1Mbit/s", # its rate\n  delay = "1ms",\n}]\n'
    scenario = Scenario.from_toml(text)
    assert (scenario.name, scenario.paths[0].delay) == ("\x1bA", "1ms")
    assert _native.resolve(scenario.to_toml(), {}) == _native.resolve(text, {})


def test_a_value_of_another_kind_is_refused_with_what_would_be_accepted() -> None:
    path = '[[path]]\nrate = "1Mbit/s"\ndelay = "1ms"\n'
    with pytest.raises(ScenarioError, match=r"^two\.toml: seed: 3\.0 is not a whole number from 0"):
        Scenario.from_toml(f"seed = 3.0\n{path}", "two.toml")
    with pytest.raises(ScenarioError, match=r"^two\.toml: name: true is not a name in quotes"):
        Scenario.from_toml(f"name = true\n{path}", "two.toml")


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
