"""Every map at every buffer size: throughput and delay compared with the bound, and the claims B1 to B3 and B6.

Round-robin and fixed run with the paper's settings. Over three paths the application checks the queue of each stream,
as the fixed mapping requires. The adaptive map runs with the settings of the preset `adaptive` and gets no information
about the paths.
"""

from collections.abc import Callable, Sequence

import matplotlib.figure
import pandas as pd

from tresse.claims import TOLERANCE, Claim, Judgement, Measure
from tresse.evidence import Evidence, Runs, at_least, at_most, by_seed, everywhere, gain, near
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010 import delays, figure6, figure7, variants
from tresse.figures.pfldnet2010.variants import Setup, Variant
from tresse.metrics import summarise
from tresse.plots.theme import BLUE, GREEN, ORANGE, new_figure, style
from tresse.sweep import Sweep
from tresse.tables import Tables

SOURCE = "The project's own (docs/adaptive.md), in the setups of " + delays.SOURCE
BOUND_SHARE = 0.97
Judge = Callable[[Tables], Judgement]

PLACED = {
    "transport.stream_map": "adaptive",
    "transport.buffer_allocation": "paths",
    "transport.path_scheduler": "stms",
    "transport.sack_path": "fastest",
    "transport.sack_frequency": "1",
    "transport.nr_sack": "everything",
    "transport.experiment.rtt_over_any_path": "true",
}
ROUND_ROBIN = Variant("round-robin", ORANGE, "--", {"transport.stream_map": "any"})
FIXED = Variant("fixed", BLUE, "--", {"transport.stream_map": "fixed:0,1"})
FIXED_SEVEN = Variant("fixed", BLUE, "--", figure7.TABLE)
ADAPTIVE = Variant("adaptive", GREEN, "-", PLACED)
_NAMES = ("adaptive", "round-robin", "fixed")

_LARGE = tuple(sorted({96, *figure6.SIGMAS_KIB}))
"""Buffer sizes of figure 6, and one between."""


def _two(name: str, rate_b: int, delay_b: int, sigmas: tuple[int, ...]) -> Setup:
    overrides = {"path.1.rate": f"{rate_b}Mbit/s", "path.1.delay": f"{delay_b}ms"}
    return Setup(name, ((10.0, 10.0), (float(rate_b), float(delay_b))), overrides, sigmas)


DELAYS = tuple(_two(f"10/{delay} ms", 10, delay, delays.SIGMAS_KIB) for delay in (10, 50, 75))
RATES = tuple(_two(f"10/{rate} Mbit/s", rate, 10, _LARGE) for rate in (25, 50))
THREE = (figure7.SETUP,)


def _bound_judge(setups: Sequence[Setup]) -> Judge:
    def judge(tables: Tables) -> Judgement:
        shares, reached = [], []
        for setup in setups:
            for sigma in setup.sigmas_kib:
                found = variants.throughput(tables, setup, ADAPTIVE.name, sigma)
                shares.append((found.value / setup.bound_mbps(sigma), setup, sigma, found))
                reached.append(at_least(found, BOUND_SHARE * setup.bound_mbps(sigma)))
        least, setup, sigma, found = min(shares, key=lambda entry: entry[0])
        short = sum(share < BOUND_SHARE for share, *_ in shares)
        finding = (
            f"below {100 * BOUND_SHARE:.0f} % at {short} of {len(shares)} points; "
            f"least {100 * least:.1f} %, at {setup.name}, {sigma} KiB"
        )
        measure = Measure(f"{setup.name}, {sigma} KiB, bound {setup.bound_mbps(sigma):.2f}", found, "Mbit/s")
        return Judgement(everywhere(reached), finding, (measure,))

    return judge


def _better_judge(setups: Sequence[Setup]) -> Judge:
    def judge(tables: Tables) -> Judgement:
        waits = variants.with_delays(tables)
        rates, late = [], []
        for setup in setups:
            for sigma in setup.sigmas_kib:
                where = f"{setup.name}, {sigma} KiB"
                rate = [_runs(tables.runs, setup, name, sigma, "throughput_mbps") for name in _NAMES]
                wait = [_runs(waits, setup, name, sigma, "delay_ms") for name in _NAMES]
                rates.append((gain(rate[0], max(rate[1:], key=_mean)), where))
                late.append((gain(wait[0], min(wait[1:], key=_mean)), where))
        less = [at_least(share, -TOLERANCE) for share, _ in rates]
        more = [at_most(share, TOLERANCE) for share, _ in late]
        slowest, latest = min(rates, key=lambda x: x[0].value), max(late, key=lambda x: x[0].value)
        finding = (
            f"less throughput at {less.count(Evidence.ABSENT)} and more delay at {more.count(Evidence.ABSENT)} of "
            f"{len(rates)} points; at worst {100 + 100 * slowest[0].value:.0f} % of the better throughput "
            f"({slowest[1]}) and {100 + 100 * latest[0].value:.0f} % of the better delay ({latest[1]})"
        )
        return Judgement(everywhere([*less, *more]), finding)

    return judge


def _runs(table: pd.DataFrame, setup: Setup, variant: str, sigma_kib: int, column: str) -> Runs:
    return by_seed(variants.rows_of(table, setup, variant, sigma_kib), column, f"{variant}, {sigma_kib} KiB")


def _mean(values: Runs) -> float:
    return float(values.mean())


def _judge_b2(tables: Tables) -> Judgement:
    measures, found = [], []
    for setup in RATES:
        rate = variants.throughput(tables, setup, ADAPTIVE.name, setup.sigmas_kib[-1])
        found.append(near(rate, setup.capacity_mbps))
        measures.append(Measure(f"{setup.name}, {setup.sigmas_kib[-1]} KiB", rate, "Mbit/s"))
    wanted = ", ".join(f"{setup.capacity_mbps:.2f}" for setup in RATES)
    return Judgement(everywhere(found), f"the paths carry {wanted} Mbit/s", tuple(measures))


def _judge_b3(tables: Tables) -> Judgement:
    found = variants.throughput(tables, figure7.SETUP, ADAPTIVE.name, 64)
    return Judgement(everywhere([near(found, 20)]), f"{found.value:.2f} Mbit/s", (Measure("64 KiB", found, "Mbit/s"),))


_CAPTION = (
    "Throughput of user data and mean delay of all messages over the buffer size σ. Dotted: what no schedule can "
    "exceed when data is acknowledged over its own path; upright: where equation 1 is satisfied."
)


def _drawing(setups: Sequence[Setup], curves: Sequence[Variant]) -> Drawing:
    def draw(tables: Tables) -> matplotlib.figure.Figure:
        rows = len(setups)
        figure, axes = new_figure(9.4, 3.4 * rows, rows=rows, columns=2, share_y="none")
        waits = variants.with_delays(tables)
        with style():
            for (left, right), setup in zip(axes, setups, strict=True):
                variants.plot(left, tables.runs, setup, curves, "throughput_mbps")
                variants.plot_bound(left, setup)
                variants.plot(right, waits, setup, curves, "delay_ms")
                left.set(title=setup.name, xlabel=variants.SIGMA_LABEL, ylabel="user data [Mbit/s]")
                right.set(title=setup.name, xlabel=variants.SIGMA_LABEL, ylabel="mean message delay [ms]")
                left.set_ylim(0, 1.08 * setup.capacity_mbps)
                right.set_ylim(bottom=0)
            axes[0][0].legend(loc="lower right", fontsize=7.5)
        return figure

    return Drawing("comparison", _CAPTION, draw)


def _throughputs(tables: Tables) -> pd.DataFrame:
    return summarise(tables.runs, ["setup", "variant", "sigma_kib"], "throughput_mbps")


def _delays(tables: Tables) -> pd.DataFrame:
    return summarise(variants.with_delays(tables), ["setup", "variant", "sigma_kib"], "delay_ms")


_LISTINGS = (
    Listing("summary", "Throughput in Mbit/s, mean and 95 % half-width", _throughputs),
    Listing("delays", "Mean message delay in ms, mean over runs and 95 % half-width", _delays),
)


def _common(where: str, setups: Sequence[Setup]) -> tuple[Claim, Claim]:
    better = Claim(
        "B1",
        "The adaptive map, told nothing of the paths, is never worse than the better of round-robin and fixed, neither "
        "in throughput nor in mean delay.",
        "not worse",
        f"{100 * TOLERANCE:.0f} % at every σ, by the interval of the paired difference to the better one",
        _better_judge(setups),
        where,
    )
    close = Claim(
        "B6",
        "The adaptive map, with buffer shares that follow the paths, comes close to the bound for any schedule, in the "
        "setups of figures 4 to 7 of PFLDNeT 2010. The G figures are no part of this row: they draw the bound beside "
        "cmt, which has no adaptive map.",
        f"{100 * BOUND_SHARE:.0f} % of the bound",
        "at every σ",
        _bound_judge(setups),
        where,
    )
    return better, close


_B2 = Claim(
    "B2",
    "The adaptive map needs no help from an application that feeds the streams in turn.",
    "(ρA + ρB) x 0.968",
    f"{100 * TOLERANCE:.0f} % at the largest σ with the whole interval, for both bandwidths",
    _judge_b2,
)
_B3 = Claim(
    "B3",
    "In the setup of figure 7 the adaptive map reaches about 20 Mbit/s with σ = 64 KiB.",
    "~20 Mbit/s",
    f"{100 * TOLERANCE:.0f} % with the whole interval",
    _judge_b3,
)


def _figure(
    name: str, title: str, setups: Sequence[Setup], curves: Sequence[Variant], claims: tuple[Claim, ...]
) -> Figure:
    scenario = figure7.SCENARIO if setups is THREE else delays.SCENARIO
    sweep = Sweep(scenario, variants.points(setups, curves))
    return Figure(name, title, SOURCE, sweep, (_drawing(setups, curves),), _LISTINGS, claims)


_TWO = (ADAPTIVE, FIXED, ROUND_ROBIN)
_SEVEN = (ADAPTIVE, FIXED_SEVEN, ROUND_ROBIN)

FIGURES = (
    _figure("adaptive-1", "The adaptive map on paths of dissimilar delay", DELAYS, _TWO, _common("delay", DELAYS)),
    _figure(
        "adaptive-2",
        "The adaptive map on paths of dissimilar bandwidth",
        RATES,
        _TWO,
        (*_common("bandwidth", RATES), _B2),
    ),
    _figure(
        "adaptive-3",
        "The adaptive map with seven streams over three paths",
        THREE,
        _SEVEN,
        (*_common("three paths", THREE), _B3),
    ),
)
