"""Readings from the trace of a run, for quantities that outcomes do not contain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tresse.traces import Trace


@dataclass(frozen=True)
class Stall:
    """An interval in which no path sent new data."""

    start_s: float
    end_s: float
    window_bytes: int
    """The smallest peer's window in this interval, in bytes."""
    timeouts: tuple[int, ...]
    """T3 expirations of each path in this interval."""


def longest_stall(trace: Trace) -> Stall | None:
    """Return the longest pause between two transmissions of new data; None if there are fewer than two."""
    new = trace.sent[~trace.sent["again"].astype(bool)]["t"].to_numpy(dtype=float)
    if new.size < 2:
        return None
    last = int(np.argmax(np.diff(new)))
    start, end = float(new[last]), float(new[last + 1])
    states = trace.states[(trace.states["t"] >= start) & (trace.states["t"] <= end)]
    by_path = (states[f"timeouts_{path}"] for path in range(trace.paths))
    timeouts = tuple(int(path.max() - path.min()) for path in by_path)
    return Stall(start, end, int(states["peer_window"].min()), timeouts)


def _stall(trace: Trace) -> dict[str, float]:
    stall = longest_stall(trace)
    if stall is None:
        return {}
    timeouts = {f"stall_timeouts_{path}": count for path, count in enumerate(stall.timeouts)}
    return {"stall_s": stall.end_s - stall.start_s, "stall_window_bytes": stall.window_bytes, **timeouts}


STALL = "stall"
READINGS: Mapping[str, Callable[[Trace], Mapping[str, float]]] = {STALL: _stall}
"""Readings by name; each returns columns for the table of runs."""
