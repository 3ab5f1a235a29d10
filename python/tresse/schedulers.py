"""Schedulers written in Python: what the simulator asks of them, and what it shows them.

Any class with these methods will do; it need not inherit. docs/schedulers.md and docs/path-schedulers.md explain when
each hook is called; `examples/schedulers/one_by_one.py` is a complete scheduler of streams, `cleanest.py` beside it one
of paths. Times are seconds of virtual time, sizes bytes of user data.
"""

from collections.abc import Callable
from typing import Protocol

from tresse._native import Backlog, Offer, Path, Plugin, Queued, Removed, Taken

__all__ = [
    "Backlog",
    "Offer",
    "Path",
    "PathScheduler",
    "PathSchedulerFactory",
    "Plugin",
    "Queued",
    "Removed",
    "SchedulerFactory",
    "StreamScheduler",
    "Taken",
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
        """Whether no stream has data."""


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
