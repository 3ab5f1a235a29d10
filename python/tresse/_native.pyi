"""Interface of the simulator for Python."""

from collections.abc import Callable
from os import PathLike
from typing import Self

class ScenarioError(ValueError):
    """A scenario, or an override of it, is not accepted; the text names the key and the accepted values."""

class RunError(RuntimeError):
    """A run could not be finished."""

class Queued:
    """A message was queued."""

    @property
    def stream(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Its length in bytes of user data."""
    @property
    def was_idle(self) -> bool:
        """True if the stream had no data to send before."""
    @property
    def at(self) -> float:
        """Time at which the application sent the message."""

class Taken:
    """Data of a stream was put into a packet."""

    @property
    def stream(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def message_done(self) -> bool:
        """True if this was the end of a message."""
    @property
    def turn_over(self) -> bool:
        """True if another stream may be selected now: the message ended, or fragments are interleaved."""
    @property
    def stream_empty(self) -> bool:
        """True if the stream has no more data to send."""

class Removed:
    """A message was withdrawn before it was sent completely, for example because its lifetime ended."""

    @property
    def stream(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Bytes of the message that were not sent yet."""
    @property
    def ahead(self) -> int:
        """Number of messages of the stream that waited before it."""
    @property
    def stream_empty(self) -> bool: ...

class Offer:
    """New data waits, and these paths could carry it."""

    @property
    def paths(self) -> list[Path]:
        """Every path that may carry new data, open or not, by ascending number."""
    @property
    def unsent(self) -> int:
        """Bytes of user data on all streams that wait to be sent."""
    @property
    def buffer_limited(self) -> bool:
        """True if the send buffer limits the application: more data follows what waits."""
    @property
    def streams_bound(self) -> bool:
        """True if the stream map binds streams to paths: a path may then carry only a part of what waits."""
    @property
    def peer_window(self) -> int:
        """Room in the peer's receiver window besides the bytes in flight: bytes of DATA chunks, headers included."""
    def open(self) -> list[Path]:
        """Return the paths on which a packet may be sent now."""

class Path:
    """A path for new data. Times are in seconds, sizes in bytes of DATA chunks, headers included."""

    @property
    def id(self) -> int: ...
    @property
    def primary(self) -> bool: ...
    @property
    def state(self) -> str: ...
    @property
    def open(self) -> bool:
        """True if a packet of new data may be sent on the path now."""
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
        """Bytes that the congestion window still admits."""
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
        """Rate in bit/s at which data was acknowledged recently; 0 if not known yet."""
    @property
    def loss(self) -> float: ...
    @property
    def last_sent(self) -> float: ...

class Backlog:
    """The unsent data of each stream; a stream that was never used has none."""

    def unsent_bytes(self, stream: int) -> int:
        """Return the bytes that are not sent yet."""

    def messages(self, stream: int) -> int:
        """Return the number of messages that are not sent, or not completely."""

    def head_bytes(self, stream: int) -> int:
        """Return the bytes of the first of these messages that are not sent yet."""

class Window:
    """The congestion window of a path. Times are in seconds, sizes in bytes of DATA chunks, headers included."""

    @property
    def path(self) -> int: ...
    @property
    def cwnd(self) -> int: ...
    @property
    def ssthresh(self) -> int: ...
    @property
    def packet(self) -> int:
        """Size of a DATA chunk in a full packet."""
    @property
    def srtt(self) -> float | None: ...
    @property
    def min_rtt(self) -> float | None:
        """The shortest round trip since the path was added."""
    @property
    def usable(self) -> bool:
        """True if the path is confirmed and active. Controllers that couple paths should leave out the others."""
    @property
    def recovering(self) -> bool:
        """True if the path is in recovery from a loss."""

class Situation:
    """Time and path of an event, and the windows of all paths. Its values change: read them again at each call."""

    @property
    def now(self) -> float: ...
    @property
    def path(self) -> int:
        """The path to which the answer applies."""
    @property
    def window(self) -> Window:
        """The window of this path."""
    @property
    def windows(self) -> list[Window]:
        """The windows of all paths, by index."""

class Ack:
    """Effect of a SACK on one path, in bytes of DATA chunks, headers included."""

    @property
    def bytes(self) -> int:
        """Bytes newly acknowledged."""
    @property
    def flight_before(self) -> int: ...
    @property
    def flight_after(self) -> int:
        """Bytes in flight after the SACK, before more data is sent."""
    @property
    def may_grow(self) -> bool:
        """True if the path is not in recovery, and the rule for window growth under CMT (CUC) permits growth."""
    @property
    def fully_used(self) -> bool:
        """True if the window was fully used: otherwise RFC 9260 does not let it grow (section 7.2)."""
    @property
    def lost(self) -> int:
        """Bytes detected as lost since the last acknowledgement of data of this path."""
    @property
    def rtt(self) -> float | None:
        """Round-trip time of the newest acknowledged data, if that was sent only once."""
    @property
    def rate(self) -> int:
        """Rate of delivery over the last round trip in bytes per second; 0 if not known."""

class Plugin:
    """A scheduler of streams or paths or a congestion controller, from a shared object (docs/schedulers.md).

    Raises `ValueError` if the file is not such an object. Its code has all rights of this process.
    """

    def __new__(cls, path: str | PathLike[str]) -> Self: ...
    @property
    def name(self) -> str:
        """The name that the object has for it."""

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

    `overrides` are dotted keys and values in their text form, as `tresse sim --set` takes them; `seed` replaces the
    seed of the scenario; errors call the scenario `name`; `schedulers` are stream schedulers by the names that the
    scenario may use, `path_schedulers` path schedulers, `controllers` congestion controllers. Other Python threads
    continue meanwhile.

    Raises `ScenarioError` for invalid input and `RunError` if the run fails.
    """

def trace(scenario_toml: str, overrides: dict[str, str], seed: int, *, name: str = "scenario") -> str:
    """Run the scenario with `seed` and return its trace, with one JSON object on each line (docs/scenarios.md).

    Raises the same exceptions as `run`.
    """

def document(scenario_toml: str, *, name: str = "scenario") -> str:
    """Return the keys and values of a scenario as JSON text, as the simulator reads them.

    Raises `ScenarioError` if the simulator refuses the text.
    """

def idle_settings(scenario_toml: str, overrides: dict[str, str], *, name: str = "scenario") -> list[str]:
    """Return a sentence for each setting in the scenario that has no effect because of others."""

def resolve(scenario_toml: str, overrides: dict[str, str], *, name: str = "scenario") -> str:
    """Return the scenario as TOML text with overrides applied and every default filled in."""

def switches() -> list[tuple[str, str, str, str]]:
    """Return name, default, accepted values and documentation of every association switch."""

def version() -> str:
    """Return the version of the native module."""
