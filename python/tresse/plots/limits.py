"""Plots of the limits of each path: shares of time, stacked, over the swept quantity."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from tresse.plots.theme import INK, LIMIT_COLOURS, limit_legend, new_figure, style
from tresse.tables import LIMITS, Tables


@dataclass(frozen=True)
class LimitPanel:
    """One column of panels, for one curve of the figure."""

    title: str
    tables: Tables


def draw_limits(
    panels: Sequence[LimitPanel], x: str, x_label: str, path_names: Sequence[str], *, log_x: bool = False
) -> Figure:
    """Draw one row for each path and one column for each panel; `x` is the column of the swept quantity."""
    figure, axes = new_figure(1.62 * len(panels) + 0.9, 1.5 * len(path_names) + 1.0, len(path_names), len(panels))
    seen: set[str] = set()
    with style():
        for row, path_name in enumerate(path_names):
            for column, panel in enumerate(panels):
                ax = axes[row][column]
                paths = panel.tables.paths
                shares = paths[paths["path"] == row].groupby(x)[[f"limit_{name}" for name in LIMITS]].mean()
                shares.columns = list(LIMITS)
                # A limit that never held would only lengthen the legend.
                held = [name for name in LIMITS if shares[name].max() >= 0.001]
                seen.update(held)
                colours = [LIMIT_COLOURS[name] for name in held]
                levels = [100 * shares[name].to_numpy() for name in held]
                if held:
                    ax.stackplot(shares.index.to_numpy(), levels, colors=colours, linewidth=0)
                if log_x:
                    ax.set_xscale("log")
                ax.set_ylim(0, 100)
                ax.margins(x=0)
                ax.grid(False)
                if row == 0:
                    ax.set_title(panel.title, fontsize=9)
                if column == 0:
                    ax.set_ylabel(f"{path_name}\n% of time")
        figure.supxlabel(x_label, fontsize=10, color=INK)
        limit_legend(figure, seen)
    return figure
