"""Our preset `cmt` compared with the best variant of a figure at each point, with one configuration for all points."""

from functools import partial

from tresse import standings
from tresse.claims import NotMeasured
from tresse.figures.figure import Listing
from tresse.figures.globecom2010.mechanisms import CMT
from tresse.figures.globecom2010.mixes import Mix, throughput
from tresse.figures.globecom2010.paths import PANELS, Panel
from tresse.standings import Standing
from tresse.tables import Tables


def against_best(tables: Tables, mix: Mix) -> list[Standing]:
    """Return every point that has runs of all variants and of the preset."""
    found = []
    for panel in PANELS:
        for value in panel.values:
            try:
                found.append(_standing(tables, mix, panel, value))
            except NotMeasured:
                continue
    return found


def _standing(tables: Tables, mix: Mix, panel: Panel, value: float) -> Standing:
    variants = {variant.name: throughput(tables, panel, value, variant).value for variant in mix.variants[panel]}
    buffers = mix.buffers(panel)
    return Standing(
        f"path 2: {panel.text(value) if panel.unit else f'bit errors {value:g}'}",
        buffers.smaller_bytes / 1024,
        *standings.best_of(variants),
        throughput(tables, panel, value, CMT).value,
        panel.bound_mbps(value, buffers),
    )


def listings(mix: Mix) -> tuple[Listing, ...]:
    """Return the tables for the report."""
    return (Listing("default", standings.CAPTION, standings.listing(partial(against_best, mix=mix))),)
