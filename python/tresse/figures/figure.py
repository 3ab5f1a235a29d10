"""Definition of a figure: a sweep, its plots, and the claims that are judged by it.

A figure contains only declarations; running, storing, judging and reporting are the same for all figures.
"""

from collections.abc import Callable
from dataclasses import dataclass

import matplotlib.figure
import pandas as pd

from tresse.claims import Claim
from tresse.standings import Standings
from tresse.sweep import Sweep
from tresse.tables import Tables


@dataclass(frozen=True)
class Drawing:
    """One plot of a figure."""

    name: str
    caption: str
    draw: Callable[[Tables], matplotlib.figure.Figure]


@dataclass(frozen=True)
class Listing:
    """A table of a figure's numbers."""

    name: str
    caption: str
    make: Callable[[Tables], pd.DataFrame]


@dataclass(frozen=True)
class Figure:
    """A published figure that the lab can re-create."""

    name: str
    title: str
    source: str
    """Paper, authors, venue."""
    sweep: Sweep
    drawings: tuple[Drawing, ...]
    """The published plot first, then further plots that explain it."""
    listings: tuple[Listing, ...]
    claims: tuple[Claim, ...]
    standings: Standings | None = None
    """Comparison of our preset with the figure's variants; None if there is nothing to compare."""
