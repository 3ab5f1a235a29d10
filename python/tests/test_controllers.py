"""Congestion controllers written in Python, in real associations of the simulator."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from examples import compiled, example

import tresse
from tresse.schedulers import Ack, Controller, ControllerFactory, Plugin, Situation, Window

SCENARIO = """
settle = "0s"
measure = "60s"
[[path]]
rate = "10Mbit/s"
delay = "10ms"
loss = "3%"
[[path]]
rate = "2Mbit/s"
delay = "30ms"
[traffic]
streams = 2
volume = "300kB"
message_size = "3000B"
[transport]
congestion_control = "mine"
"""


def run(factory: ControllerFactory, config: str = "") -> dict[str, object]:
    """Run the scenario until all has arrived, and return what became of the association."""
    overrides = {"transport.congestion_control_config": config} if config else {}
    outcome = tresse.run(SCENARIO, overrides, controllers={"mine": factory})
    assert outcome.completed_s is not None
    assert sum(stream.messages for stream in outcome.streams) == 100
    association: dict[str, object] = outcome.document["association"]
    return association | {"trace_hash": outcome.run.trace_hash}


def test_the_same_controller_in_python_and_in_c_sends_the_same_packets(tmp_path: Path) -> None:
    plugin = Plugin(compiled("controllers/scalable.c", tmp_path))
    assert plugin.name == "scalable"
    scalable: Callable[[str], Controller] = example("controllers/scalable.py").Scalable
    python, c = run(scalable, "25"), run(plugin, "25")
    assert python["trace_hash"] == c["trace_hash"]
    assert "scheduler_failures" not in python
    assert python["trace_hash"] != run(scalable)["trace_hash"], "the configuration makes a difference"


class Seven:
    """Seven packets on each path, whatever happens; what a hook is given is checked on the way."""

    def __init__(self, _config: str) -> None:
        self.paths: list[int] = []

    def on_path_added(self, window: Window) -> None:
        """Remember the path."""
        assert window.cwnd >= window.packet > 1000
        assert not window.recovering
        self.paths.append(window.path)

    def on_ack(self, situation: Situation, ack: Ack) -> tuple[int, int] | None:
        """Set the window to what it is to be."""
        window = situation.window
        assert 0 < situation.now < 60
        assert [seen.path for seen in situation.windows] == self.paths
        assert situation.windows[situation.path].cwnd == window.cwnd
        assert ack.bytes > 0
        assert ack.fully_used == (ack.flight_before >= window.cwnd)
        return 7 * window.packet, 7 * window.packet

    def on_loss(self, situation: Situation, _ack: Ack) -> tuple[int, int] | None:
        """Leave the window as it is."""
        assert situation.window.recovering
        return None

    def on_timeout(self, situation: Situation) -> tuple[int, int] | None:
        """The same."""
        window = situation.window
        return window.cwnd, window.ssthresh

    def on_idle(self, _situation: Situation) -> tuple[int, int] | None:
        """As RFC 9260 says."""
        return None


def test_a_controller_sees_the_windows_and_says_how_large_they_are() -> None:
    outcome = tresse.run(SCENARIO, controllers={"mine": Seven})
    assert not outcome.association.scheduler_failures


class Paced(Seven):
    """Sends 25,000 bytes a second on each path, and sees what a rate has to go by."""

    def on_ack(self, situation: Situation, ack: Ack) -> tuple[int, int] | None:
        """Check the views."""
        window = situation.window
        assert ack.lost >= 0
        assert ack.rate >= 0
        if ack.rtt is not None and window.min_rtt is not None:
            assert 0.02 < window.min_rtt <= ack.rtt
        return 7 * window.packet, 7 * window.packet

    def pacing_rate(self, path: int) -> float | None:
        """A fifth of a megabit a second."""
        return 25_000.0 if path in self.paths else None


def test_a_controller_sets_the_pace() -> None:
    outcome = tresse.run(SCENARIO, controllers={"mine": Paced})
    assert outcome.association.scheduler_failures == ()
    assert outcome.completed_s is not None
    # 300 kB over two paths at 25 kB/s each, headers included, less a burst of ten packets on each.
    assert 5 < outcome.completed_s < 12, outcome.completed_s


class Failing(Seven):
    """Divides by zero at a loss."""

    def on_loss(self, situation: Situation, _ack: Ack) -> tuple[int, int] | None:
        """Fail."""
        return 10 // (situation.path - situation.path), 0


class Closed(Seven):
    """Lets nothing through."""

    def on_ack(self, _situation: Situation, _ack: Ack) -> tuple[int, int] | None:
        """Close the window."""
        return 0, 0


class Negative(Seven):
    """Owes windows."""

    def on_ack(self, _situation: Situation, _ack: Ack) -> tuple[int, int] | None:
        """Answer what cannot be."""
        return -5, 1452


class Vague(Seven):
    """Answers with what is no number of bytes."""

    def on_ack(self, _situation: Situation, _ack: Ack) -> tuple[int, int] | None:
        """Answer not a number."""
        return float("nan"), 1452  # type: ignore[return-value]


class Rateless(Seven):
    """Answers with what is no rate."""

    def pacing_rate(self, _path: int) -> float | None:
        """Answer not a number."""
        return float("nan")


class Backward(Seven):
    """Paces backward."""

    def pacing_rate(self, _path: int) -> float | None:
        """Answer what cannot be."""
        return -1.0


@pytest.mark.parametrize(
    ("controller", "fault"),
    [
        (Failing, r"ZeroDivisionError: .* \(test_controllers\.py, line "),
        (Closed, r"it set the window of path \d to 0 bytes: \d+ to 1073741824 are accepted"),
        (Negative, r"it answered \(-5, 1452\), which is no window and threshold"),
        (Vague, r"it answered \(nan, 1452\): a window and a threshold in whole bytes are accepted, or None"),
        (Rateless, r"it answered NaN: a rate in bytes per second is accepted, or None"),
        (Backward, r"it answered -1: a rate in bytes per second is accepted, or None"),
    ],
)
def test_rfc_9260_takes_over_from_one_that_misbehaves_and_nothing_is_lost(
    controller: Callable[[str], Controller], fault: str
) -> None:
    with pytest.warns(RuntimeWarning, match=f"congestion controller mine: {fault}"):
        association = run(controller)
    failures = association["scheduler_failures"]
    assert isinstance(failures, list)
    assert len(failures) == 1


def test_a_class_that_refuses_its_configuration_or_lacks_a_hook_is_a_scenario_error(tmp_path: Path) -> None:
    refused = r'congestion controller "mine" refused its configuration: ValueError: "100" is no percentage'
    with pytest.raises(tresse.ScenarioError, match=refused):
        run(example("controllers/scalable.py").Scalable, "100")
    with pytest.raises(tresse.ScenarioError, match=r'object has no "on_ack"'):
        run(lambda _config: object())  # type: ignore[arg-type, return-value]
    with pytest.raises(tresse.ScenarioError, match="it is a scheduler of streams"):
        run(Plugin(compiled("schedulers/one_by_one.c", tmp_path)))


def test_an_interrupt_within_a_hook_ends_the_run() -> None:
    class Interrupted(Seven):
        def on_ack(self, _situation: Situation, _ack: Ack) -> tuple[int, int] | None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), warnings.catch_warnings():
        run(Interrupted)
