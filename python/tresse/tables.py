"""Outcome documents as tidy tables, with a row for each run, stream of a run, path of a run, or sample of a path.

Units are in the column names, as in the document. A table's first columns identify the point.
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
"""Limits that keep a path from sending; `limit_<name>` is the share of time during which it held."""


DELAYS = ("mean", "p50", "p95", "p99")
"""Values of the distribution of message delays, as `delay_<name>_ms`."""


@dataclass(frozen=True)
class Tables:
    """The measurements of one sweep."""

    runs: pd.DataFrame
    streams: pd.DataFrame
    paths: pd.DataFrame
    samples: pd.DataFrame
    """State of each path over time, for the runs that recorded it."""

    @classmethod
    def of(
        cls,
        measured: Iterable[tuple[Point, Mapping[str, Any]]],
        recorded: Iterable[tuple[Point, Mapping[str, Any]]] = (),
    ) -> "Tables":
        """Return the tables of points with the outcomes of their runs, and of runs that recorded their state."""
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
        """Return the tables with only the rows whose columns have these values."""
        return Tables(*(_rows(table, labels) for table in self._named().values()))

    def save(self, directory: Path) -> None:
        """Write each table as Parquet and as CSV into `directory`."""
        for name, table in self._named().items():
            write_atomically(directory / f"{name}.parquet", table.to_parquet(index=False))
            write_atomically(directory / f"{name}.csv", table.to_csv(index=False).encode())

    @classmethod
    def load(cls, directory: Path) -> "Tables":
        """Read the tables that `save` wrote; raise `FileNotFoundError` if there are none."""
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
"""Timeouts in a row that have their own columns, `timeouts_in_row_<n>`; the last one includes all longer rows."""


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
    # A stream without messages has no delay.
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
    """Return one table for each path, of the measured part of the run only; none if no sample is in it.

    A sample describes the time since the previous one, so one at the very beginning belongs to the time before.
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
    """Return a column's name in the form for readers: "sigma_kib" becomes "sigma [KiB]"."""
    stem, _, last = column.rpartition("_")
    unit = {"kib": "KiB", "ms": "ms", "mbps": "Mbit/s"}.get(last)
    return f"{stem} [{unit}]".replace("_", " ") if unit else column.replace("_", " ")


def cell(value: object) -> str:
    """Return a value in the form for readers."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return str(value) if not pd.isna(value) else "–"  # type: ignore[call-overload]
