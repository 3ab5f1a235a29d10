"""Measurements of one of figures 5 to 8: its order of delivery and congestion control, over the three panels.

A mix turns panels and variants into a sweep, and finds the runs of one point again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tresse.claims import NotMeasured
from tresse.evidence import Runs, by_seed
from tresse.figures.globecom2010.mechanisms import CMT, Variant
from tresse.figures.globecom2010.paths import ORDERED_BUFFERS, PANELS, PROFILES, SCENARIO, Buffers, Panel
from tresse.metrics import Mean, mean
from tresse.sweep import Point, Sweep
from tresse.tables import Tables


@dataclass(frozen=True)
class Mix:
    """One figure's transfers."""

    ordered: bool
    controller: str
    variants: Mapping[Panel, tuple[Variant, ...]]
    """The curves of each panel, ours left out."""
    least_runs: Mapping[Panel, int] = field(default_factory=dict)
    """Of each point of the figure's own curves."""

    def buffers(self, panel: Panel) -> Buffers:
        """Ordered transfers have larger ones."""
        return ORDERED_BUFFERS if self.ordered else panel.buffers

    def sweep(self) -> Sweep:
        """Every curve of every panel, ours beside them."""
        points = tuple(
            self._point(panel, value, variant)
            for panel in PANELS
            for variant in (*self.variants[panel], CMT)
            for value in panel.values
        )
        return Sweep(SCENARIO, points, profiles=PROFILES)

    def _point(self, panel: Panel, value: float, variant: Variant) -> Point:
        # Ours bring their own controller.
        controller = {} if variant is CMT else {"transport.congestion_control": self.controller}
        own = variant in self.variants[panel]
        return Point(
            {"panel": panel.name, "value": float(value), "variant": variant.name},
            {
                "traffic.ordered": str(self.ordered).lower(),
                **self.buffers(panel).overrides,
                **controller,
                **panel.overrides(value),
                **variant.overrides,
            },
            self.least_runs.get(panel, 1) if own else 1,
        )


def at(tables: Tables, panel: str, value: float, variant: Variant) -> Mean:
    """Mean throughput at one point, in Mbit/s; raises `NotMeasured` when there is no run."""
    rows = tables.where(panel=panel, value=float(value), variant=variant.name).runs
    if rows.empty:
        raise NotMeasured(f"no run of {variant.name} with {panel} at {value:g}")
    return mean(rows["throughput_mbps"])


def runs_at(tables: Tables, panel: str, value: float, variant: Variant) -> Runs:
    """Throughput of each run at one point, by seed; raises `NotMeasured` when there is none."""
    rows = tables.where(panel=panel, value=float(value), variant=variant.name).runs
    return by_seed(rows, "throughput_mbps", f"{variant.name} with {panel} at {value:g}")


def runs(tables: Tables, panel: Panel, value: float, variant: Variant) -> Runs:
    """As `runs_at`, by panel."""
    return runs_at(tables, panel.name, value, variant)


def throughput(tables: Tables, panel: Panel, value: float, variant: Variant) -> Mean:
    """As `at`, by panel."""
    return at(tables, panel.name, value, variant)


def curve(tables: Tables, panel: Panel, variant: Variant) -> dict[float, Mean]:
    """Mean throughput at every value of the panel."""
    return {value: throughput(tables, panel, value, variant) for value in panel.values}
