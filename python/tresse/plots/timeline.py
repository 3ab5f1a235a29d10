"""Timeline of blocking: one column for each recorded run, one row for each path, the buffers below."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tresse.plots.theme import FAINT, INK, LIMIT_COLOURS, limit_legend, new_figure, style

_KIB = 1024


@dataclass(frozen=True)
class TimelinePanel:
    """One recorded run: the samples of its paths."""

    title: str
    samples: pd.DataFrame


def draw_timeline(panels: Sequence[TimelinePanel], path_names: Sequence[str]) -> Figure:
    """Draw the bytes in flight on each path, over the colour of its limit, and the contents of both buffers."""
    rows = len(path_names) + 1
    figure, axes = new_figure(4.5 * len(panels) + 0.6, 1.45 * rows + 0.9, rows, len(panels), share_y="row")
    seen: set[str] = set()
    with style():
        for column, panel in enumerate(panels):
            for row, name in enumerate(path_names):
                ax = axes[row][column]
                path = panel.samples[panel.samples["path"] == row]
                seen |= _draw_path(ax, path)
                if column == 0:
                    ax.set_ylabel(f"{name}\nin flight [KiB]")
            axes[0][column].set_title(panel.title)
            _draw_buffers(axes[-1][column], panel.samples[panel.samples["path"] == 0])
        axes[-1][0].set_ylabel("buffers [KiB]")
        axes[-1][-1].legend(loc="lower right", ncols=2)
        figure.supxlabel("time [s]", fontsize=10, color=INK)
        limit_legend(figure, seen)
    return figure


def _draw_path(ax: Axes, path: pd.DataFrame) -> set[str]:
    """Draw the flight as a line over a background of limits; return the limits that occurred."""
    time = path["time_s"].to_numpy(dtype=float)
    limits = path["limit"].to_numpy()
    ax.plot(time, path["flight_bytes"] / _KIB, color=INK, linewidth=1)
    # A sample has the limit since the previous one; samples in a row with the same limit become one span.
    starts = np.flatnonzero(np.r_[True, limits[1:] != limits[:-1]])
    ends = np.r_[starts[1:], len(limits)]
    for first, end in zip(starts, ends, strict=True):
        begin = time[first - 1] if first else time[0]
        ax.axvspan(begin, time[end - 1], color=LIMIT_COLOURS[limits[first]], alpha=0.35, linewidth=0)
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    ax.grid(False)
    return set(limits)


def _draw_buffers(ax: Axes, samples: pd.DataFrame) -> None:
    ax.plot(samples["time_s"], samples["send_buffer_bytes"] / _KIB, color=FAINT, linewidth=1, label="send buffer")
    ax.plot(samples["time_s"], samples["receive_buffer_bytes"] / _KIB, color=INK, linewidth=1, label="receive buffer")
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
