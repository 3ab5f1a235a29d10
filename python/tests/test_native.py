"""The real stack through the native module: short runs, so that they say what is right and not how fast."""

import json
import pickle
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tresse
from tresse import RunError, ScenarioError, _native, scenarios
from tresse.figures.pfldnet2010 import delays
from tresse.profiles import PROFILES
from tresse.tables import LIMITS, Tables

BRIEF = {"settle": "1s", "measure": "2s"}
TEXT = scenarios.read(delays.SCENARIO)


def test_a_run_gives_its_document() -> None:
    outcome = tresse.run(TEXT, BRIEF, seed=3)
    assert outcome.seed == 3
    # A window of two seconds can hold one more message on each path than the rate says.
    edge = 2 * delays.PAYLOAD_BYTES * 8 / 1e6 / 2
    assert 0 < outcome.throughput_mbps <= delays.CAPACITY_MBPS + edge
    assert [stream.id for stream in outcome.streams] == [0, 1]
    assert set(outcome.limited_by.total) == set(LIMITS)
    assert sum(outcome.limited_by.total.values()) == pytest.approx(1)
    assert outcome.scenario["measure"] == "2s"


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, again, other = (_native.run(TEXT, BRIEF, seed) for seed in (1, 1, 2))
    assert first == again
    assert json.loads(first)["run"]["trace_hash"] != json.loads(other)["run"]["trace_hash"]


def test_a_scenario_keeps_its_seed_unless_another_is_given() -> None:
    text = f"seed = 7\n{TEXT}"
    assert tresse.run(text, BRIEF).seed == 7
    assert tresse.run(text, {**BRIEF, "seed": "8"}).seed == 8
    assert tresse.run(text, {**BRIEF, "seed": "8"}, seed=9).seed == 9


def test_outcomes_become_tables() -> None:
    point = delays.SWEEP.points[0]
    tables = Tables.of([(point, tresse.run(TEXT, {**point.overrides, **BRIEF}).document)])
    assert tables.runs["throughput_mbps"].gt(0).all()
    assert len(tables.paths) == 2


def test_a_setting_without_effect_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="transport.key_drain has no effect beside encryption = off"):
        tresse.run(TEXT, {**BRIEF, "transport.key_drain": "5s"})


@pytest.mark.parametrize(("value", "text"), [(3, "3"), (0.5, "0.5"), (True, "true"), (None, "None")])
def test_an_override_that_is_no_text_is_refused_by_its_key(value: Any, text: str) -> None:
    overrides = {**BRIEF, "traffic.streams": value}
    fault = f'override traffic.streams: {value} is not a text, such as "{text}"'
    with pytest.raises(ScenarioError, match=fault):
        tresse.run(TEXT, overrides)
    with pytest.raises(ScenarioError, match=fault):
        tresse.Point({}, overrides)


def test_a_controller_that_the_scenario_does_not_name_is_warned_of() -> None:
    class Still:
        def __init__(self, _config: str) -> None: ...
        def on_ack(self, _situation: object, _ack: object) -> None: ...
        def on_loss(self, _situation: object, _ack: object) -> None: ...

    with pytest.warns(UserWarning, match='"still" is not used: name it with transport.congestion_control'):
        tresse.run(TEXT, BRIEF, controllers={"still": Still})
    tresse.run(TEXT, {**BRIEF, "sender.congestion_control": "still"}, controllers={"still": Still})


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_point_of_the_figures_is_a_valid_scenario(profile: tresse.Profile) -> None:
    for point in delays.SWEEP.points:
        resolved = tomllib.loads(_native.resolve(TEXT, {**profile.overrides, **point.overrides}))
        assert resolved["measure"] == profile.overrides["measure"]
        assert resolved["path"][1]["delay"] == f"{point.labels['delay_b_ms']}ms"
        assert resolved["path"][0]["delay"] == f"{delays.DELAY_A_MS}ms"
        assert {path["rate"] for path in resolved["path"]} == {f"{delays.RATE_MBPS:.0f}Mbit/s"}
        assert resolved["traffic"]["message_size"] in (delays.PAYLOAD_BYTES, f"{delays.PAYLOAD_BYTES}B")


@pytest.mark.parametrize("seed", [-1, 2**64, 10**40])
def test_a_seed_that_is_none_is_refused_with_those_there_are(seed: int) -> None:
    accepted = rf"seed.*{seed}.*a whole number from 0 to 18446744073709551615"
    with pytest.raises(ScenarioError, match=accepted):
        tresse.run(TEXT, BRIEF, seed=seed)


def test_a_mistyped_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ScenarioError, match=r'two\.toml.*did you mean "delay"') as caught:
        _native.run(TEXT, {"path.0.dealy": "1ms"}, 1, name="two.toml")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "overrides"),
    [("no = toml = at all", {}), (TEXT, {"measure": "soon"}), (TEXT, {"path.9.rate": "1Mbit/s"}), (TEXT, {"": ""})],
)
def test_bad_input_is_a_scenario_error(text: str, overrides: dict[str, str]) -> None:
    with pytest.raises(ScenarioError):
        _native.run(text, overrides, 1)


@pytest.mark.parametrize("error", [ScenarioError("what"), RunError("what")])
def test_errors_travel_between_processes(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == "what"


def test_every_switch_is_described() -> None:
    names = [name for name, *described in _native.switches() if all(described[1:])]
    assert "stream_map" in names
    assert "buffer_split" in names


def test_the_stub_declares_what_the_module_has() -> None:
    stub = Path(tresse.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    for name in (name for name in dir(_native) if not name.startswith("_")):
        assert re.search(rf"^(def|class) {name}[(:]", stub, re.MULTILINE), name


def test_the_stub_declares_the_constructors_that_the_module_has() -> None:
    stub = Path(tresse.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    for part in re.split(r"^class ", stub, flags=re.MULTILINE)[1:]:
        name = re.split(r"\W", part, maxsplit=1)[0]
        own = vars(getattr(_native, name))
        for constructor in ("__new__", "__init__"):
            assert (f"def {constructor}(" in part) == (constructor in own), (name, constructor)


def test_a_scenario_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(FileNotFoundError, match=r"two-paths\.toml"):
        scenarios.read("no-such.toml")
