"""Definition of a figure: a sweep, its plot, and the claims it answers.

A figure only declares; running, keeping, judging and reporting are done for all figures alike.
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
    """One table of numbers of a figure."""

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
    """The published plot first, then what explains it."""
    listings: tuple[Listing, ...]
    claims: tuple[Claim, ...]
    standings: Standings | None = None
    """How our preset stands beside the figure's variants; None where there is nothing to compare."""
