"""Common style of all figures, in files and on the page.

Figures are drawn without pyplot, so no global state is changed. On the page the neutral colours become CSS variables,
so that plots follow the reader's light or dark setting; data colours do not change.
"""

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tresse.store import write_atomically

INK = "#24292f"
FAINT = "#6e7781"
GRID = "#d0d7de"
PAPER = "#fefefe"
_ON_PAGE = {INK: "var(--ink)", FAINT: "var(--faint)", GRID: "var(--line)", PAPER: "var(--card)"}

BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"
"""The colour-blind-safe palette of Okabe and Ito."""

LIMIT_COLOURS = {
    "nothing": GREEN,
    "full": "#004d40",
    "congestion_window": BLUE,
    "pacing": "#8c9eff",
    "burst": "#5d4037",
    "send_buffer": YELLOW,
    "receive_buffer": ORANGE,
    "scheduler": PURPLE,
    "application": SKY,
    "host": "#b71c1c",
    "path_down": FAINT,
}
"""One colour for each limit, the same in every figure."""

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": PAPER,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
}


def style() -> AbstractContextManager[None]:
    """Return a context in which figures are drawn or saved in the common style."""
    return mpl.rc_context(_STYLE)


def new_figure(
    width: float,
    height: float,
    rows: int = 1,
    columns: int = 1,
    share_y: Literal["all", "row", "none"] = "all",
    *,
    share_x: bool = True,
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of `width` × `height` inches with a grid of axes that share their scales."""
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=share_y)
    return figure, [list(row) for row in axes]


def limit_legend(figure: Figure, seen: set[str]) -> None:
    """Draw a legend of the colours of the limits that occurred, above all axes."""
    handles = [
        Patch(color=colour, label=name.replace("_", " ")) for name, colour in LIMIT_COLOURS.items() if name in seen
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=max(1, len(handles)), labelcolor=INK)


def svg(figure: Figure, name: str) -> str:
    """Return the figure as an SVG document; the same figure and name give the same bytes."""
    buffer = io.StringIO()
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def inline_svg(figure: Figure, name: str) -> str:
    """Return the figure as an SVG element for a page that defines the neutral colours as CSS variables."""
    text = svg(figure, name)
    element = text[text.index("<svg") :]
    for colour, variable in _ON_PAGE.items():
        element = element.replace(colour, variable)
    return element


def save(figure: Figure, directory: Path, name: str) -> None:
    """Write the figure as `name`.svg and `name`.pdf into `directory`."""
    write_atomically(directory / f"{name}.svg", svg(figure, name).encode())
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="pdf", metadata={"CreationDate": None})
    write_atomically(directory / f"{name}.pdf", buffer.getvalue())
