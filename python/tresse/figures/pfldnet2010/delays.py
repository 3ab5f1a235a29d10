"""The runs behind figures 4 and 5: two paths of 10 Mbit/s whose delays differ (section 6.1).

Send and receive buffer have the same size sigma. Streams are scheduled round-robin over both paths, or stream 0 is
fixed to path A and stream 1 to path B. Both figures use the same runs.
"""

from dataclasses import dataclass

import pandas as pd

from tresse import standings
from tresse.bound import BoundPath, throughput_bound
from tresse.claims import NotMeasured
from tresse.evidence import Evidence, at_least, below
from tresse.figures.buffers import holding
from tresse.metrics import Mean, mean
from tresse.plots.theme import BLUE, GREEN, ORANGE
from tresse.standings import Standing
from tresse.sweep import Point, Sweep
from tresse.tables import Tables

SOURCE = (
    "T. Dreibholz, R. Seggelmann, M. Tüxen, E. P. Rathgeb: "
    "Transmission Scheduling Optimizations for Concurrent Multipath Transfer. PFLDNeT 2010"
)
SCENARIO = "pfldnet2010/two-paths.toml"

KIB = 1024
PAPER_STEP_KIB = 32
"""Step between the paper's σ."""
SIGMAS_KIB = tuple(range(32, 321, PAPER_STEP_KIB // 2))
"""σ in half the paper's steps."""

RATE_MBPS = 10.0
DELAY_A_MS = 10
PACKET_BYTES, PAYLOAD_BYTES = 1500, 1452
CAPACITY_MBPS = 2 * RATE_MBPS * PAYLOAD_BYTES / PACKET_BYTES
"""User data that both paths can carry: 19.36 Mbit/s."""
FULL_SHARE = 0.95
FULL_MBPS = FULL_SHARE * CAPACITY_MBPS
"""Least throughput that counts as full."""

ROUND_ROBIN, FIXED = "round-robin", "fixed"
STREAM_MAPS = {ROUND_ROBIN: "any", FIXED: "fixed:0,1"}


@dataclass(frozen=True)
class Curve:
    """One of the six curves: the delay of path B and how streams are mapped."""

    delay_b_ms: int
    mapping: str

    @property
    def colour(self) -> str:
        """Colour of the curve, the same for the same delay."""
        return {10: BLUE, 50: ORANGE, 75: GREEN}[self.delay_b_ms]

    @property
    def dash(self) -> str:
        """Line style of the curve, the same for the same mapping."""
        return {ROUND_ROBIN: "--", FIXED: "-"}[self.mapping]

    @property
    def text(self) -> str:
        """Print as "10/75 ms, fixed"."""
        return f"{DELAY_A_MS}/{self.delay_b_ms} ms, {self.mapping}"

    def of(self, tables: Tables) -> Tables:
        """Return the rows of this curve."""
        return tables.where(delay_b_ms=self.delay_b_ms, mapping=self.mapping)


RUNS_OF_TURNS = 24
"""Runs for each point of round-robin, in every profile, as many as in the paper.

Which stream round-robin favours differs between runs; only the mean over many runs shows whether one of them is
favoured in general.
"""
DELAYS_B_MS = (10, 50, 75)
CURVES = tuple(Curve(delay, mapping) for delay in DELAYS_B_MS for mapping in STREAM_MAPS)


def point(curve: Curve, sigma_kib: int) -> Point:
    """Return one point of the curve."""
    return Point(
        labels={"delay_b_ms": curve.delay_b_ms, "mapping": curve.mapping, "sigma_kib": sigma_kib},
        least_runs=RUNS_OF_TURNS if curve.mapping == ROUND_ROBIN else 1,
        overrides={
            "path.1.delay": f"{curve.delay_b_ms}ms",
            "transport.stream_map": STREAM_MAPS[curve.mapping],
            "transport.send_buffer": holding(sigma_kib * KIB),
            "transport.receive_buffer": holding(sigma_kib * KIB),
        },
    )


RECORDED_KIB = 160
"""Sigma of the recorded runs: less than 10/75 ms needs, more than the sigmas with which it starves."""


def _recorded(curve: Curve) -> Point:
    plain = point(curve, RECORDED_KIB)
    return Point(plain.labels, {**plain.overrides, "measure": "1s", "record.interval": "2ms"})


def _ours(delay_b_ms: int, sigma_kib: int) -> Point:
    plain = point(Curve(delay_b_ms, ROUND_ROBIN), sigma_kib)
    overrides = {key: value for key, value in plain.overrides.items() if key != "transport.stream_map"}
    return Point({**plain.labels, "mapping": standings.CMT}, {**overrides, "preset": "cmt"})


SWEEP = Sweep(
    SCENARIO,
    points=(
        *(point(curve, sigma) for curve in CURVES for sigma in SIGMAS_KIB),
        *(_ours(delay, sigma) for delay in DELAYS_B_MS for sigma in SIGMAS_KIB[::2]),
    ),
    recorded=tuple(_recorded(Curve(75, mapping)) for mapping in STREAM_MAPS),
)


def bandwidth_delay_kib(delay_b_ms: int) -> float:
    """Return equation 1 without its queueing term: the bytes in flight that fill both paths, in KiB."""
    return 2 * (DELAY_A_MS + delay_b_ms) * RATE_MBPS * 1000 / 8 / KIB


def bound_mbps(delay_b_ms: int, sigma_kib: float) -> float:
    """Return the throughput that no schedule can exceed with buffers of `sigma_kib`."""
    paths = [BoundPath.of(RATE_MBPS, delay, PACKET_BYTES, PAYLOAD_BYTES) for delay in (DELAY_A_MS, delay_b_ms)]
    return throughput_bound(paths, int(sigma_kib * KIB))


def throughput(tables: Tables, curve: Curve, sigma_kib: int) -> Mean:
    """Return the mean throughput of one point, in Mbit/s."""
    return mean(measured(curve.of(tables).where(sigma_kib=sigma_kib).runs, curve, sigma_kib)["throughput_mbps"])


def against_best(tables: Tables) -> list[Standing]:
    """Compare our preset with the better mapping at the paper's σ, where all have runs."""
    found = []
    for delay in DELAYS_B_MS:
        for sigma in SIGMAS_KIB[::2]:
            rows = tables.where(delay_b_ms=delay, sigma_kib=sigma)
            rates = {
                str(name): mean(runs["throughput_mbps"]).value
                for name, runs in rows.runs.groupby("mapping", sort=False)
                if name in (*STREAM_MAPS, standings.CMT)
            }
            ours = rates.pop(standings.CMT, None)
            if ours is None or len(rates) < len(STREAM_MAPS):
                continue
            where, best = f"{DELAY_A_MS}/{delay} ms, {sigma} KiB", standings.best_of(rates)
            found.append(Standing(where, sigma, *best, ours, bound_mbps(delay, sigma)))
    return found


def is_full(tables: Tables, curve: Curve, sigma_kib: int) -> Evidence:
    """Return whether this sigma gives full throughput."""
    return at_least(throughput(tables, curve, sigma_kib), FULL_MBPS)


def is_short(tables: Tables, curve: Curve, sigma_kib: int) -> Evidence:
    """Return whether this sigma gives less than full throughput."""
    return below(throughput(tables, curve, sigma_kib), FULL_MBPS)


def sufficient_kib(tables: Tables, curve: Curve, least: Evidence = Evidence.PARTLY) -> int | None:
    """Return the smallest sigma from which on all measured ones give full throughput; None if the largest does not.

    Throughputs are judged by their means, or by their intervals if `least` is `Evidence.SHOWN`.
    """
    found = None
    for sigma in reversed(SIGMAS_KIB):
        if is_full(tables, curve, sigma) < least:
            break
        found = sigma
    return found


def measured(rows: pd.DataFrame, curve: Curve, sigma_kib: int) -> pd.DataFrame:
    """Return `rows`, which belong to this point; raise `NotMeasured` if there are none."""
    if rows.empty:
        raise NotMeasured(f"no run at {curve.text}, {sigma_kib} KiB")
    return rows
