"""The simulator, as Python sees it."""

from collections.abc import Callable
from os import PathLike
from typing import Self

class ScenarioError(ValueError):
    """A scenario, or an override of it, that is not accepted; the text names the key and what would be."""

class RunError(RuntimeError):
    """A run that could not be finished."""

class Queued:
    """A message was queued."""

    @property
    def stream(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Its length."""
    @property
    def was_idle(self) -> bool:
        """Whether the stream had nothing to send before."""
    @property
    def at(self) -> float:
        """When the application gave it."""

class Taken:
    """Data of a stream went into a packet."""

    @property
    def stream(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def message_done(self) -> bool:
        """Whether this was the end of a message."""
    @property
    def turn_over(self) -> bool:
        """Whether another stream may be served now: the message ended, or fragments are interleaved."""
    @property
    def stream_empty(self) -> bool:
        """Whether the stream has nothing left to send."""

class Removed:
    """A message was withdrawn before it was sent, because it expired for instance."""

    @property
    def stream(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Of it that were still to be sent."""
    @property
    def ahead(self) -> int:
        """Messages of the stream that were waiting before it."""
    @property
    def stream_empty(self) -> bool: ...

class Offer:
    """New data waits, and these paths could carry it."""

    @property
    def paths(self) -> list[Path]:
        """Every path that may carry new data, open or not, by ascending number."""
    @property
    def unsent(self) -> int:
        """What waits to be sent, on all streams: bytes of user data."""
    @property
    def peer_window(self) -> int:
        """What the peer can still take beside what is in flight: bytes of DATA chunks, headers included."""
    def open(self) -> list[Path]:
        """The paths on which a packet may leave now."""

class Path:
    """A path that asks, or could carry something. Times are seconds, sizes bytes of DATA chunks, headers included."""

    @property
    def id(self) -> int: ...
    @property
    def primary(self) -> bool: ...
    @property
    def state(self) -> str: ...
    @property
    def open(self) -> bool:
        """Whether a packet of new data may leave on it now."""
    @property
    def recovering(self) -> bool: ...
    @property
    def cwnd(self) -> int: ...
    @property
    def ssthresh(self) -> int: ...
    @property
    def flight(self) -> int: ...
    @property
    def room(self) -> int:
        """What the congestion window still admits."""
    @property
    def srtt(self) -> float | None: ...
    @property
    def rttvar(self) -> float: ...
    @property
    def rtt_range(self) -> tuple[float, float]: ...
    @property
    def rto(self) -> float: ...
    @property
    def mtu(self) -> int: ...
    @property
    def rate(self) -> int:
        """At which data was lately acknowledged, bit/s; 0 when not yet known."""
    @property
    def loss(self) -> float: ...
    @property
    def last_sent(self) -> float: ...

class Backlog:
    """What waits on each stream; a stream that was never used has nothing."""

    def unsent_bytes(self, stream: int) -> int:
        """Bytes not yet sent."""

    def messages(self, stream: int) -> int:
        """Messages not yet sent, or not to their end."""

    def head_bytes(self, stream: int) -> int:
        """Bytes not yet sent of the first of them."""

class Window:
    """The congestion window of a path. Times are seconds, sizes bytes of DATA chunks, headers included."""

    @property
    def path(self) -> int: ...
    @property
    def cwnd(self) -> int: ...
    @property
    def ssthresh(self) -> int: ...
    @property
    def packet(self) -> int:
        """The size of a DATA chunk in a full packet."""
    @property
    def srtt(self) -> float | None: ...
    @property
    def min_rtt(self) -> float | None:
        """The shortest round trip since the path was added."""
    @property
    def usable(self) -> bool:
        """Whether the path is confirmed and active. What couples paths had better leave out the others."""
    @property
    def recovering(self) -> bool:
        """Whether a loss is being made good."""

class Situation:
    """When something happened to one path, and how the windows of all stand. They change: look anew each time."""

    @property
    def now(self) -> float: ...
    @property
    def path(self) -> int:
        """The path that the answer is for."""
    @property
    def window(self) -> Window:
        """That of this path."""
    @property
    def windows(self) -> list[Window]:
        """Those of all paths, by position."""

class Ack:
    """What a SACK said about one path, in bytes of DATA chunks, headers included."""

    @property
    def bytes(self) -> int:
        """Newly acknowledged."""
    @property
    def flight_before(self) -> int: ...
    @property
    def flight_after(self) -> int:
        """In flight after the SACK, before anything else is sent."""
    @property
    def may_grow(self) -> bool:
        """Whether nothing is being made good, and the rule for growth under CMT agrees."""
    @property
    def fully_used(self) -> bool:
        """Whether the window was used to the full: RFC 9260 lets no other grow."""
    @property
    def lost(self) -> int:
        """Found to be lost since data of the path was acknowledged before."""
    @property
    def rtt(self) -> float | None:
        """The round trip of the newest data acknowledged, if it was sent only once."""
    @property
    def rate(self) -> int:
        """Delivered over the last round trip, bytes a second; 0 while not known."""

class Plugin:
    """A scheduler of streams or of paths or a congestion controller, out of a shared object (docs/schedulers.md).

    Raises `ValueError` for a file that is none. Its code runs with all rights of this process.
    """

    def __new__(cls, path: str | PathLike[str]) -> Self: ...
    @property
    def name(self) -> str:
        """The name that the object gives it."""

def run(
    scenario_toml: str,
    overrides: dict[str, str],
    seed: int | None = None,
    *,
    name: str = "scenario",
    schedulers: dict[str, Callable[[str], object] | Plugin] = ...,
    path_schedulers: dict[str, Callable[[str], object] | Plugin] = ...,
    controllers: dict[str, Callable[[str], object] | Plugin] = ...,
) -> str:
    """Run the scenario and return the outcome document as JSON text.

    `overrides` are dotted keys and values in their text form, as `tresse sim --set` takes them; `seed` takes the
    place of the scenario's own; `name` is what errors call the scenario; `schedulers` are stream schedulers by the
    names that the scenario may use, `path_schedulers` path schedulers, `controllers` congestion controllers. Other
    Python threads run meanwhile.

    Raises `ScenarioError` for bad input and `RunError` when the run fails.
    """

def trace(scenario_toml: str, overrides: dict[str, str], seed: int, *, name: str = "scenario") -> str:
    """Run the scenario with `seed` and return its trace, one JSON object a line (docs/scenarios.md).

    Raises as `run`.
    """

def document(scenario_toml: str, *, name: str = "scenario") -> str:
    """Return the keys and values of a scenario as JSON text: what the simulator reads.

    Raises `ScenarioError` where it refuses the text.
    """

def idle_settings(scenario_toml: str, overrides: dict[str, str], *, name: str = "scenario") -> list[str]:
    """The settings that the scenario names and that have no effect beside others, a sentence for each."""

def resolve(scenario_toml: str, overrides: dict[str, str], *, name: str = "scenario") -> str:
    """Return the scenario as TOML text with overrides applied and every default filled in."""

def switches() -> list[tuple[str, str, str, str]]:
    """Return name, default, accepted values and documentation of every association switch."""

def version() -> str:
    """Return the version of the native module."""
