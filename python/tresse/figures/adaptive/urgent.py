"""A latency-critical stream while bulk streams fill all paths, and the claim B4.

The same short messages are sent with and without a class, over every pair of paths of the PFLDNeT 2010 paper.
"""

import math

import matplotlib.figure
import pandas as pd

from tresse.claims import TOLERANCE, Claim, Judgement, Measure
from tresse.evidence import at_least, at_most, everywhere
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010 import delays, variants
from tresse.figures.pfldnet2010.variants import Setup, Variant
from tresse.metrics import Mean, mean, summarise
from tresse.plots.theme import BLUE, FAINT, GREEN, ORANGE, new_figure, style
from tresse.sweep import Sweep
from tresse.tables import Tables

SOURCE = "The project's own (docs/adaptive.md), over the paths of " + delays.SOURCE
SCENARIO = "adaptive/urgent.toml"
STREAM = 0
SIGMA_KIB = 256
ALLOWED = 1.10
"""Allowed delay, as a multiple of the fastest path's one-way delay plus one packet's transmission time.

The stack does not use this multiple: it limits the queue of the path to between 0.25 and 1.1 packets.
"""

LATENCY = Variant("latency", GREEN, "-", {"transport.stream_classes": f"{STREAM}=latency"})
NO_CLASS = Variant("no class", BLUE, "-", {"transport.stream_classes": ""})
PRIORITY = Variant(
    "cmt, priority",
    ORANGE,
    "-",
    {
        "preset": "cmt",
        "transport.stream_classes": "",
        "transport.stream_scheduler": "priority",
        "transport.stream_scheduler_config": f"{STREAM}=0,1=1,2=1",
    },
)
VARIANTS = (LATENCY, NO_CLASS, PRIORITY)


def _setup(name: str, rate_b: int, delay_b: int) -> Setup:
    overrides = {"path.1.rate": f"{rate_b}Mbit/s", "path.1.delay": f"{delay_b}ms"}
    return Setup(name, ((10.0, 10.0), (float(rate_b), float(delay_b))), overrides, (SIGMA_KIB,))


SETUPS = (
    *(_setup(f"10/{delay} ms", 10, delay) for delay in (10, 50, 75)),
    *(_setup(f"10/{rate} Mbit/s", rate, 10) for rate in (25, 50)),
)


def least_ms(setup: Setup) -> float:
    """Return the one-way delay of the fastest path plus one packet's transmission time there."""
    return min(delay + variants.PACKET_BYTES * 8 / (rate * 1000) for rate, delay in setup.paths)


def delay(tables: Tables, setup: Setup, variant: Variant, column: str = "delay_mean_ms") -> Mean:
    """Return the delay of the stream's messages in ms: the mean, or another value of the distribution by `column`."""
    rows = variants.rows_of(tables.streams, setup, variant.name, SIGMA_KIB)
    return mean(rows[rows["stream"] == STREAM][column])


def _judge(tables: Tables) -> Judgement:
    measures, found = [], []
    ends: dict[str, float] = {}
    for setup in SETUPS:
        waits = delay(tables, setup, LATENCY)
        rate = variants.throughput(tables, setup, LATENCY.name, SIGMA_KIB)
        found += [
            at_most(waits, ALLOWED * least_ms(setup)),
            at_least(rate, (1 - TOLERANCE) * setup.capacity_mbps),
        ]
        ends[setup.name] = (waits.value if math.isnan(waits.high) else waits.high) / least_ms(setup)
        measures += [
            Measure(f"{setup.name}, of {least_ms(setup):.2f} ms", waits, "ms"),
            Measure(f"{setup.name}, 99 %", delay(tables, setup, LATENCY, "delay_p99_ms"), "ms"),
            Measure(f"{setup.name}, of {setup.capacity_mbps:.2f}", rate, "Mbit/s"),
        ]
    latest = max(ends, key=lambda name: ends[name])
    finding = (
        f"latest at {latest}: {100 * ends[latest]:.1f} % of one-way delay and transmission, at the upper end of the "
        "interval; at " + ", ".join(f"{name} {100 * end:.1f} %" for name, end in ends.items() if name != latest)
    )
    return Judgement(everywhere(found), finding, tuple(measures))


def _of_stream(tables: Tables) -> pd.DataFrame:
    return tables.streams[tables.streams["stream"] == STREAM]


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, [[ax]] = new_figure(8.6, 4.2)
    rows = _of_stream(tables)
    with style():
        for place, variant in enumerate(VARIANTS):
            found = summarise(rows[rows["variant"] == variant.name], ["setup"], "delay_mean_ms").set_index("setup")
            ax.errorbar(
                [position + 0.15 * (place - 1) for position in range(len(SETUPS))],
                [found["mean"][setup.name] for setup in SETUPS],
                yerr=[found["half_width"].fillna(0)[setup.name] for setup in SETUPS],
                label=variant.name,
                color=variant.colour,
                linestyle="none",
                marker="o",
                capsize=2,
            )
        for position, setup in enumerate(SETUPS):
            limit = ALLOWED * least_ms(setup)
            ax.hlines(limit, position - 0.3, position + 0.3, color=FAINT, linestyle=":")
        ax.plot([], [], color=FAINT, linestyle=":", label="10 % more than the fastest path takes")
        ax.set_xticks(range(len(SETUPS)), [setup.name for setup in SETUPS])
        ax.set_yscale("log")
        ax.set(ylabel="mean delay of short messages [ms]")
        ax.legend(loc="upper left")
    return figure


def _delays(tables: Tables) -> pd.DataFrame:
    return summarise(_of_stream(tables), ["setup", "variant"], "delay_mean_ms")


def _late(tables: Tables) -> pd.DataFrame:
    return summarise(_of_stream(tables), ["setup", "variant"], "delay_p99_ms")


def _throughputs(tables: Tables) -> pd.DataFrame:
    return summarise(tables.runs, ["setup", "variant"], "throughput_mbps")


FIGURE = Figure(
    name="adaptive-4",
    title="A latency-critical stream beside bulk streams that fill all paths",
    source=SOURCE,
    sweep=Sweep(SCENARIO, variants.points(SETUPS, VARIANTS)),
    drawings=(
        Drawing(
            "urgent",
            "Mean delay of messages of 1 to 100 bytes, 20 a second in the mean, beside two saturated streams; both "
            f"buffers {SIGMA_KIB} KiB. Green: the stream is latency-critical; blue: it has no class; orange: the "
            "preset cmt with strict priority. Dotted: what B4 allows.",
            _draw,
        ),
    ),
    listings=(
        Listing("delays", "Mean delay of the short messages in ms, mean and 95 % half-width", _delays),
        Listing("late", "What 99 % of the delays did not exceed, in ms, mean and 95 % half-width", _late),
        Listing("summary", "Throughput of all streams in Mbit/s, mean and 95 % half-width", _throughputs),
    ),
    claims=(
        Claim(
            "B4",
            "A latency-critical stream keeps its delay close to the fastest path's one-way delay and one packet's "
            "transmission while bulk streams fill all paths.",
            "within 10 %",
            "mean delay with the whole interval, over every pair of paths by itself; full: "
            f"{100 * (1 - TOLERANCE):.0f} % of what the paths carry, likewise. The limit is no constant of the "
            "stack, which keeps 0.25 to 1.1 packets waiting there: 10 % are 0.93 packets at 10 Mbit/s and 4.3 at 50. "
            "It counts a full packet's transmission, of which a short message needs a tenth or less",
            _judge,
        ),
    ),
)
