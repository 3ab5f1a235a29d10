"""Comparison of our preset `cmt` with the best variant of a figure: at each point, and as a summary.

The preset is one configuration for all figures; only buffers and traffic are the figure's. Nothing is run here: the
comparison uses the runs that a figure has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from tresse.claims import NotMeasured
from tresse.tables import Tables

CMT = "preset cmt"
"""Name of the preset's variant in figures."""
AIM = 0.97
"""Share of the best variant's throughput that the preset should reach at every point."""
GAIN = 1.10
"""Share that the preset should reach with the smallest buffers of each figure."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The comparison at one point of a figure. Throughputs are those of user data, in Mbit/s."""

    where: str
    buffer_kib: float
    """The smaller of send and receive buffer."""
    best: str
    """The best variant of the figure, without our preset."""
    best_mbps: float
    cmt_mbps: float
    bound_mbps: float
    """Throughput that no schedule can exceed with these buffers, even without random loss."""

    @property
    def share(self) -> float:
        """The preset's throughput divided by the best variant's."""
        return self.cmt_mbps / self.best_mbps

    def row(self) -> dict[str, object]:
        """Return the point as a row of tables."""
        return {
            "where": self.where,
            "buffer_kib": round(self.buffer_kib, 1),
            "best variant": self.best,
            "best_mbps": self.best_mbps,
            "cmt_mbps": self.cmt_mbps,
            "bound_mbps": self.bound_mbps,
            "cmt / best": self.share,
            "bound / best": self.bound_mbps / self.best_mbps,
        }


Standings = Callable[[Tables], list[Standing]]
"""Compares the preset at the points of a figure, in the figure's order; leaves out points without runs."""

CAPTION = f"The preset cmt against the best variant at each point; the aim is {100 * AIM:.0f} %"
SMALLEST = f"The same with the smallest buffer of each figure; the aim is {100 * (GAIN - 1):.0f} % more"


def best_of(found: dict[str, float]) -> tuple[str, float]:
    """Return the variant with the highest throughput; raise `NotMeasured` if there is none."""
    if not found:
        raise NotMeasured("no variant to compare with")
    best = max(found, key=lambda name: found[name])
    return best, found[best]


def listing(standings: Standings) -> Callable[[Tables], pd.DataFrame]:
    """Return a function that makes a table with one row for each point."""

    def table(tables: Tables) -> pd.DataFrame:
        return pd.DataFrame([standing.row() for standing in standings(tables)])

    return table


def smallest(points: Sequence[Standing]) -> list[Standing]:
    """Return the points with the smallest buffer of a figure."""
    least = min((point.buffer_kib for point in points), default=0.0)
    return [point for point in points if point.buffer_kib == least]


def summary(figures: dict[str, list[Standing]]) -> pd.DataFrame:
    """Return one row for each figure: its points, those below the aim, and the point with the least share."""
    rows = []
    for name, points in figures.items():
        if not points:
            continue
        worst = min(points, key=lambda point: point.share)
        rows.append(
            {
                "figure": name,
                "points": len(points),
                f"below {100 * AIM:.0f} %": sum(point.share < AIM for point in points),
                "least cmt / best": worst.share,
                "at": worst.where,
                "best variant": worst.best,
            }
        )
    return pd.DataFrame(rows)


def with_smallest_buffers(figures: dict[str, list[Standing]]) -> pd.DataFrame:
    """Return one row for each point with the smallest buffer of its figure, and whether it reaches the gain."""
    rows = []
    for name, points in figures.items():
        for point in smallest(points):
            row = point.row()
            possible = point.bound_mbps >= GAIN * point.best_mbps
            verdict = "reached" if point.share >= GAIN else "missed" if possible else "above the bound"
            rows.append({"figure": name, **row, f"{100 * (GAIN - 1):.0f} % more": verdict})
    return pd.DataFrame(rows)
