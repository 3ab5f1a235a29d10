"""One stream after the other: a stream that has its turn keeps it until nothing of it is left.

For files on streams of their own: the first is complete early, instead of all of them late. Loses where a stream never
pauses: those behind it starve. The same policy as one_by_one.rs and one_by_one.c.
"""

from collections import deque

from tresse.schedulers import Backlog, Path, Queued, Taken


class OneByOne:
    """Streams with data, in the order in which they came."""

    def __init__(self, config: str) -> None:
        if config:
            raise ValueError(f'"{config}": no configuration is accepted')
        self.waiting: deque[int] = deque()

    def on_queued(self, queued: Queued) -> None:
        """Line up a stream that had nothing to send."""
        if queued.was_idle:
            self.waiting.append(queued.stream)

    def next(self, _path: Path, _backlog: Backlog) -> int | None:
        """Stay with the first."""
        return self.waiting[0] if self.waiting else None

    def on_taken(self, taken: Taken) -> None:
        """Let a stream go that has nothing left."""
        if taken.stream_empty:
            self.waiting.remove(taken.stream)

    def is_empty(self) -> bool:
        """Nobody waits."""
        return not self.waiting
