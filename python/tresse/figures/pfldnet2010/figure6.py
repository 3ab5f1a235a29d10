"""Figure 6: throughput of each stream on paths of different bandwidth, and the claims P8 to P10."""

import matplotlib.figure
import pandas as pd

from tresse import standings
from tresse.claims import TOLERANCE, Claim, Judgement, Measure
from tresse.evidence import alike, by_seed, everywhere, gain, near
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010 import delays, variants
from tresse.figures.pfldnet2010.variants import PAYLOAD_SHARE, Setup, Variant
from tresse.metrics import Mean, summarise
from tresse.plots.theme import BLUE, GREEN, ORANGE, new_figure, style
from tresse.standings import Standing
from tresse.sweep import Sweep
from tresse.tables import Tables

RATE_A = 10.0
LARGE_KIB = 2048
"""The largest σ that is drawn.

The text requires a "sufficiently large" one without stating it; over 10/50 Mbit/s round-robin may still rise here.
"""
SIGMAS_KIB = (64, 128, 192, 256, 384, 512, 768, 1024, LARGE_KIB)

ROUND_ROBIN = Variant("round-robin", ORANGE, "--", {"transport.stream_map": "any"})
FIXED = Variant("fixed", BLUE, "-", {"transport.stream_map": "fixed:0,1"})
INFORMED = Variant("fixed, fed by queue", GREEN, "-", {**FIXED.overrides, "traffic.refill": "by_queue"})
VARIANTS = (ROUND_ROBIN, FIXED, INFORMED)


def _setup(rate_b: int) -> Setup:
    paths = ((RATE_A, 10.0), (float(rate_b), 10.0))
    return Setup(f"10/{rate_b} Mbit/s", paths, {"path.1.rate": f"{rate_b}Mbit/s"}, SIGMAS_KIB)


SETUPS = tuple(_setup(rate) for rate in (25, 50))


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, axes = new_figure(9.4, 6.4, rows=2, columns=2, share_y="row")
    with style():
        for row, setup in zip(axes, SETUPS, strict=True):
            for stream, ax in enumerate(row):
                table = tables.streams[tables.streams["stream"] == stream]
                variants.plot(ax, table, setup, VARIANTS, "throughput_mbps")
                ax.set_title(f"{setup.name}, stream {stream}")
                ax.set_xscale("log", base=2)
                ax.set(xlabel=variants.SIGMA_LABEL, ylabel="user data [Mbit/s]", ylim=(0, setup.capacity_mbps))
        axes[0][0].legend(loc="upper left")
    return figure


def _rates(tables: Tables) -> pd.DataFrame:
    return summarise(tables.streams, ["setup", "variant", "stream", "sigma_kib"], "throughput_mbps")


def _of_streams(tables: Tables, setup: Setup, variant: Variant, streams: tuple[int, ...]) -> list[Mean]:
    return [variants.stream_throughput(tables, setup, variant.name, LARGE_KIB, stream) for stream in streams]


def _measure(setup: Setup, variant: Variant, what: str, value: Mean) -> Measure:
    return Measure(f"{setup.name}, {variant.name}, {LARGE_KIB} KiB, {what}", value, "Mbit/s")


def _judge_p8(tables: Tables) -> Judgement:
    measures, found = [], []
    for setup in SETUPS:
        for stream, rate in enumerate(_of_streams(tables, setup, ROUND_ROBIN, (0, 1))):
            found.append(near(rate, setup.capacity_mbps / 2))
            measures.append(_measure(setup, ROUND_ROBIN, f"stream {stream}", rate))
    wanted = ", ".join(f"{setup.capacity_mbps / 2:.2f}" for setup in SETUPS)
    return Judgement(everywhere(found), f"half of the capacity is {wanted} Mbit/s", tuple(measures))


def _judge_p9(tables: Tables) -> Judgement:
    measures, found = [], []
    for setup in SETUPS:
        first, second = _of_streams(tables, setup, FIXED, (0, 1))
        found += [near(second, RATE_A * PAYLOAD_SHARE), alike(_ahead(tables, setup))]
        measures += [_measure(setup, FIXED, "stream 0", first), _measure(setup, FIXED, "stream 1", second)]
    finding = f"path A carries {RATE_A * PAYLOAD_SHARE:.2f} Mbit/s of user data"
    return Judgement(everywhere(found), finding, tuple(measures))


def _ahead(tables: Tables, setup: Setup) -> Mean:
    """Return the share by which stream 1 carries more than stream 0 with the fixed mapping."""
    rows = variants.rows_of(tables.streams, setup, FIXED.name, LARGE_KIB)
    first, second = (
        by_seed(rows[rows["stream"] == stream], "throughput_mbps", f"stream {stream}") for stream in (0, 1)
    )
    return gain(second, first)


def _judge_p10(tables: Tables) -> Judgement:
    measures, found = [], []
    for setup in SETUPS:
        total = variants.throughput(tables, setup, INFORMED.name, LARGE_KIB)
        (second,) = _of_streams(tables, setup, INFORMED, (1,))
        found += [near(total, setup.capacity_mbps), near(second, setup.paths[1][0] * PAYLOAD_SHARE)]
        measures += [_measure(setup, INFORMED, "stream 1", second), _measure(setup, INFORMED, "total", total)]
    wanted = ", ".join(f"{setup.capacity_mbps:.2f}" for setup in SETUPS)
    return Judgement(everywhere(found), f"both paths carry {wanted} Mbit/s", tuple(measures))


_RULE = (
    f"{100 * TOLERANCE:.0f} % at σ = {LARGE_KIB} KiB, the largest that is drawn, with the whole interval, for both "
    "bandwidths; the text names no σ"
)


def _against_best(tables: Tables) -> list[Standing]:
    return variants.against_best(tables, SETUPS, VARIANTS)


FIGURE = Figure(
    name="pfldnet2010-6",
    title="Figure 6: throughput of each stream on paths of dissimilar bandwidth",
    source=delays.SOURCE,
    sweep=Sweep(delays.SCENARIO, variants.points(SETUPS, (*VARIANTS, variants.CMT))),
    drawings=(
        Drawing(
            "rates",
            "Throughput of user data of each stream over the buffer size σ. Path A has 10 Mbit/s, path B 25 or "
            "50; both 10 ms. Fixed: stream 0 on path A, stream 1 on path B; fed by queue: the application asks how "
            "much each stream has left to send, else it feeds the streams in turn.",
            _draw,
        ),
    ),
    listings=(
        Listing("default", standings.CAPTION, standings.listing(_against_best)),
        Listing("summary", "Throughput of each stream in Mbit/s, mean and 95 % half-width", _rates),
    ),
    claims=(
        Claim(
            "P8",
            "With round-robin and a large σ, each stream has half of what both paths carry.",
            "(ρA + ρB) / 2 x 0.968",
            _RULE,
            _judge_p8,
        ),
        Claim(
            "P9",
            "With fixed mapping and an application that feeds the streams in turn, stream 1 stays at stream 0's rate.",
            "~10 Mbit/s x 0.968",
            _RULE,
            _judge_p9,
        ),
        Claim(
            "P10",
            "With fixed mapping and an application that looks at each stream's queue, stream 1 uses path B.",
            "(ρA + ρB) x 0.968",
            _RULE,
            _judge_p10,
        ),
    ),
    standings=_against_best,
)
