"""Our preset `cmt` against the best variant of a figure, point by point, with one configuration for all of them."""

from functools import partial

import pandas as pd

from tresse.figures.figure import Listing
from tresse.figures.globecom2010.mechanisms import CMT
from tresse.figures.globecom2010.mixes import Mix, throughput
from tresse.figures.globecom2010.paths import PANELS, Panel
from tresse.tables import Tables

AIM = 0.97
"""Share of the best variant's throughput that the preset is to reach at every point."""


def against_best(tables: Tables, mix: Mix) -> pd.DataFrame:
    """One row a point: throughputs of the best variant and of the preset in Mbit/s, the bound, and ratios."""
    rows = [_row(tables, mix, panel, value) for panel in PANELS for value in panel.values]
    return pd.DataFrame(rows)


def _row(tables: Tables, mix: Mix, panel: Panel, value: float) -> dict[str, object]:
    found = {variant.name: throughput(tables, panel, value, variant).value for variant in mix.variants[panel]}
    best = max(found, key=lambda name: found[name])
    ours = throughput(tables, panel, value, CMT).value
    bound = panel.bound_mbps(value, mix.buffers(panel))
    return {
        "path 2": panel.text(value),
        "best variant": best,
        "best_mbps": found[best],
        "cmt_mbps": ours,
        "bound_mbps": bound,
        "cmt / best": ours / found[best],
        "cmt / bound": ours / bound,
    }


def listings(mix: Mix) -> tuple[Listing, ...]:
    """The table for the report."""
    caption = f"The preset cmt against the best variant at each point; the aim is {100 * AIM:.0f} %"
    return (Listing("default", caption, partial(against_best, mix=mix)),)
