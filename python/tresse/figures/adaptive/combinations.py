"""Every scheduler with every stream map in the setups of figures 4 to 7: the effect of the scheduler.

Path schedulers and stream schedulers are varied separately. With the maps `any` and `fixed` all other settings are
those of the paper; with `adaptive` they are those of the preset of that name. This is an overview with one run for each
point; no claim is judged by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tresse.figures.adaptive import comparison
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010 import delays, figure7, variants
from tresse.figures.pfldnet2010.variants import Setup, Variant
from tresse.metrics import summarise
from tresse.plots.theme import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, SKY, YELLOW, new_figure, style
from tresse.sweep import Profile, Sweep
from tresse.tables import Tables

_SIGMAS_KIB = {"delay": (32, 64, 96, 160, 256), "rate": (64, 128, 192, 256, 512), "three": (32, 64, 96, 160, 256)}
_PROFILES = {
    "quick": Profile("quick", runs=1, overrides={"settle": "9s", "measure": "15s"}),
    "paper": Profile("paper", runs=8, overrides={"settle": "19s", "measure": "60s"}),
}

TWO_PATHS = (
    *(replace(setup, sigmas_kib=_SIGMAS_KIB["delay"]) for setup in comparison.DELAYS),
    *(replace(setup, sigmas_kib=_SIGMAS_KIB["rate"]) for setup in comparison.RATES),
)
THREE_PATHS = (replace(figure7.SETUP, sigmas_kib=_SIGMAS_KIB["three"]),)


@dataclass(frozen=True)
class Kind:
    """The varied setting: its name, and its values with the line style of each."""

    switch: str
    text: str
    lines: Mapping[str, tuple[str, Literal["-", "--"]]]
    """Colour and dash by name of the value."""


PATH_SCHEDULERS = Kind(
    "transport.path_scheduler",
    "path schedulers",
    {
        "round_robin": (INK, "-"),
        "in_order": (FAINT, "-"),
        "most_room": (YELLOW, "-"),
        "lowest_rtt": (GREEN, "-"),
        "ecf": (SKY, "-"),
        "blest": (BLUE, "-"),
        "otias": (ORANGE, "--"),
        "daps": (PURPLE, "--"),
        "stms": (BLUE, "--"),
        "redundant": (ORANGE, "-"),
    },
)
STREAM_SCHEDULERS = Kind(
    "transport.stream_scheduler",
    "stream schedulers",
    {
        "first_come": (INK, "-"),
        "round_robin": (BLUE, "-"),
        "round_robin_packet": (SKY, "--"),
        "priority": (ORANGE, "-"),
        "fair_bandwidth": (GREEN, "-"),
        "weighted_fair": (PURPLE, "--"),
    },
)


def maps(setups: Sequence[Setup]) -> dict[str, Mapping[str, str]]:
    """Return the stream maps with their other settings; the manual map is that of the setups' figure."""
    table = figure7.TABLE if setups is THREE_PATHS else comparison.FIXED.overrides
    return {"any": figure7.ANY, "fixed": table, "adaptive": comparison.PLACED}


def combination(kind: Kind, name: str, map_name: str, settings: Mapping[str, str]) -> Variant:
    """Return one curve: a scheduler with a map and the map's settings."""
    colour, dash = kind.lines[name]
    return Variant(f"{name}, {map_name}", colour, dash, {**settings, kind.switch: name})


def combinations(kind: Kind, setups: Sequence[Setup]) -> dict[str, tuple[Variant, ...]]:
    """Return the curves of each map."""
    return {
        map_name: tuple(combination(kind, name, map_name, settings) for name in kind.lines)
        for map_name, settings in maps(setups).items()
    }


def shares(tables: Tables, setups: Sequence[Setup]) -> pd.DataFrame:
    """Return each run's throughput as a share of the bound, in the column `share`."""
    bounds = {(setup.name, sigma): setup.bound_mbps(sigma) for setup in setups for sigma in setup.sigmas_kib}
    keys = zip(tables.runs["setup"], tables.runs["sigma_kib"], strict=True)
    return tables.runs.assign(share=tables.runs["throughput_mbps"] / [bounds[key] for key in keys])


def ranking(tables: Tables, setups: Sequence[Setup]) -> pd.DataFrame:
    """Return one row for each scheduler and map, over all points.

    Its columns are the mean and the least share of the bound, and the mean of the delay divided by the shortest delay
    of any combination at the same point.
    """
    rates = shares(tables, setups).groupby(["variant", "setup", "sigma_kib"], sort=False)["share"].mean()
    waits = variants.with_delays(tables).groupby(["variant", "setup", "sigma_kib"], sort=False)["delay_ms"].mean()
    longer = waits / waits.groupby(["setup", "sigma_kib"]).transform("min")
    rows = pd.DataFrame(
        {
            "mean_share_of_bound": rates.groupby("variant", sort=False).mean(),
            "least_share_of_bound": rates.groupby("variant", sort=False).min(),
            "mean_delay_over_shortest": longer.groupby("variant", sort=False).mean(),
        }
    )
    return rows.sort_values("mean_share_of_bound", ascending=False).reset_index()


def _overview(kind: Kind, setups: Sequence[Setup]) -> Drawing:
    def draw(tables: Tables) -> matplotlib.figure.Figure:
        found = shares(tables, setups).groupby(["variant", "setup"])["share"].mean()
        figure, [axes] = new_figure(9.4, 1.3 + 0.36 * len(kind.lines), columns=3)
        with style():
            for ax, (map_name, curves) in zip(axes, combinations(kind, setups).items(), strict=True):
                cells = [[100 * found[curve.name, setup.name] for setup in setups] for curve in curves]
                _cells(ax, np.array(cells))
                ax.set(title=f"map {map_name}")
                ax.set_xticks(np.arange(len(setups)) + 0.5, [_short(setup) for setup in setups], fontsize=7.5)
                ax.set_yticks(np.arange(len(kind.lines)) + 0.5, list(kind.lines))
            axes[0].invert_yaxis()
        return figure

    caption = (
        "Share of the bound of row B6 in percent, mean over all buffer sizes: rows are schedulers, columns setups, one "
        "block for each stream map. More than 100 % is possible where acknowledgements take a faster path than data."
    )
    return Drawing("overview", caption, draw)


def _cells(ax: Axes, percent: np.ndarray) -> None:
    ax.pcolormesh(percent, cmap="cividis", vmin=0, vmax=110, edgecolors="white", linewidth=1.5)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for (row, column), value in np.ndenumerate(percent):
        colour = "white" if value < 60 else "black"
        ax.text(column + 0.5, row + 0.5, f"{value:.0f}", ha="center", va="center", fontsize=8, color=colour)


def _short(setup: Setup) -> str:
    return setup.name.replace(" Mbit/s", "\nMbit/s").replace(" ms", "\nms")


def _curves(kind: Kind, setups: Sequence[Setup], column: str, name: str, label: str, caption: str) -> Drawing:
    def draw(tables: Tables) -> matplotlib.figure.Figure:
        rows = len(setups)
        figure, axes = new_figure(9.4, 1.2 + 2.3 * rows, rows=rows, columns=3, share_y="row", share_x=False)
        measured = tables.runs if column == "throughput_mbps" else variants.with_delays(tables)
        with style():
            for line, setup in zip(axes, setups, strict=True):
                for ax, (map_name, curves) in zip(line, combinations(kind, setups).items(), strict=True):
                    variants.plot(ax, measured, setup, curves, column)
                    ax.set_title(f"{setup.name}, map {map_name}", fontsize=9)
                    if column == "throughput_mbps":
                        variants.plot_bound(ax, setup)
                    else:
                        ax.axvline(setup.minimum_kib(), color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
                line[0].set_ylabel(label)
                if column == "throughput_mbps":
                    line[0].set_ylim(bottom=0)
                else:
                    # A scheduler that starves a stream makes it wait a hundred times as long as the others do.
                    line[0].set_yscale("log")
            for ax in axes[-1]:
                ax.set_xlabel(variants.SIGMA_LABEL)
            handles = [
                Line2D([], [], color=colour, linestyle=dash, marker="o", markersize=3.5, label=scheduler)
                for scheduler, (colour, dash) in kind.lines.items()
            ]
            figure.legend(handles=handles, loc="outside upper center", ncols=5)
        return figure

    return Drawing(name, caption, draw)


def _figure(name: str, kind: Kind, setups: Sequence[Setup], where: str) -> Figure:
    curves = tuple(curve for curves in combinations(kind, setups).values() for curve in curves)
    upright = "upright: where equation 1 is satisfied."
    return Figure(
        name=name,
        title=f"All {kind.text} with all stream maps, {where}",
        source=comparison.SOURCE,
        sweep=Sweep(
            figure7.SCENARIO if setups is THREE_PATHS else delays.SCENARIO,
            variants.points(setups, curves),
            profiles=_PROFILES,
        ),
        drawings=(
            _overview(kind, setups),
            _curves(
                kind,
                setups,
                "throughput_mbps",
                "throughput",
                "user data [Mbit/s]",
                f"Throughput of user data over the buffer size σ. Dotted: the bound of row B6; {upright}",
            ),
            _curves(
                kind,
                setups,
                "delay_ms",
                "delay",
                "mean message delay [ms]",
                f"Mean delay of all messages over the buffer size σ, logarithmic; {upright}",
            ),
        ),
        listings=(
            Listing("ranking", "Over all points, the largest share of the bound first", lambda t: ranking(t, setups)),
            Listing("summary", "Throughput in Mbit/s, mean and 95 % half-width", _throughputs),
            Listing("delays", "Mean message delay in ms, mean over runs and 95 % half-width", _delays),
        ),
        claims=(),
    )


def _throughputs(tables: Tables) -> pd.DataFrame:
    return summarise(tables.runs, ["setup", "variant", "sigma_kib"], "throughput_mbps")


def _delays(tables: Tables) -> pd.DataFrame:
    return summarise(variants.with_delays(tables), ["setup", "variant", "sigma_kib"], "delay_ms")


FIGURES = (
    _figure("adaptive-6", PATH_SCHEDULERS, TWO_PATHS, "over two paths"),
    _figure("adaptive-7", PATH_SCHEDULERS, THREE_PATHS, "over three paths"),
    _figure("adaptive-8", STREAM_SCHEDULERS, TWO_PATHS, "over two paths"),
    _figure("adaptive-9", STREAM_SCHEDULERS, THREE_PATHS, "over three paths"),
)
