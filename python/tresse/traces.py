"""Tables of the traces that `tresse sim --trace` writes (docs/scenarios.md has the format)."""

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

_VERSION = 1
_COLUMNS = {
    "sent": ["t", "path", "tsn", "bytes", "again", "dropped"],
    "arrived": ["t", "path", "tsn", "again"],
    "sack": ["t", "path", "tsn", "window"],
    "state": ["t", "peer_window", "send_buffer"],
}
_BY_PATH = ["cwnd", "ssthresh", "flight", "limit", "timeouts"]


class TraceError(ValueError):
    """A text is not a trace, or a trace of another version."""


@dataclass(frozen=True)
class Trace:
    """The trace of one run: a table for each kind of event; times in seconds, sizes in bytes."""

    name: str
    seed: int
    paths: int
    sent: pd.DataFrame
    """Columns t, path, tsn, bytes, again, dropped."""
    arrived: pd.DataFrame
    """Columns t, path, tsn, again."""
    sacks: pd.DataFrame
    """Columns t, path, tsn, window."""
    states: pd.DataFrame
    """Columns t, peer_window, send_buffer, and for each path p cwnd_p, ssthresh_p, flight_p, limit_p, timeouts_p."""

    @property
    def span_s(self) -> tuple[float, float] | None:
        """Times of the first and the last event; `None` if there are no events."""
        times = pd.concat([table["t"] for table in self._tables if not table.empty] or [pd.Series(dtype=float)])
        return None if times.empty else (float(times.min()), float(times.max()))

    def between(self, start_s: float, end_s: float) -> "Trace":
        """Return only the events from `start_s` to `end_s`."""
        cut = [table[(table["t"] >= start_s) & (table["t"] <= end_s)] for table in self._tables]
        return Trace(self.name, self.seed, self.paths, *cut)

    @property
    def _tables(self) -> tuple[pd.DataFrame, ...]:
        return (self.sent, self.arrived, self.sacks, self.states)


def parse(text: str, source: str = "trace") -> Trace:
    """Return the trace in `text`; raise `TraceError` with `source` and the number of the invalid line."""
    # Not `splitlines`: a name may contain other characters that end lines.
    lines = text.removesuffix("\n").split("\n")
    head = _line(lines[0], 1, source)
    if head.get("tresse_trace") != _VERSION:
        raise TraceError(f'{source}: line 1 is not the head of a trace, {{"tresse_trace": {_VERSION}, …}}')
    paths = head.get("paths")
    if not isinstance(paths, int):
        raise TraceError(f'{source}: line 1 does not say how many paths there are, such as "paths": 2')
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _COLUMNS}
    for number, line in enumerate(lines[1:], 2):
        entry = _line(line, number, source)
        kind = entry.pop("e", None)
        if kind not in rows:
            raise TraceError(f"{source}: line {number}: {kind!r} is none of {', '.join(rows)}")
        if missing := [key for key in _COLUMNS[kind] + (_BY_PATH if kind == "state" else []) if key not in entry]:
            raise TraceError(f"{source}: line {number}: {kind!r} lacks {', '.join(missing)}")
        rows[kind].append(_flat(entry) if kind == "state" else entry)
    tables = [pd.DataFrame(rows[kind], columns=None if rows[kind] else _COLUMNS[kind]) for kind in rows]
    return Trace(str(head.get("name", "")), int(head.get("seed", 0)), paths, *tables)


def _line(line: str, number: int, source: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise TraceError(f"{source}: line {number} is not JSON: {error}") from None
    if not isinstance(entry, dict):
        raise TraceError(f"{source}: line {number} is not a JSON object")
    return entry


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """Convert lists by path into one column for each path."""
    flat: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, list):
            flat |= {f"{key}_{path}": one for path, one in enumerate(value)}
        else:
            flat[key] = value
    return flat
