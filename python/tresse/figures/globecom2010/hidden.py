"""Settings that the paper leaves unsaid: what a curve becomes with another one."""

from collections.abc import Mapping
from functools import partial

import pandas as pd

from tresse.figures.figure import Listing
from tresse.figures.globecom2010.mechanisms import MOVED_SPLIT, NR, NR_SPLIT, Variant
from tresse.figures.globecom2010.mixes import Hidden, Mix, throughput
from tresse.figures.globecom2010.paths import DELAY, RATE, Panel
from tresse.tables import Tables


def _with(variant: Variant, name: str, **overrides: str) -> Variant:
    """The same mechanisms with further settings of the scenario, named by dots written as "__"."""
    settings = {key.replace("__", "."): value for key, value in overrides.items()}
    return Variant(f"{variant.name}, {name}", {**variant.overrides, **settings}, variant.colour)


_PATHS = (
    _with(NR_SPLIT, "SACKs to the first packet's path", transport__sack_path="first_data"),
    _with(NR_SPLIT, "SACKs in turn", transport__sack_path="round_robin"),
    _with(NR_SPLIT, "primary path first", transport__path_scheduler="in_order"),
)
UNORDERED: Mapping[Panel, tuple[Hidden, ...]] = {
    RATE: tuple(Hidden(variant, (1, 10)) for variant in _PATHS),
    DELAY: tuple(Hidden(variant, DELAY.values) for variant in _PATHS),
}
"""Which path SACKs take and which path is served first."""

POOLED: Mapping[Panel, tuple[Hidden, ...]] = {
    RATE: tuple(
        Hidden(_with(variant, f"{delay} each way", path__0__delay=delay, path__1__delay=delay), (100,))
        for delay in ("1.25ms", "1.3ms")
        for variant in (NR, NR_SPLIT)
    )
}
"""The delay of the links between hosts and routers, of which the paper says nothing."""


ORDERED: Mapping[Panel, tuple[Hidden, ...]] = {
    RATE: (Hidden(_with(MOVED_SPLIT, "either buffer", transport__chunk_rescheduling="both"), (0.5, 1)),),
    DELAY: (Hidden(_with(MOVED_SPLIT, "SACKs in turn", transport__sack_path="round_robin"), DELAY.values),),
}
"""Which buffer is watched, and which path SACKs take."""


def listings(mix: Mix) -> tuple[Listing, ...]:
    """One table for each panel with such settings."""
    return tuple(
        Listing(
            f"hidden-{panel.name}",
            f"What settings that the paper leaves unsaid do over the {panel.label}, in Mbit/s",
            partial(_table, mix=mix, panel=panel),
        )
        for panel in mix.hidden
    )


def _table(tables: Tables, mix: Mix, panel: Panel) -> pd.DataFrame:
    values = mix.hidden[panel][0].values
    rows = []
    for variant in (*mix.variants[panel], *(hidden.variant for hidden in mix.hidden[panel])):
        found = {panel.text(value): throughput(tables, panel, value, variant).value for value in values}
        rows.append({"variant": variant.name, **found})
    return pd.DataFrame(rows)
