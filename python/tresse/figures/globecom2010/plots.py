"""Plots of figures 5 to 8: throughput of every variant over each panel, with the bound and the limits of the paths."""

from functools import partial

import matplotlib.figure
from matplotlib.axes import Axes

from tresse.figures.figure import Drawing
from tresse.figures.globecom2010.mechanisms import CMT, Variant
from tresse.figures.globecom2010.mixes import Mix, curve
from tresse.figures.globecom2010.paths import DELAY, ERRORS, PANELS, RATE, Panel
from tresse.plots.limits import LimitPanel, draw_limits
from tresse.plots.theme import FAINT, PAPER, new_figure, style
from tresse.tables import Tables

LOGARITHMIC = (RATE, DELAY)


def drawings(mix: Mix, stated: dict[Panel, tuple[tuple[float, float], ...]]) -> tuple[Drawing, ...]:
    """Return the plots of a figure; `stated` has the values in the paper's text, as (value, Mbit/s)."""
    diamonds = "Diamonds: stated in the paper's text. " if stated else ""
    throughput = Drawing(
        "throughput",
        "Throughput of user data over the rate, the bit error rate and the delay of path 2; path 1 has 100 Mbit/s, 1 "
        "ms and no errors. Same colour: same mechanisms; solid: both buffers split, dashed: neither. Dotted black: our "
        f"preset cmt. {diamonds}Dotted grey: what no schedule exceeds with these buffers.",
        partial(_draw, mix=mix, stated=stated),
    )
    limits = [
        Drawing(
            f"limits-{panel.name}",
            f"What kept each path from sending, as shares of time, over the {panel.label}.",
            partial(_draw_limits, mix=mix, panel=panel),
        )
        for panel in PANELS
    ]
    return (throughput, *limits)


def _draw(tables: Tables, mix: Mix, stated: dict[Panel, tuple[tuple[float, float], ...]]) -> matplotlib.figure.Figure:
    figure, axes = new_figure(13.2, 5.2, 1, len(PANELS), share_x=False)
    with style():
        for ax, panel in zip(axes[0], PANELS, strict=True):
            _draw_panel(ax, tables, mix, panel)
            for value, mbps in stated.get(panel, ()):
                ax.plot(value, mbps, "D", markersize=11, markerfacecolor="none", color=FAINT)
        axes[0][0].set_ylabel("throughput of user data [Mbit/s]")
    return figure


def _draw_panel(ax: Axes, tables: Tables, mix: Mix, panel: Panel) -> None:
    for variant in (*mix.variants[panel], CMT):
        _draw_curve(ax, tables, panel, variant)
    bounds = [panel.bound_mbps(value, mix.buffers(panel)) for value in panel.values]
    ax.plot(panel.values, bounds, color=FAINT, linestyle=":", linewidth=1.1, label="bound")
    ax.set(xlabel=panel.label, ylim=(0, 205))
    scale_x(ax, panel)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8)


def scale_x(ax: Axes, panel: Panel) -> None:
    """Scale the axis logarithmically; that of error rates begins at zero and is labelled in millionths."""
    names = [f"{value:g}" for value in panel.values]
    if panel is ERRORS:
        ax.set_xscale("symlog", linthresh=panel.values[2], linscale=0.6)
        ax.set_xlim(-5e-8, 6.5e-6)
        names = [f"{1e6 * value:g}" for value in panel.values]
        ax.set_xlabel(f"{panel.label} [10⁻⁶]")
    else:
        ax.set_xscale("log")
    # There is no space for the labels of both of the last two rates.
    ax.set_xticks(panel.values, ["" if name == "80" else name for name in names], fontsize=8)
    ax.minorticks_off()


def _draw_curve(ax: Axes, tables: Tables, panel: Panel, variant: Variant) -> None:
    found = curve(tables, panel, variant)
    ax.errorbar(
        list(found),
        [value.value for value in found.values()],
        yerr=[0 if value.n == 1 else value.half_width for value in found.values()],
        label=variant.name,
        color=variant.colour,
        linestyle=variant.dash,
        marker=variant.marker,
        markerfacecolor=PAPER if variant.dash == "--" else variant.colour,
        capsize=2,
    )


def _draw_limits(tables: Tables, mix: Mix, panel: Panel) -> matplotlib.figure.Figure:
    panels = [
        LimitPanel(variant.name.replace(", ", ",\n"), tables.where(panel=panel.name, variant=variant.name))
        for variant in (*mix.variants[panel], CMT)
    ]
    return draw_limits(panels, "value", panel.label, ["path 1", "path 2"], log_x=panel in LOGARITHMIC)
