"""The outcome of a run as typed, immutable objects, one field for each key of docs/scenarios.md, "The outcome"."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

from cattrs import Converter
from cattrs.strategies import configure_union_passthrough

SCHEMA = 1
"""The version of the document that these objects read: its key `schema`."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Delays of messages in milliseconds: mean, percentiles, longest."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """One stream."""

    id: int
    throughput_mbps: float
    messages: int
    delay_ms: Delay | None


@dataclass(frozen=True, slots=True)
class PathOutcome:
    """One path; `state` is None if the path has not joined."""

    id: int
    state: str | None
    throughput_mbps: float
    wire_mbps: float
    loss: float
    dropped_queue_full: int
    dropped_loss: int
    dropped_early: int
    marked: int
    dropped_outage: int
    dropped_damaged: int
    dropped_too_large: int
    damaged: int
    duplicated: int
    late: int
    utilisation: float
    queue_mean_packets: float
    queue_max_packets: int
    reverse_loss: float
    srtt_ms: float | None
    min_rtt_ms: float | None
    cwnd_bytes: int
    ssthresh_bytes: int
    chunks_sent: int
    chunks_resent: int
    fast_retransmits: int
    drop_reports: int
    copies_sent: int
    mark_cuts: int
    timeouts: int
    shares_with: int | None = None


@dataclass(frozen=True, slots=True)
class CrossOutcome:
    """One pair of hosts with TCP that crosses a path."""

    id: int
    kind: str
    path: int
    reverse: bool
    throughput_mbps: float
    segments: int
    segments_resent: int
    recoveries: int
    timeouts: int
    answers: int | None = None
    answer_ms: float | None = None


@dataclass(frozen=True, slots=True)
class LimitedBy:
    """Shares of time during which each limit held, of the association and of each path."""

    total: Mapping[str, float]
    paths: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, slots=True)
class AssociationOutcome:
    """The association at the end; `state` is None if it no longer exists."""

    state: str | None
    ended: str | None
    duplicates: int
    sacks_sent: int
    sender_discards: Mapping[str, int]
    receiver_discards: Mapping[str, int]
    scheduler_failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about the whole run, including the time before the measurement."""

    trace_hash: str
    packets: int
    data_chunks: int
    unroutable_packets: int
    messages_accepted: int
    messages_delivered: int
    events: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one run."""

    schema: int
    name: str
    seed: int
    interrupted: bool
    measured_s: float
    completed_s: float | None
    throughput_mbps: float
    streams: tuple[StreamOutcome, ...]
    paths: tuple[PathOutcome, ...]
    limited_by: LimitedBy
    association: AssociationOutcome
    run: RunFacts
    scenario: Mapping[str, Any]
    """The resolved scenario, as the table of its TOML."""
    cross: tuple[CrossOutcome, ...] = ()
    processors: Mapping[str, float] | None = None
    """With `host.packet_time`: shares of time during which the processors were busy, by `sender` and `receiver`."""
    series: Mapping[str, Any] | None = None
    """With `record.interval`: columns of the same length as `time_s`."""
    recovery: Mapping[str, Any] | None = None
    """With `record.recovery`: the repair of losses."""
    measured_from_s: float | None = None
    """Virtual time at which the measurement began; None in documents of earlier versions."""
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The JSON document that this was read from."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read an outcome document, as `tresse sim --json` prints it.

        Raises `ValueError` if its schema is not `SCHEMA`.
        """
        schema = document.get("schema")
        if schema != SCHEMA:
            raise ValueError(f"an outcome of schema {schema}; this version of tresse reads schema {SCHEMA}")
        outcome: Self = _converter().structure({**document, "document": document}, cls)
        return outcome


@cache
def _converter() -> Converter:
    made = Converter()
    configure_union_passthrough(str | int | float | bool | None, made)
    return made
