"""Figure 4: the effect of splitting either buffer over the queue capacity, and the claims G1 to G3.

Delivery is unordered with NR-SACK; path 2 has 10 Mbit/s. The queues of both paths hold φ packets and drop at the tail,
because the random drops of RED would blur the results.
"""

import matplotlib.figure

from tresse import standings
from tresse.bound import BoundPath, throughput_bound
from tresse.claims import TOLERANCE, Claim, Judgement, Measure, NotMeasured
from tresse.evidence import at_least, at_most, everywhere, gain, graded, higher
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.globecom2010 import paths
from tresse.figures.globecom2010.mechanisms import CMT, Variant
from tresse.figures.globecom2010.mixes import at, runs_at
from tresse.figures.globecom2010.paths import Buffers
from tresse.metrics import Mean, summarise
from tresse.plots.limits import LimitPanel, draw_limits
from tresse.plots.theme import BLUE, FAINT, GREEN, ORANGE, PAPER, PURPLE, new_figure, style
from tresse.standings import Standing
from tresse.sweep import Point, Sweep
from tresse.tables import Tables

PANELS = {
    "smaller receive buffer": Buffers(250_000, 125_000),
    "equal buffers": Buffers(250_000, 250_000),
    "smaller send buffer": Buffers(125_000, 250_000),
}
LEFT, MIDDLE, RIGHT = PANELS

CAPACITIES = (10, 20, 40, 60, 80, 100, 120, 160, 200)
"""φ: the queue capacity in packets."""
SLOW_MBPS = 10.0
KEPT_MBPS, SUNK_MBPS = 106.0, 20.0
"""Throughputs in the paper's text: with splitting that helps; and without, at the largest φ."""

NONE, SENDER, RECEIVER, BOTH = (
    Variant(f"split {name}", {"transport.buffer_split": name}, colour, dash, marker)
    for name, colour, dash, marker in (
        ("none", ORANGE, "--", "s"),
        ("sender", PURPLE, "-.", "^"),
        ("receiver", GREEN, (0, (5, 1)), "v"),
        ("both", BLUE, "-", "o"),
    )
)
VARIANTS = (NONE, SENDER, RECEIVER, BOTH)


def _point(panel: str, capacity: int, variant: Variant) -> Point:
    queue = {f"path.{path}.{key}": value for path in (0, 1) for key, value in _queue(capacity).items()}
    rate = {"path.1.rate": f"{SLOW_MBPS:g}Mbit/s"}
    return Point(
        {"panel": panel, "value": float(capacity), "variant": variant.name},
        {**PANELS[panel].overrides, **queue, **rate, **variant.overrides},
    )


def _queue(capacity: int) -> dict[str, str]:
    return {"discipline": "drop_tail", "queue": f"{capacity} packets"}


def bound_mbps(panel: str) -> float:
    """Throughput that no schedule can exceed."""
    both = [
        BoundPath.of(rate, paths.DELAY_MS, paths.PACKET_BYTES, paths.PAYLOAD_BYTES)
        for rate in (paths.RATE_MBPS, SLOW_MBPS)
    ]
    return throughput_bound(both, PANELS[panel].smaller_bytes)


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, axes = new_figure(12.6, 4.2, 1, len(PANELS))
    with style():
        for ax, (panel, buffers) in zip(axes[0], PANELS.items(), strict=True):
            for variant in (*VARIANTS, CMT):
                rows = tables.where(panel=panel, variant=variant.name).runs
                points = summarise(rows, ["value"], "throughput_mbps")
                ax.errorbar(
                    points["value"],
                    points["mean"],
                    yerr=points["half_width"].fillna(0),
                    label=variant.name,
                    color=variant.colour,
                    linestyle=variant.dash,
                    marker=variant.marker,
                    markerfacecolor=PAPER if variant is NONE else variant.colour,
                    capsize=2,
                )
            ax.axhline(bound_mbps(panel), color=FAINT, linestyle=":", linewidth=1.1, label="bound")
            for mbps in (KEPT_MBPS, SUNK_MBPS):
                ax.plot(CAPACITIES[-1], mbps, "D", markersize=11, markerfacecolor="none", color=FAINT)
            sizes = f"send {buffers.send_bytes // 1000} kB, receive {buffers.receive_bytes // 1000} kB"
            ax.set_title(f"{panel}: {sizes}", fontsize=9.5)
            ax.set(xlabel="capacity φ of both queues [packets]", ylim=(0, 115))
        axes[0][0].set_ylabel("throughput of user data [Mbit/s]")
        axes[0][0].legend(loc="lower left")
    return figure


def _draw_limits(tables: Tables) -> matplotlib.figure.Figure:
    panels = [LimitPanel(variant.name, tables.where(panel=LEFT, variant=variant.name)) for variant in (*VARIANTS, CMT)]
    return draw_limits(panels, "value", "capacity φ of both queues [packets]", ["path 1", "path 2"])


def _against_best(tables: Tables) -> list[Standing]:
    found = []
    for panel, buffers in PANELS.items():
        for capacity in CAPACITIES:
            try:
                variants = {variant.name: at(tables, panel, capacity, variant).value for variant in VARIANTS}
                ours = at(tables, panel, capacity, CMT).value
            except NotMeasured:
                continue
            where, kib = f"{panel}, φ = {capacity}", buffers.smaller_bytes / 1024
            found.append(Standing(where, kib, *standings.best_of(variants), ours, bound_mbps(panel)))
    return found


def _judge(tables: Tables, panel: str, keep: tuple[Variant, ...], sink: tuple[Variant, ...]) -> Judgement:
    """Judge whether `keep` have the throughput at all φ that fill the paths, and `sink` lose it at the largest φ."""
    full, largest = [c for c in CAPACITIES if c >= _FILLS], CAPACITIES[-1]
    lowest = {variant: min((at(tables, panel, c, variant) for c in full), key=_value) for variant in keep}
    highest = {variant: max((at(tables, panel, c, variant) for c in full), key=_value) for variant in sink}
    sunk = {variant: at(tables, panel, largest, variant) for variant in sink}
    kept = [at_least(at(tables, panel, c, variant), (1 - TOLERANCE) * KEPT_MBPS) for variant in keep for c in full]
    falls = [at_least(mean, (1 - TOLERANCE) * KEPT_MBPS) for mean in highest.values()]
    falls += [at_most(mean, (1 + TOLERANCE) * SUNK_MBPS) for mean in sunk.values()]
    helps = [
        higher(gain(runs_at(tables, panel, largest, good), runs_at(tables, panel, largest, poor)))
        for good in keep
        for poor in sink
    ]
    measures = [Measure(f"{variant.name}, lowest", mean, "Mbit/s", 1) for variant, mean in lowest.items()]
    measures += [Measure(f"{variant.name}, highest", mean, "Mbit/s", 1) for variant, mean in highest.items()]
    measures += [Measure(f"{variant.name}, φ = {largest}", mean, "Mbit/s", 1) for variant, mean in sunk.items()]
    least, once, at_end = (
        min(mean.value for mean in lowest.values()),
        min(mean.value for mean in highest.values()),
        max(mean.value for mean in sunk.values()),
    )
    finding = (
        f"{_names(keep)}: {least:.1f} Mbit/s or more; {_names(sink)}: from {once:.1f} Mbit/s to {at_end:.1f} or less "
        f"at φ = {largest}"
    )
    return Judgement(graded(everywhere([*kept, *falls]), everywhere(helps)), finding, tuple(measures))


_FILLS = 20
"""The bandwidth-delay product of path 1 in packets, rounded up: smaller queues leave the link idle after each loss."""


def _value(found: Mean) -> float:
    return found.value


def _names(variants: tuple[Variant, ...]) -> str:
    return ", ".join(variant.name.removeprefix("split ") for variant in variants)


_RULE = (
    f"{100 * TOLERANCE:.0f} % with the whole interval; kept: at least {KEPT_MBPS:.0f} Mbit/s less that at every φ from "
    f"{_FILLS} packets on; sunk: as much at some φ, and at most {SUNK_MBPS:.0f} Mbit/s and that at the largest; "
    "weaker: there only less than with the splitting that helps, by the paired difference"
)

FIGURE = Figure(
    name="globecom2010-4",
    title="Figure 4: splitting the buffers, over the capacity of plain queues",
    source=paths.SOURCE,
    sweep=Sweep(
        paths.SCENARIO,
        points=tuple(
            _point(panel, capacity, variant)
            for panel in PANELS
            for variant in (*VARIANTS, CMT)
            for capacity in CAPACITIES
        ),
        profiles=paths.PROFILES,
    ),
    drawings=(
        Drawing(
            "throughput",
            "Throughput of user data over the capacity of the queues; path 1 has 100 Mbit/s, path 2 10 Mbit/s. Dotted "
            "black: our preset cmt. Diamonds: what the paper's text states for the largest φ, with and without the "
            "splitting that helps. Dotted grey: what no schedule exceeds with these buffers.",
            _draw,
        ),
        Drawing(
            "limits",
            "What kept each path from sending with the smaller receive buffer, as shares of time.",
            _draw_limits,
        ),
    ),
    listings=(Listing("default", standings.CAPTION, standings.listing(_against_best)),),
    claims=(
        Claim(
            "G1",
            "With the smaller receive buffer, throughput sinks with φ when nothing or only the send buffer is split; "
            "splitting the receive buffer, or both, keeps it.",
            "106 and 20 Mbit/s",
            _RULE,
            lambda tables: _judge(tables, LEFT, (RECEIVER, BOTH), (NONE, SENDER)),
        ),
        Claim(
            "G2",
            "With the smaller send buffer it is the other way round.",
            "106 and 20 Mbit/s",
            _RULE,
            lambda tables: _judge(tables, RIGHT, (SENDER, BOTH), (NONE, RECEIVER)),
        ),
        Claim(
            "G3",
            "With equal buffers, splitting either or both keeps the throughput; with none split it sinks.",
            "106 and 20 Mbit/s",
            _RULE,
            lambda tables: _judge(tables, MIDDLE, (SENDER, RECEIVER, BOTH), (NONE,)),
        ),
    ),
    standings=_against_best,
)
