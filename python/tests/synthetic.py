"""Outcomes made up by a simple model, so that the lab is tested without waiting for a simulation.

Throughput follows the bound up to the paths' capacity; round-robin wastes some of the buffer on paths of
different delay; the delay is what the buffer's content needs to drain. `Model` bends these to reach verdicts.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib.figure
import numpy as np

from tresse.figures.buffers import CHUNK_BYTES, MESSAGE_BYTES
from tresse.figures.pfldnet2010 import delays
from tresse.figures.pfldnet2010.delays import FIXED, SWEEP, Curve
from tresse.standings import CMT
from tresse.sweep import Point
from tresse.tables import LIMITS, Tables

RUNS = 3


@dataclass(frozen=True)
class Model:
    """Behaviour of the synthetic stack."""

    full_mbps: float = 19.3
    wasted: Mapping[str, float] | None = None
    """Share of the buffer that a mapping cannot use on paths of different delay."""
    delay_gap: Callable[[Curve], float] = lambda curve: 0.5 if curve.mapping == FIXED and curve.delay_b_ms > 10 else 0
    """How much longer stream 1's delay is than stream 0's, as a share of their mean."""
    throughput_gap: float = 0.0
    """How much more stream 1 carries than stream 0, as a share of their mean."""
    bend: float = 0.0
    """How far the delay curves away from a straight line."""

    def outcome(self, curve: Curve, sigma_kib: int, seed: int) -> dict[str, Any]:
        """The document of one run; seeds differ a little."""
        noise = 1 + 0.001 * (seed % 3 - 1)
        by_mapping = self.wasted or {"round-robin": 0.2, "fixed": 0.0}
        wasted = by_mapping.get(curve.mapping, 0.3) * (curve.delay_b_ms > 10)
        total = min(delays.bound_mbps(curve.delay_b_ms, sigma_kib * (1 - wasted)), self.full_mbps) * noise
        delay = sigma_kib * delays.KIB * 8 / (total * 1000) * (1 + self.bend * (sigma_kib / 320) ** 3)
        streams = [
            {
                "id": stream,
                "throughput_mbps": total / 2 * (1 + sign * self.throughput_gap / 2),
                "delay_ms": {
                    name: factor * delay * (1 + sign * self.delay_gap(curve) / 2)
                    for name, factor in (("mean", 1.0), ("p50", 0.9), ("p95", 1.4), ("p99", 1.6))
                },
            }
            for stream, sign in enumerate((-1, 1))
        ]
        return {
            "throughput_mbps": total,
            "streams": streams,
            "paths": [{"throughput_mbps": total / 2, "loss": 0.0} for _ in range(2)],
            "completed_s": None,
            "limited_by": {"total": shares(sigma_kib), "paths": [shares(sigma_kib), shares(sigma_kib // 2)]},
            "seed": seed,
            "scenario": {},
        }


def shares(sigma_kib: int) -> dict[str, float]:
    """Made-up shares of time: the smaller the buffer, the more it limits."""
    held = dict.fromkeys(LIMITS, 0.0)
    held["send_buffer"] = max(0.0, 1 - sigma_kib / 400)
    held["congestion_window"] = 1 - held["send_buffer"]
    return held


def series(sigma_kib: int) -> dict[str, Any]:
    """A made-up record: two seconds of settling, one measured, a path that is limited now by this, now by that."""
    times = [step / 10 for step in range(1, 31)]
    flight = [sigma_kib * delays.KIB // 2] * len(times)
    path = {"flight_bytes": flight, "limit": ["send_buffer", "congestion_window", "congestion_window"] * 10}
    return {
        "time_s": times,
        "send_buffer_bytes": [sigma_kib * delays.KIB] * len(times),
        "receive_buffer_bytes": [0] * len(times),
        "paths": [path, path],
    }


def curve_of(point: Point) -> Curve:
    """The curve that a point of the sweep belongs to."""
    return Curve(int(point.labels["delay_b_ms"]), str(point.labels["mapping"]))


def all_is_shown(figure: matplotlib.figure.Figure) -> bool:
    """Return whether no line of data leaves its axes at the top."""
    lines = [(line, ax) for ax in figure.axes for line in ax.get_lines() if line.get_transform() == ax.transData]
    return all(np.nanmax(np.asarray(line.get_ydata(), dtype=float)) <= ax.get_ylim()[1] for line, ax in lines)


def tables(model: Model, runs: int = RUNS) -> Tables:
    """Tables of a whole sweep by the model."""
    return Tables.of(
        (point, model.outcome(curve_of(point), int(point.labels["sigma_kib"]), seed))
        for seed in range(1, runs + 1)
        for point in SWEEP.points
    )


def run_of(model: Model) -> Callable[..., str]:
    """Stands in for the native `run`: reads the point back from the overrides."""

    def run(scenario: str, overrides: dict[str, str], seed: int, *, name: str = "scenario") -> str:
        maps = {"any": "round-robin", "fixed:0,1": "fixed"}
        mapping = CMT if overrides.get("preset") == "cmt" else maps[overrides["transport.stream_map"]]
        curve = Curve(int(overrides["path.1.delay"].removesuffix("ms")), mapping)
        size = int(overrides["transport.send_buffer"].removesuffix("B"))
        sigma_kib = round(size * MESSAGE_BYTES / CHUNK_BYTES / 1024)
        outcome = model.outcome(curve, sigma_kib, seed)
        if "record.interval" in overrides:
            outcome |= {"measured_from_s": 2.0, "measured_s": 1.0, "series": series(sigma_kib)}
        return json.dumps(outcome)

    return run
