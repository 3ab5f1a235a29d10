"""Outcome documents as tidy tables: one row a run, one a stream and run, one a path and run, one a sample and path.

Units are in the column names, as they are in the document. A table's first columns tell the point apart.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from tresse.store import write_atomically
from tresse.sweep import Label, Point

LIMITS = (
    "nothing",
    "full",
    "congestion_window",
    "pacing",
    "burst",
    "receive_buffer",
    "send_buffer",
    "scheduler",
    "application",
    "host",
    "path_down",
)
"""What can keep a path from sending; `limit_<name>` is the share of time under it."""


DELAYS = ("mean", "p50", "p95", "p99")
"""What is told of the distribution of message delays, as `delay_<name>_ms`."""


@dataclass(frozen=True)
class Tables:
    """The measurements of one sweep."""

    runs: pd.DataFrame
    streams: pd.DataFrame
    paths: pd.DataFrame
    samples: pd.DataFrame
    """The state of each path over time, of the runs that recorded it."""

    @classmethod
    def of(
        cls,
        measured: Iterable[tuple[Point, Mapping[str, Any]]],
        recorded: Iterable[tuple[Point, Mapping[str, Any]]] = (),
    ) -> "Tables":
        """Tables of points and the outcomes of their runs, and of runs that recorded their state."""
        runs: list[dict[str, Any]] = []
        streams: list[dict[str, Any]] = []
        paths: list[dict[str, Any]] = []
        for point, outcome in measured:
            first = {**point.labels, "seed": outcome["seed"]}
            runs.append(first | _run_row(outcome))
            streams.extend(first | _stream_row(stream) for stream in outcome["streams"])
            shares = outcome["limited_by"]["paths"]
            rows = zip(outcome["paths"], shares, strict=True)
            paths.extend(first | _path_row(i, path, share) for i, (path, share) in enumerate(rows))
        samples = [frame for point, outcome in recorded for frame in _samples(point, outcome)]
        return cls(
            pd.DataFrame(runs),
            pd.DataFrame(streams),
            pd.DataFrame(paths),
            pd.concat(samples, ignore_index=True) if samples else pd.DataFrame(),
        )

    def where(self, **labels: Label) -> "Tables":
        """Only the rows whose columns have these values."""
        return Tables(*(_rows(table, labels) for table in self._named().values()))

    def save(self, directory: Path) -> None:
        """Write each table as Parquet and as CSV into `directory`."""
        for name, table in self._named().items():
            write_atomically(directory / f"{name}.parquet", table.to_parquet(index=False))
            write_atomically(directory / f"{name}.csv", table.to_csv(index=False).encode())

    @classmethod
    def load(cls, directory: Path) -> "Tables":
        """Read back what `save` wrote; raises `FileNotFoundError` when there is nothing."""
        return cls(*(pd.read_parquet(directory / f"{field.name}.parquet") for field in fields(cls)))

    def _named(self) -> dict[str, pd.DataFrame]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _rows(table: pd.DataFrame, labels: Mapping[str, Label]) -> pd.DataFrame:
    if table.empty:
        return table
    for column, value in labels.items():
        table = table[table[column] == value]
    return table


TIMEOUT_ROWS = 4
"""Timeouts in a row that have a column of their own, as `timeouts_in_row_<n>`; the last one counts all beyond it."""


def _run_row(outcome: Mapping[str, Any]) -> dict[str, Any]:
    completed = outcome["completed_s"]
    row = {
        "throughput_mbps": outcome["throughput_mbps"],
        "completed_s": math.nan if completed is None else completed,
        **_limits(outcome["limited_by"]["total"]),
    }
    row |= {f"cross_{pair['id']}_mbps": pair["throughput_mbps"] for pair in outcome.get("cross", ())}
    if recovery := outcome.get("recovery"):
        rows = recovery["timeout_rows"]
        row |= {"tsn_ms": recovery["tsn_ms"], "timeouts": recovery["timeouts"]}
        row |= {f"timeouts_in_row_{n}": sum(rows[n - 1 : n]) for n in range(1, TIMEOUT_ROWS)}
        row[f"timeouts_in_row_{TIMEOUT_ROWS}"] = sum(rows[TIMEOUT_ROWS - 1 :])
    row |= outcome.get("reading", {})
    return row


def _stream_row(stream: Mapping[str, Any]) -> dict[str, Any]:
    # A stream that got no message has no delay.
    measured = stream["delay_ms"] or dict.fromkeys(DELAYS, math.nan)
    delays = {f"delay_{name}_ms": measured[name] for name in DELAYS}
    return {"stream": stream["id"], "throughput_mbps": stream["throughput_mbps"], **delays}


def _path_row(position: int, path: Mapping[str, Any], shares: Mapping[str, float]) -> dict[str, Any]:
    return {
        "path": position,
        "throughput_mbps": path["throughput_mbps"],
        "loss": path["loss"],
        **_limits(shares),
    }


def _samples(point: Point, outcome: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    """One table a path, of the measured part of the run only; none where no sample falls in it.

    A sample tells what held since the one before, so one at the very beginning belongs to what was before.
    """
    series = outcome["series"]
    shared = {name: column for name, column in series.items() if name != "paths"}
    for position, path in enumerate(series["paths"]):
        table = pd.DataFrame({**point.labels, "path": position, **shared, **path})
        measured = table[table["time_s"] > outcome["measured_from_s"]]
        if not measured.empty:
            yield measured


def _limits(shares: Mapping[str, float]) -> dict[str, float]:
    return {f"limit_{name}": shares[name] for name in LIMITS}


def heading(column: str) -> str:
    """A column's name for people: "sigma_kib" reads "sigma [KiB]"."""
    stem, _, last = column.rpartition("_")
    unit = {"kib": "KiB", "ms": "ms", "mbps": "Mbit/s"}.get(last)
    return f"{stem} [{unit}]".replace("_", " ") if unit else column.replace("_", " ")


def cell(value: object) -> str:
    """A value for people."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return str(value) if not pd.isna(value) else "–"  # type: ignore[call-overload]
