"""Variants of one setup over the buffer size, for figures 6 and 7 and the comparison with the adaptive map.

A point is one setup, one variant (a mapping of streams to paths) and one sigma, the user data that fits in either
buffer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from tresse import standings
from tresse.bound import BoundPath, throughput_bound
from tresse.claims import NotMeasured
from tresse.figures.buffers import holding
from tresse.metrics import Mean, mean, summarise
from tresse.plots.theme import FAINT, INK
from tresse.standings import Standing
from tresse.sweep import Point
from tresse.tables import Tables

KIB = 1024
PACKET_BYTES, PAYLOAD_BYTES = 1500, 1452
PAYLOAD_SHARE = PAYLOAD_BYTES / PACKET_BYTES
SIGMA_LABEL = "send and receive buffer σ [KiB]"


@dataclass(frozen=True)
class Variant:
    """Mapping of streams to paths: one curve."""

    name: str
    colour: str
    dash: str
    overrides: Mapping[str, str]


CMT = Variant(standings.CMT, INK, ":", {"preset": "cmt"})
"""Our preset, without information about the paths; only the buffers are the figure's."""


@dataclass(frozen=True)
class Setup:
    """Paths as (rate in Mbit/s, delay in ms), their overrides, and the sigmas to measure."""

    name: str
    paths: tuple[tuple[float, float], ...]
    overrides: Mapping[str, str]
    sigmas_kib: tuple[int, ...]

    @property
    def capacity_mbps(self) -> float:
        """User data that all paths together can carry, in Mbit/s."""
        return sum(rate for rate, _ in self.paths) * PAYLOAD_SHARE

    def bound_mbps(self, sigma_kib: float) -> float:
        """Return the throughput that no schedule can exceed with buffers of this size."""
        paths = [BoundPath.of(rate, delay, PACKET_BYTES, PAYLOAD_BYTES) for rate, delay in self.paths]
        return throughput_bound(paths, int(sigma_kib * KIB))

    def minimum_kib(self) -> float:
        """Equation 1 without its queueing term, in KiB."""
        return sum(2 * delay * rate * 1000 / 8 for rate, delay in self.paths) / KIB


def points(setups: Sequence[Setup], variants: Sequence[Variant]) -> tuple[Point, ...]:
    """Return a point for every setup with every variant at every sigma."""
    return tuple(
        Point(
            labels={"setup": setup.name, "variant": variant.name, "sigma_kib": sigma},
            overrides={
                **setup.overrides,
                **variant.overrides,
                "transport.send_buffer": holding(sigma * KIB),
                "transport.receive_buffer": holding(sigma * KIB),
            },
        )
        for setup in setups
        for variant in variants
        for sigma in setup.sigmas_kib
    )


def rows_of(table: pd.DataFrame, setup: Setup, variant: str, sigma_kib: int) -> pd.DataFrame:
    """Return the rows of one point; raise `NotMeasured` if there are none."""
    chosen = (table["setup"] == setup.name) & (table["variant"] == variant) & (table["sigma_kib"] == sigma_kib)
    rows = table[chosen]
    if rows.empty:
        raise NotMeasured(f"no run at {setup.name}, {variant}, {sigma_kib} KiB")
    return rows


def throughput(tables: Tables, setup: Setup, variant: str, sigma_kib: int) -> Mean:
    """Return the mean throughput of one point, in Mbit/s."""
    return mean(rows_of(tables.runs, setup, variant, sigma_kib)["throughput_mbps"])


def stream_throughput(tables: Tables, setup: Setup, variant: str, sigma_kib: int, stream: int) -> Mean:
    """Return the mean throughput of one stream, in Mbit/s."""
    rows = rows_of(tables.streams, setup, variant, sigma_kib)
    return mean(rows[rows["stream"] == stream]["throughput_mbps"])


def with_delays(tables: Tables) -> pd.DataFrame:
    """Return one row for each run with `delay_ms`: the mean delay of all its messages."""
    streams = tables.streams.dropna(subset=["delay_mean_ms"])
    # All messages have one size: a stream's throughput is its weight.
    streams = streams.assign(weighted=streams["delay_mean_ms"] * streams["throughput_mbps"])
    keys = ["setup", "variant", "sigma_kib", "seed"]
    sums = streams.groupby(keys, sort=False)[["weighted", "throughput_mbps"]].sum().reset_index()
    return sums.assign(delay_ms=sums["weighted"] / sums["throughput_mbps"])


def delay(tables: Tables, setup: Setup, variant: str, sigma_kib: int) -> Mean:
    """Return the mean delay of all messages at one point, in ms."""
    return mean(rows_of(with_delays(tables), setup, variant, sigma_kib)["delay_ms"])


def against_best(tables: Tables, setups: Sequence[Setup], variants: Sequence[Variant]) -> list[Standing]:
    """Compare our preset with the best of `variants` at every point that has runs of all."""
    found = []
    for setup in setups:
        for sigma in setup.sigmas_kib:
            try:
                rates = {variant.name: throughput(tables, setup, variant.name, sigma).value for variant in variants}
                ours = throughput(tables, setup, CMT.name, sigma).value
            except NotMeasured:
                continue
            where, best = f"{setup.name}, {sigma} KiB", standings.best_of(rates)
            found.append(Standing(where, sigma, *best, ours, setup.bound_mbps(sigma)))
    return found


def plot(ax: Axes, table: pd.DataFrame, setup: Setup, variants: Sequence[Variant], column: str) -> None:
    """Draw `column` of `table` over sigma, with one curve for each variant."""
    for variant in variants:
        rows = table[(table["setup"] == setup.name) & (table["variant"] == variant.name)]
        found = summarise(rows, ["sigma_kib"], column)
        ax.errorbar(
            found["sigma_kib"],
            found["mean"],
            yerr=found["half_width"].fillna(0),
            label=variant.name,
            color=variant.colour,
            linestyle=variant.dash,
            marker="o",
            markersize=3.5,
            capsize=2,
        )


def plot_bound(ax: Axes, setup: Setup) -> None:
    """Draw the bound of any schedule, and the sigma that satisfies equation 1."""
    sigmas = list(range(setup.sigmas_kib[0], setup.sigmas_kib[-1] + 1))
    bounds = [setup.bound_mbps(sigma) for sigma in sigmas]
    ax.plot(sigmas, bounds, color=FAINT, linestyle=":", label="bound for any schedule")
    ax.axvline(setup.minimum_kib(), color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)), label="equation 1")
