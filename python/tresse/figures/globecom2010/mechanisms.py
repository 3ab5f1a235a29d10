"""Curves of the figures: the mechanisms that they switch on and off, and the preset `cmt` for comparison.

Curves of the same colour have the same mechanisms besides buffer splitting. Solid: both buffers split; dashed: neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tresse import standings
from tresse.figures.globecom2010.paths import DELAY, ERRORS, RATE, Panel
from tresse.plots.theme import BLUE, GREEN, INK, ORANGE, PURPLE

Dash = str | tuple[int, tuple[int, ...]]
"""A line style of Matplotlib."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A set of mechanisms: one curve."""

    name: str
    overrides: Mapping[str, str]
    colour: str
    dash: Dash = "-"
    marker: str = "o"


_SPLITS = {"no split": ("none", "--", "s"), "split": ("both", "-", "o")}


def _both_splits(name: str, colour: str, **switches: str) -> tuple[Variant, Variant]:
    """Return a set of mechanisms without and with buffer splitting."""
    settings = {f"transport.{switch}": value for switch, value in switches.items()}
    without, with_split = (
        Variant(f"{split}, {name}", {**settings, "transport.buffer_split": value}, colour, dash, marker)
        for split, (value, dash, marker) in _SPLITS.items()
    )
    return without, with_split


CMT = Variant(standings.CMT, {"preset": "cmt"}, INK, ":", "D")
"""Our preset, the same at every point of every figure; only buffers and order of delivery are the figure's."""

SACK, SACK_SPLIT = _both_splits("SACK", ORANGE, nr_sack="off")
NR, NR_SPLIT = _both_splits("NR-SACK", BLUE)
REPORTS, REPORTS_SPLIT = _both_splits("NR-SACK, drop reports", GREEN, drop_reports="true")
_HASTY = {"experiment.smart_fast_retransmit": "false"}
HASTY, HASTY_SPLIT = _both_splits("NR-SACK, no smart FR", PURPLE, **_HASTY)

UNORDERED: Mapping[Panel, tuple[Variant, ...]] = {
    RATE: (SACK, SACK_SPLIT, NR, NR_SPLIT),
    ERRORS: (SACK, SACK_SPLIT, NR, NR_SPLIT, REPORTS, REPORTS_SPLIT),
    DELAY: (SACK, SACK_SPLIT, NR, NR_SPLIT, HASTY, HASTY_SPLIT),
}
"""Variants that figures 5 and 6 compare."""

_MOVE = {"chunk_rescheduling": "sender"}
PLAIN, PLAIN_SPLIT = _both_splits("no rescheduling", ORANGE)
MOVED, MOVED_SPLIT = _both_splits("rescheduling", BLUE, **_MOVE)
MOVED_REPORTS, MOVED_REPORTS_SPLIT = _both_splits("rescheduling, drop reports", GREEN, **_MOVE, drop_reports="true")
MOVED_HASTY, MOVED_HASTY_SPLIT = _both_splits("rescheduling, no smart FR", PURPLE, **_MOVE, **_HASTY)

ORDERED: Mapping[Panel, tuple[Variant, ...]] = {
    RATE: (PLAIN, PLAIN_SPLIT, MOVED, MOVED_SPLIT),
    ERRORS: (PLAIN, PLAIN_SPLIT, MOVED, MOVED_SPLIT, MOVED_REPORTS, MOVED_REPORTS_SPLIT),
    DELAY: (PLAIN, PLAIN_SPLIT, MOVED, MOVED_SPLIT, MOVED_HASTY, MOVED_HASTY_SPLIT),
}
"""Variants that figures 7 and 8 compare, all with NR-SACK."""
