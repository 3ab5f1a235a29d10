"""Stream schedulers written in Python, in real associations of the simulator."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from examples import EXAMPLES, compiled, example

import tresse
from tresse.schedulers import (
    Backlog,
    Offer,
    PathSchedulerFactory,
    Plugin,
    Queued,
    SchedulerFactory,
    StreamScheduler,
    Taken,
)
from tresse.schedulers import Path as View

SCENARIO = """
settle = "0s"
measure = "60s"
[[path]]
rate = "10Mbit/s"
delay = "10ms"
loss = "1%"
[[path]]
rate = "2Mbit/s"
delay = "30ms"
[traffic]
streams = 3
volume = "300kB"
message_size = "3000B"
[transport]
stream_scheduler = "mine"
"""


class LowestFirst:
    """The lowest stream first; what a hook is given is checked on the way."""

    def __init__(self, config: str) -> None:
        self.config = config
        self.waiting: set[int] = set()

    def on_queued(self, queued: Queued) -> None:
        """Remember the stream."""
        assert queued.bytes == 3000
        assert 0 <= queued.at < 60
        self.waiting.add(queued.stream)

    def next(self, path: View, backlog: Backlog) -> int | None:
        """The lowest."""
        assert (path.state, path.mtu > 1000, path.cwnd > 0) == ("active", True, True)
        for stream in self.waiting:
            assert 0 < backlog.head_bytes(stream) <= backlog.unsent_bytes(stream)
            assert backlog.messages(stream) > 0
        return min(self.waiting, default=None)

    def on_taken(self, taken: Taken) -> None:
        """Forget the stream if that was all."""
        if taken.stream_empty:
            self.waiting.remove(taken.stream)

    def is_empty(self) -> bool:
        """Nobody waits."""
        return not self.waiting


def run(factory: SchedulerFactory, config: str = "") -> dict[str, object]:
    """Run the scenario until all has arrived, and return what became of the association."""
    overrides = {"transport.stream_scheduler_config": config} if config else {}
    outcome = tresse.run(SCENARIO, overrides, schedulers={"mine": factory})
    assert outcome.completed_s is not None
    assert sum(stream.messages for stream in outcome.streams) == 100
    association: dict[str, object] = outcome.document["association"]
    return association | {"trace_hash": outcome.run.trace_hash}


def worked_example() -> Callable[[str], StreamScheduler]:
    """That of stream schedulers."""
    factory: Callable[[str], StreamScheduler] = example("schedulers/one_by_one.py").OneByOne
    return factory


def test_the_same_policy_in_python_and_in_c_sends_the_same_packets(tmp_path: Path) -> None:
    plugin = Plugin(compiled("schedulers/one_by_one.c", tmp_path))
    assert plugin.name == "one_by_one"
    python, c = run(worked_example()), run(plugin)
    assert python["trace_hash"] == c["trace_hash"]
    assert "scheduler_failures" not in python


def test_hooks_are_given_what_they_need_and_the_configuration_as_it_is() -> None:
    made: list[LowestFirst] = []

    def factory(config: str) -> LowestFirst:
        made.append(LowestFirst(config))
        return made[-1]

    assert "scheduler_failures" not in run(factory, "as it is")
    assert {scheduler.config for scheduler in made} == {"as it is"}
    assert all(scheduler.is_empty() for scheduler in made)


class Failing(LowestFirst):
    """Divides by zero at its tenth question."""

    asked = 0

    def next(self, path: View, backlog: Backlog) -> int | None:
        """The lowest, for a while."""
        self.asked += 1
        assert 10 // max(10 - self.asked, 0)
        return super().next(path, backlog)


class Silent(LowestFirst):
    """Never names a stream."""

    def next(self, path: View, backlog: Backlog) -> int | None:
        """Name none."""
        return None


class Absurd(LowestFirst):
    """Names what cannot be."""

    def next(self, path: View, backlog: Backlog) -> int | None:
        """Name a stream below zero."""
        return -7


class Deaf(LowestFirst):
    """Raises an exception when it is told something."""

    def on_taken(self, taken: Taken) -> None:
        """Refuse to hear."""
        raise RuntimeError("what about\nthe message?")


@pytest.mark.parametrize(
    ("scheduler", "fault"),
    [
        (Failing, "mine: ZeroDivisionError: integer division or modulo by zero (test_schedulers.py, line "),
        (Silent, "mine: it named no stream although data waits and every path could take it"),
        (Absurd, "mine: it answered -7, which is no stream"),
        (Deaf, "mine: RuntimeError: what about the message? (test_schedulers.py, line "),
    ],
)
def test_first_come_takes_over_from_one_that_misbehaves_and_nothing_is_lost(
    scheduler: Callable[[str], StreamScheduler], fault: str
) -> None:
    with pytest.warns(RuntimeWarning, match="a built-in one took its place"):
        association = run(scheduler)
    failures = association["scheduler_failures"]
    assert isinstance(failures, list)
    assert len(failures) == 1
    assert failures[0].startswith(f"stream scheduler {fault}")
    assert "\n" not in failures[0]


def test_a_class_that_refuses_its_configuration_or_lacks_a_hook_is_a_scenario_error() -> None:
    refused = r'scheduler "mine" refused its configuration: ValueError: "x": no configuration is accepted'
    with pytest.raises(tresse.ScenarioError, match=refused):
        run(worked_example(), "x")
    with pytest.raises(tresse.ScenarioError, match=r'object has no "on_queued"'):
        run(lambda _config: object())  # type: ignore[arg-type, return-value]
    with pytest.raises(tresse.ScenarioError, match="priority"):
        tresse.run(SCENARIO, schedulers={"priority": LowestFirst})


def test_an_interrupt_within_a_hook_ends_the_run() -> None:
    class Interrupted(LowestFirst):
        def next(self, path: View, backlog: Backlog) -> int | None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), warnings.catch_warnings():
        run(Interrupted)


def test_what_is_no_object_with_a_scheduler_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one_by_one\.c: it cannot be loaded: "):
        Plugin(EXAMPLES / "schedulers/one_by_one.c")


def run_over(factory: PathSchedulerFactory, config: str = "", **overrides: str) -> list[float]:
    """Run the scenario with a path scheduler until all has arrived; Mbit/s on each path."""
    settings = {
        "transport.stream_scheduler": "first_come",
        "transport.path_scheduler": "mine",
        "transport.path_scheduler_config": config,
    }
    outcome = tresse.run(SCENARIO, settings | overrides, path_schedulers={"mine": factory})
    assert outcome.completed_s is not None
    assert sum(stream.messages for stream in outcome.streams) == 100
    return [path.wire_mbps for path in outcome.paths]


def test_a_path_scheduler_sees_the_paths_and_says_where_data_goes() -> None:
    class Second:
        def __init__(self, _config: str) -> None:
            self.sent = 0

        def pick(self, now: float, offer: Offer) -> int | None:
            """Only ever path 1, once it is there."""
            assert 0 <= now < 60
            assert (offer.unsent > 0, offer.peer_window >= 0) == (True, True)
            assert [path.id for path in offer.paths] == list(range(len(offer.paths)))
            assert [path.id for path in offer.open()] == [path.id for path in offer.paths if path.open]
            return next((path.id for path in offer.open() if path.id == 1), None)

        def on_sent(self, path: int, size: int) -> None:
            """Is told of everything."""
            assert path in (0, 1)
            self.sent += size

    first, second = run_over(Second)
    assert second > 9 * first


def test_the_worked_example_leaves_a_lossy_path() -> None:
    first, second = run_over(
        example("schedulers/cleanest.py").Cleanest, **{"path.0.loss": "20%", "path.1.rate": "10Mbit/s"}
    )
    assert second > 2 * first
    with pytest.raises(tresse.ScenarioError, match=r'"-1" is no percentage above 0, such as 0\.5'):
        run_over(example("schedulers/cleanest.py").Cleanest, "-1")


def test_the_same_path_scheduler_in_python_and_in_c_sends_as_much_on_each_path(tmp_path: Path) -> None:
    plugin = Plugin(compiled("schedulers/cleanest.c", tmp_path))
    assert run_over(plugin, "2") == run_over(example("schedulers/cleanest.py").Cleanest, "2")
    with pytest.raises(tresse.ScenarioError, match="it is a scheduler of paths"):
        run(plugin)


def test_in_order_takes_over_from_a_path_scheduler_that_misbehaves() -> None:
    class Broken:
        def __init__(self, _config: str) -> None:
            pass

        def pick(self, _now: float, _offer: Offer) -> int | None:
            """Name a path that nobody has."""
            return 77

    with pytest.warns(RuntimeWarning, match="path scheduler mine: it named path 77, which can take no data now"):
        run_over(Broken)
    Broken.pick = lambda _self, _now, _offer: "0"  # type: ignore[assignment, method-assign, return-value]
    with pytest.warns(RuntimeWarning, match="path scheduler mine: it answered '0': the id of an open path is accepted"):
        run_over(Broken)
    with pytest.raises(tresse.ScenarioError, match=r'object has no "pick"'):
        run_over(lambda _config: object())  # type: ignore[arg-type, return-value]
