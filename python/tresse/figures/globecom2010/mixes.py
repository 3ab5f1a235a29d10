"""Measurements of one of figures 5 to 8: its order of delivery and congestion control, over the three panels.

A mix combines panels and variants into a sweep, and selects the runs of one point from its tables.
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
    """Transfers of one figure."""

    ordered: bool
    controller: str
    variants: Mapping[Panel, tuple[Variant, ...]]
    """The curves of each panel, without our preset."""
    least_runs: Mapping[Panel, int] = field(default_factory=dict)
    """Least number of runs for each point of the figure's own curves."""

    def buffers(self, panel: Panel) -> Buffers:
        """Return the buffers of a panel; those of ordered transfers are larger."""
        return ORDERED_BUFFERS if self.ordered else panel.buffers

    def sweep(self) -> Sweep:
        """Return the sweep with every curve of every panel and with our preset."""
        points = tuple(
            self._point(panel, value, variant)
            for panel in PANELS
            for variant in (*self.variants[panel], CMT)
            for value in panel.values
        )
        return Sweep(SCENARIO, points, profiles=PROFILES)

    def _point(self, panel: Panel, value: float, variant: Variant) -> Point:
        # The preset has a congestion controller of its own.
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
    """Return the mean throughput at one point, in Mbit/s; raise `NotMeasured` if there is no run."""
    rows = tables.where(panel=panel, value=float(value), variant=variant.name).runs
    if rows.empty:
        raise NotMeasured(f"no run of {variant.name} with {panel} at {value:g}")
    return mean(rows["throughput_mbps"])


def runs_at(tables: Tables, panel: str, value: float, variant: Variant) -> Runs:
    """Return the throughput of each run at one point, by seed; raise `NotMeasured` if there is no run."""
    rows = tables.where(panel=panel, value=float(value), variant=variant.name).runs
    return by_seed(rows, "throughput_mbps", f"{variant.name} with {panel} at {value:g}")


def runs(tables: Tables, panel: Panel, value: float, variant: Variant) -> Runs:
    """Return the same as `runs_at`, by panel."""
    return runs_at(tables, panel.name, value, variant)


def throughput(tables: Tables, panel: Panel, value: float, variant: Variant) -> Mean:
    """Return the same as `at`, by panel."""
    return at(tables, panel.name, value, variant)


def curve(tables: Tables, panel: Panel, variant: Variant) -> dict[float, Mean]:
    """Return the mean throughput at every value of the panel."""
    return {value: throughput(tables, panel, value, variant) for value in panel.values}
