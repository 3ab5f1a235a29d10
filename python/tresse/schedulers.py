"""Schedulers and congestion controllers written in Python: what the simulator asks of them, and what it shows them.

Any class with these methods will do; it need not inherit. docs/schedulers.md, docs/path-schedulers.md and
docs/congestion.md explain when each hook is called; `examples/schedulers/one_by_one.py` is a complete scheduler of
streams, `cleanest.py` beside it one of paths, `examples/controllers/scalable.py` a controller. Times are seconds of
virtual time. Windows and what is in flight are bytes of DATA chunks, headers included; messages and queues are bytes of
user data.
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
    """Orders the streams of an association, or of one group of its streams.

    These hooks have to be there. Four more may be: `on_removed(removed)`, without which a withdrawal counts as
    taken when it empties the stream; `on_packet_end()`; `set_value(stream, value)`, which refuses by raising an
    exception; and `value(stream)`, which returns a value or None.
    """

    def on_queued(self, queued: Queued, /) -> None:
        """A message was queued."""

    def next(self, path: Path, backlog: Backlog, /) -> int | None:
        """The stream whose data is to leave next on `path`, or None for nothing on this path now."""

    def on_taken(self, taken: Taken, /) -> None:
        """Data was taken: mostly what `next` named, or the continuation of a message."""

    def is_empty(self) -> bool:
        """Return whether no stream has data."""


SchedulerFactory = Callable[[str], StreamScheduler] | Plugin
"""Makes a scheduler of its configuration, a text: a class that takes it, and refuses by raising an exception; or a
shared object with one written in C."""


class PathScheduler(Protocol):
    """Says which path gets the next data. `on_sent(path, bytes)` may be there too: a packet of new data has left."""

    def pick(self, now: float, offer: Offer, /) -> int | None:
        """The open path for the next packet, or None to wait for a better one.

        Where nothing is in flight nothing would end a wait, and an open path is used all the same.
        """


PathSchedulerFactory = Callable[[str], PathScheduler] | Plugin
"""Makes a scheduler of its configuration, a text: a class or a shared object, as with streams."""


class Controller(Protocol):
    """Says how much each path of an association may carry.

    Answers are a congestion window and a slow-start threshold in bytes, or None to leave both as they are. Four more
    hooks may be there: `on_timeout(situation)` and `on_idle(situation)`, where None does as RFC 9260 says;
    `on_path_added(window)`, without an answer; and `pacing_rate(path)`, the most that the path sends in bytes a second,
    where None paces at a multiple of window over round-trip time.
    """

    def on_ack(self, situation: Situation, ack: Ack, /) -> tuple[int, int] | None:
        """Data of the path was newly acknowledged: once for each SACK, before a loss in the same SACK."""

    def on_loss(self, situation: Situation, ack: Ack, /) -> tuple[int, int] | None:
        """Data of the path was lost, or met a congestion mark, and nothing was being made good before."""


ControllerFactory = Callable[[str], Controller] | Plugin
"""Makes a controller of its configuration, a text: a class or a shared object, as with schedulers."""
