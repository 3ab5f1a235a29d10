"""Figure 7: seven streams over two equal paths and a slow one, and the claims P11 to P14."""

import matplotlib.figure
import pandas as pd

from tresse import standings
from tresse.claims import TOLERANCE, Claim, Judgement, Measure, Verdict
from tresse.evidence import Evidence, above, alike, at_least, at_most, at_points, below, by_seed, everywhere, gain, near
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010 import delays, variants
from tresse.figures.pfldnet2010.variants import Setup, Variant
from tresse.metrics import Mean, summarise
from tresse.plots.theme import BLUE, ORANGE, new_figure, style
from tresse.standings import Standing
from tresse.sweep import Sweep
from tresse.tables import Tables

SCENARIO = "pfldnet2010/three-paths.toml"
SIGMAS_KIB = (32, 48, 64, 80, 96, 128, 160, 192, 224, 256)
SETUP = Setup("10/10/1 Mbit/s", ((10.0, 10.0), (10.0, 10.0), (1.0, 50.0)), {}, SIGMAS_KIB)
OFF = {"transport.nr_sack": "off"}
ANY = {"transport.stream_map": "any"}
TABLE = {"transport.stream_map": "fixed:2,0,1,0,1,0,1"}
"""Streams 1, 3, 5 use path A, streams 2, 4, 6 path B, stream 0 path C."""

ROUND_ROBIN = Variant("round-robin, NR-SACK", ORANGE, "-", ANY)
ROUND_ROBIN_OFF = Variant("round-robin, no NR-SACK", ORANGE, "--", {**ANY, **OFF})
FIXED = Variant("fixed, NR-SACK", BLUE, "-", TABLE)
FIXED_OFF = Variant("fixed, no NR-SACK", BLUE, "--", {**TABLE, **OFF})
VARIANTS = (FIXED, FIXED_OFF, ROUND_ROBIN, ROUND_ROBIN_OFF)


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, [axes] = new_figure(9.4, 4.4, columns=2, share_y="none")
    with style():
        variants.plot(axes[0], tables.runs, SETUP, VARIANTS, "throughput_mbps")
        variants.plot_bound(axes[0], SETUP)
        variants.plot(axes[1], variants.with_delays(tables), SETUP, VARIANTS, "delay_ms")
        axes[0].set(xlabel=variants.SIGMA_LABEL, ylabel="throughput of user data [Mbit/s]", ylim=(0, 22))
        axes[1].set(xlabel=variants.SIGMA_LABEL, ylabel="mean message delay [ms]", ylim=(0, None))
        axes[0].legend(loc="center right", fontsize=7.5)
    return figure


def _throughputs(tables: Tables) -> pd.DataFrame:
    return summarise(tables.runs, ["variant", "sigma_kib"], "throughput_mbps")


def _delays(tables: Tables) -> pd.DataFrame:
    return summarise(variants.with_delays(tables), ["variant", "sigma_kib"], "delay_ms")


def _both(tables: Tables, variant: Variant, sigma_kib: int) -> tuple[Measure, Measure]:
    where = f"{variant.name}, {sigma_kib} KiB"
    return (
        Measure(where, variants.throughput(tables, SETUP, variant.name, sigma_kib), "Mbit/s"),
        Measure(f"{where}, delay", variants.delay(tables, SETUP, variant.name, sigma_kib), "ms", 0),
    )


def _judge_p11(tables: Tables) -> Judgement:
    # The text gives these numbers for curve 4 and names curve 3 as the one with NR-SACK.
    rate, waits = _both(tables, ROUND_ROBIN_OFF, 256)
    verdict = everywhere([below(rate.value, 3), above(waits.value, 600)])
    acked_rate, acked_waits = _both(tables, ROUND_ROBIN, 256)
    finding = (
        f"{rate.value.value:.2f} Mbit/s at {waits.value.value:.0f} ms; "
        f"with NR-SACK {acked_rate.value.value:.2f} Mbit/s at {acked_waits.value.value:.0f} ms"
    )
    measures = (rate, waits, acked_rate, acked_waits)
    return Judgement(verdict, finding, measures)


def _judge_p12(tables: Tables) -> Judgement:
    rates = {sigma: variants.throughput(tables, SETUP, FIXED_OFF.name, sigma) for sigma in SIGMAS_KIB}
    highest = max(rates, key=lambda sigma: rates[sigma].value)
    # The text names no buffer size: take the smallest one with the highest throughput, within the tolerance.
    enough = next(s for s in SIGMAS_KIB if rates[s].value >= (1 - TOLERANCE) * rates[highest].value)
    (most, _), (rate, waits) = _both(tables, FIXED_OFF, highest), _both(tables, FIXED_OFF, enough)
    found = [
        at_least(most.value, _ABOVE_5[0] * (1 - TOLERANCE)),
        at_most(most.value, _ABOVE_5[1] * (1 + TOLERANCE)),
        near(waits.value, 150),
    ]
    finding = (
        f"at most {most.value.value:.2f} Mbit/s; {rate.value.value:.2f} of them from {enough} KiB on, at "
        f"{waits.value.value:.0f} ms"
    )
    return Judgement(everywhere(found), finding, (most, rate, waits))


_ABOVE_5 = (5.0, 5.5)
"""Largest throughput that counts as a little above 5 Mbit/s."""


def _judge_p13(tables: Tables) -> Judgement:
    rate, waits = _both(tables, FIXED, 128)
    full = near(rate.value, 20)
    verdict = everywhere([full, near(waits.value, 60)])
    if full is Evidence.SHOWN and below(waits.value, 60 * (1 - TOLERANCE)) is Evidence.SHOWN:
        verdict = Verdict.BETTER
    return Judgement(verdict, f"{rate.value.value:.2f} Mbit/s at {waits.value.value:.0f} ms", (rate, waits))


def _judge_p14(tables: Tables) -> Judgement:
    gaps = {sigma: _apart(tables, sigma) for sigma in SIGMAS_KIB}
    found = {sigma: alike(gap, _SMALL) for sigma, gap in gaps.items()}
    most = max(gaps, key=lambda sigma: gaps[sigma].value)
    large = sum(evidence is Evidence.ABSENT for evidence in found.values())
    finding = (
        f"{100 * _SMALL:.0f} % or more of the smaller at {large} of {len(SIGMAS_KIB)} σ; at most "
        f"{100 * gaps[most].value:.1f} %, at {most} KiB"
    )
    measures = tuple(_both(tables, variant, most)[0] for variant in (ROUND_ROBIN, ROUND_ROBIN_OFF))
    return Judgement(at_points(found.values()), finding, measures)


def _apart(tables: Tables, sigma_kib: int) -> Mean:
    """Return the share by which the better of both variants carries more than the other."""
    rates = (
        by_seed(variants.rows_of(tables.runs, SETUP, variant.name, sigma_kib), "throughput_mbps", variant.name)
        for variant in (ROUND_ROBIN, ROUND_ROBIN_OFF)
    )
    smaller, larger = sorted(rates, key=lambda values: float(values.mean()))
    return gain(larger, smaller)


_SMALL = 0.10
"""A difference below this share of the smaller throughput is small."""


_TOLERANCE = f"{100 * TOLERANCE:.0f} %"


def _against_best(tables: Tables) -> list[Standing]:
    return variants.against_best(tables, (SETUP,), VARIANTS)


FIGURE = Figure(
    name="pfldnet2010-7",
    title="Figure 7: seven streams over three paths",
    source=delays.SOURCE,
    sweep=Sweep(SCENARIO, variants.points((SETUP,), (*VARIANTS, variants.CMT))),
    drawings=(
        Drawing(
            "seven-streams",
            "Throughput of user data and mean delay of all messages over the buffer size σ: paths A and B with 10 "
            "Mbit/s and 10 ms, path C with 1 Mbit/s and 50 ms. Fixed: streams 1, 3, 5 on A, 2, 4, 6 on B, 0 on C. "
            "The application feeds each stream by its queue; fed in turn, no fixed mapping could carry more than "
            "seven times path C.",
            _draw,
        ),
    ),
    listings=(
        Listing("default", standings.CAPTION, standings.listing(_against_best)),
        Listing("summary", "Throughput in Mbit/s, mean and 95 % half-width", _throughputs),
        Listing("delays", "Mean message delay in ms, mean over runs and 95 % half-width", _delays),
    ),
    claims=(
        Claim(
            "P11",
            "Round-robin without NR-SACK stays below 3 Mbit/s with σ = 256 KiB, and messages take more than 600 ms.",
            "< 3 Mbit/s, > 600 ms",
            "both with the whole interval; limits have no tolerance",
            _judge_p11,
        ),
        Claim(
            "P12",
            "Fixed mapping without NR-SACK reaches a little above 5 Mbit/s at about 150 ms.",
            "a little above 5 Mbit/s, ~150 ms",
            f"both within {_TOLERANCE} with the whole interval: at most 5 to 5.5 Mbit/s; 150 ms with the smallest σ "
            f"that gives {100 * (1 - TOLERANCE):.0f} % of it",
            _judge_p12,
        ),
        Claim(
            "P13",
            "Fixed mapping with NR-SACK reaches about 20 Mbit/s with σ = 128 KiB, at about 60 ms.",
            "~20 Mbit/s, ~60 ms",
            f"both within {_TOLERANCE} with the whole interval; better: the throughput in less time",
            _judge_p13,
        ),
        Claim(
            "P14",
            "With round-robin, NR-SACK makes only a small difference.",
            "small",
            f"less than {100 * _SMALL:.0f} % of the smaller one at every σ, by the interval of the paired difference",
            _judge_p14,
        ),
    ),
    standings=_against_best,
)
