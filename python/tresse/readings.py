"""What is read off the trace of a run, for what no outcome tells."""

from dataclasses import dataclass

import numpy as np

from tresse.traces import Trace


@dataclass(frozen=True)
class Stall:
    """The longest time in which no path sent new data."""

    start_s: float
    end_s: float
    window_bytes: int
    """The peer's window, at its smallest meanwhile."""
    timeouts: int
    """Expirations on path 1 from the last new data until the next."""


def longest_stall(trace: Trace) -> Stall:
    """The longest pause between two transmissions of new data."""
    new = trace.sent[~trace.sent["again"].astype(bool)]["t"].to_numpy(dtype=float)
    last = int(np.argmax(np.diff(new)))
    start, end = float(new[last]), float(new[last + 1])
    states = trace.states[(trace.states["t"] >= start) & (trace.states["t"] <= end)]
    timeouts = states["timeouts_1"]
    return Stall(start, end, int(states["peer_window"].min()), int(timeouts.max() - timeouts.min()))
