"""Sequence plot of a run at the sender: TSNs over time by path, the windows of peer and paths, and the limits."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tresse.plots.theme import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    LIMIT_COLOURS,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    limit_legend,
    new_figure,
    style,
)
from tresse.traces import Trace

PATH_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW)
"""Colours of the paths by index; they repeat for further paths."""

_KIB = 1024


def draw_sequence(trace: Trace, title: str = "") -> Figure:
    """Draw the TSNs, below them the peer's window, and then a strip for each path."""
    figure, axes = new_figure(8.8, 4.6 + 1.1 * trace.paths, 2 + trace.paths, 1, share_y="row")
    column = [row[0] for row in axes]
    with style():
        _draw_tsns(column[0], trace)
        _draw_window(column[1], trace)
        seen: set[str] = set()
        for path, ax in enumerate(column[2:]):
            seen |= _draw_path(ax, trace, path)
        if title:
            # A dollar sign would begin a formula.
            column[0].set_title(title.replace("$", r"\$"))
        column[-1].set_xlabel("time [s]")
        limit_legend(figure, seen)
    return figure


def path_colour(path: int) -> str:
    """Return the colour of a path."""
    return PATH_COLOURS[path % len(PATH_COLOURS)]


def _draw_tsns(ax: Axes, trace: Trace) -> None:
    sent = trace.sent
    for path in range(trace.paths):
        mine = sent[sent["path"] == path]
        first, again = mine[~mine["again"].astype(bool)], mine[mine["again"].astype(bool)]
        colour = path_colour(path)
        ax.plot(first["t"], first["tsn"], ".", color=colour, markersize=2.5, label=f"path {path}")
        ax.plot(again["t"], again["tsn"], "x", color=colour, markersize=5, label=f"path {path}, again")
    lost = sent[sent["dropped"].astype(bool)]
    ax.plot(lost["t"], lost["tsn"], "o", color=INK, markersize=6, markerfacecolor="none", linewidth=0.8, label="lost")
    if not trace.sacks.empty:
        ax.step(
            trace.sacks["t"], trace.sacks["tsn"].cummax(), where="post", color=FAINT, linewidth=1, label="acknowledged"
        )
    ax.set_ylabel("TSN")
    ax.legend(loc="lower right", ncols=2, markerscale=1.5)


def _draw_window(ax: Axes, trace: Trace) -> None:
    states = trace.states
    ax.step(states["t"], states["peer_window"] / _KIB, where="post", color=INK, linewidth=1)
    ax.set_ylabel("peer's window\n[KiB]")
    ax.set_ylim(bottom=0)


def _draw_path(ax: Axes, trace: Trace, path: int) -> set[str]:
    """Draw window and flight over the colour of the path's limit; return the limits that occurred."""
    states = trace.states
    if f"limit_{path}" not in states:
        return set()
    known = states.dropna(subset=[f"limit_{path}"])
    time, limits = known["t"].to_numpy(dtype=float), known[f"limit_{path}"].to_numpy()
    ax.step(time, known[f"cwnd_{path}"] / _KIB, where="post", color=path_colour(path), linewidth=1.2)
    ax.step(time, known[f"flight_{path}"] / _KIB, where="post", color=INK, linewidth=0.7)
    _mark_timeouts(ax, known, path)
    if len(time):
        # A state has the limit since the previous one; states with the same limit become one span.
        starts = np.flatnonzero(np.r_[True, limits[1:] != limits[:-1]])
        ends = np.r_[starts[1:], len(limits)]
        for first, end in zip(starts, ends, strict=True):
            begin = time[first - 1] if first else time[0]
            ax.axvspan(begin, time[end - 1], color=LIMIT_COLOURS[limits[first]], alpha=0.3, linewidth=0)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"path {path}\ncwnd, flight\n[KiB]")
    ax.grid(False)
    return set(limits)


def _mark_timeouts(ax: Axes, states: pd.DataFrame, path: int) -> None:
    timeouts = states[f"timeouts_{path}"]
    for at in states["t"][timeouts.diff() > 0]:
        ax.axvline(at, color=INK, linewidth=1, linestyle=":")
