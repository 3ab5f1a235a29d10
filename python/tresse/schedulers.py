"""Schedulers and congestion controllers written in Python: the hooks that the simulator calls, and their arguments.

Any class with these methods can be used; it need not inherit. docs/schedulers.md, docs/path-schedulers.md and
docs/congestion.md explain when each hook is called. Complete examples are `examples/schedulers/one_by_one.py` for
streams, `cleanest.py` beside it for paths, and `examples/controllers/scalable.py` for a controller. Times are seconds
of virtual time. Windows and bytes in flight count DATA chunks, headers included; messages and queues count user data.
"""

from collections.abc import Callable
from typing import Protocol

from tresse._native import Ack, Backlog, Offer, Path, Plugin, Queued, Removed, Situation, Taken, Window

__all__ = [
    "Ack",
    "Backlog",
    "Controller",
    "ControllerFactory",
    "Offer",
    "Path",
    "PathScheduler",
    "PathSchedulerFactory",
    "Plugin",
    "Queued",
    "Removed",
    "SchedulerFactory",
    "Situation",
    "StreamScheduler",
    "Taken",
    "Window",
]


class StreamScheduler(Protocol):
    """Scheduler of the streams of an association, or of one group of its streams.

    These hooks are required. Four more are optional: `on_removed(removed)`, without which a withdrawal counts as taken
    if it empties the stream; `on_packet_end()`; `set_value(stream, value)`, which refuses by raising an exception; and
    `value(stream)`, which returns a value or None.
    """

    def on_queued(self, queued: Queued, /) -> None:
        """A message was queued."""

    def next(self, path: Path, backlog: Backlog, /) -> int | None:
        """Return the stream whose data is sent next on `path`, or None to send nothing on this path now."""

    def on_taken(self, taken: Taken, /) -> None:
        """Data was taken: in most cases of the stream that `next` returned, otherwise the continuation of a message."""

    def is_empty(self) -> bool:
        """Return whether no stream has data."""


SchedulerFactory = Callable[[str], StreamScheduler] | Plugin
"""Creates a scheduler from its configuration, a text.

It is a class that takes the text and refuses it by raising an exception, or a shared object with a scheduler in C.
"""


class PathScheduler(Protocol):
    """Selects the path for the next data. The hook `on_sent(path, bytes)` is optional: new data was sent."""

    def pick(self, now: float, offer: Offer, /) -> int | None:
        """Return the open path for the next packet, or None to wait for a better one.

        If nothing is in flight, no event would end the wait, so an open path is used nevertheless.
        """


PathSchedulerFactory = Callable[[str], PathScheduler] | Plugin
"""Creates a path scheduler from its configuration, a text: a class or a shared object, as for streams."""


class Controller(Protocol):
    """Congestion controller of all paths of an association.

    Answers are a congestion window and a slow-start threshold in bytes, or None to change neither. Four more hooks are
    optional: `on_timeout(situation)` and `on_idle(situation)`, where None applies the rule of RFC 9260;
    `on_path_added(window)`, without an answer; and `pacing_rate(path)`, the largest rate of the path in bytes per
    second, where None paces at a multiple of window over round-trip time.
    """

    def on_ack(self, situation: Situation, ack: Ack, /) -> tuple[int, int] | None:
        """Data of the path was newly acknowledged: once for each SACK, before a loss that the same SACK shows."""

    def on_loss(self, situation: Situation, ack: Ack, /) -> tuple[int, int] | None:
        """Data of the path was lost or got a congestion mark, while the path was not in recovery."""


ControllerFactory = Callable[[str], Controller] | Plugin
"""Creates a controller from its configuration, a text: a class or a shared object, as for schedulers."""
