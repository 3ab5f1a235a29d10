"""Figures 7 and 8: ordered transfers, plain or with pooled resources, and the claims G12 to G14 about both."""

from functools import partial

from tresse.claims import TOLERANCE, Claim, Judgement, Measure, Verdict
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, hidden, paths, plots, settings
from tresse.figures.globecom2010.mechanisms import (
    MOVED,
    MOVED_HASTY,
    MOVED_HASTY_SPLIT,
    MOVED_REPORTS,
    MOVED_REPORTS_SPLIT,
    MOVED_SPLIT,
    ORDERED,
    PLAIN,
    PLAIN_SPLIT,
    Variant,
)
from tresse.figures.globecom2010.mixes import Mix, curve, throughput
from tresse.figures.globecom2010.paths import DELAY, ERRORS, RATE
from tresse.tables import Tables

_SLOWEST = tuple(rate for rate in RATE.values if rate <= 1)
_ALONE_MBPS = paths.RATE_MBPS * paths.PAYLOAD_BYTES / paths.PACKET_BYTES
"""What path 1 carries by itself: with a slow path beside it, less than that is a decay."""


def mix(controller: str) -> Mix:
    """The transfers of figure 7 (`rfc9260`) or 8 (`cmt_rp_v1`)."""
    return Mix(ordered=True, controller=controller, variants=ORDERED, hidden=hidden.ORDERED, questions=settings.ORDERED)


def judge_g12(tables: Tables) -> Judgement:
    """Rescheduling with splitting decays least where path 2 is slowest."""
    found = {variant: [throughput(tables, RATE, rate, variant) for rate in _SLOWEST] for variant in ORDERED[RATE]}
    lowest = {variant: min(mean.value for mean in means) for variant, means in found.items()}
    kept = lowest[MOVED_SPLIT] >= (1 - TOLERANCE) * _ALONE_MBPS
    others = max(lowest[PLAIN], lowest[PLAIN_SPLIT])
    decays = others < (1 - TOLERANCE) * _ALONE_MBPS
    measures = tuple(
        Measure(f"{variant.name}, {rate:g} Mbit/s", mean, "Mbit/s", 1)
        for variant, means in found.items()
        for rate, mean in zip(_SLOWEST, means, strict=True)
    )
    ours, theirs = (100 * mbps / _ALONE_MBPS for mbps in (lowest[MOVED_SPLIT], others))
    finding = (
        f"at 1 Mbit/s and below, rescheduling with splitting carries at least {ours:.0f} % of what path 1 does alone; "
        f"without rescheduling it is down to {theirs:.0f} % at best"
    )
    return Judgement(Verdict.REPRODUCED if kept and decays else Verdict.MISSED, finding, measures)


def judge_g13(tables: Tables) -> Judgement:
    """Drop reports keep throughput high at every error rate."""
    with_reports = {variant: curve(tables, ERRORS, variant) for variant in (MOVED_REPORTS, MOVED_REPORTS_SPLIT)}
    shares = [found[rate].value / found[0].value for found in with_reports.values() for rate in ERRORS.values]
    worst = ERRORS.values[-1]
    without = throughput(tables, ERRORS, worst, MOVED_SPLIT)
    reported = with_reports[MOVED_REPORTS_SPLIT][worst]
    finding = (
        f"with drop reports at least {100 * min(shares):.0f} % of the error-free throughput at every error rate; at "
        f"5e-6 {reported.value / without.value:.1f} times as much as without"
    )
    good = min(shares) >= _HIGH_SHARE and reported.value > without.value
    measures = (Measure("5e-6, without reports", without, "Mbit/s", 1), Measure("with", reported, "Mbit/s", 1))
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, measures)


_HIGH_SHARE = 0.8
"""Of the error-free throughput: what counts as high."""


def judge_g14(tables: Tables) -> Judgement:
    """Smart fast retransmission helps at some delay and harms at none."""
    gains = {
        (delay, split): _at(tables, delay, smart) / _at(tables, delay, hasty) - 1
        for delay in DELAY.values
        for split, smart, hasty in (("no split", MOVED, MOVED_HASTY), ("split", MOVED_SPLIT, MOVED_HASTY_SPLIT))
    }
    (delay, split), most = max(gains.items(), key=lambda item: item[1])
    finding = (
        f"with smart fast retransmission {100 * min(gains.values()):+.1f} to {100 * most:+.1f} % (at {delay:g} ms, "
        f"{split})"
    )
    good = most > TOLERANCE and min(gains.values()) > -TOLERANCE
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding)


def _at(tables: Tables, delay: float, variant: Variant) -> float:
    return throughput(tables, DELAY, delay, variant).value


def figure(number: int, controller: str, name: str) -> Figure:
    """One of the two figures."""
    own = mix(controller)
    suffix = "" if number == 7 else " (RP)"
    return Figure(
        name=f"globecom2010-{number}",
        title=f"Figure {number}: ordered {name} over unlike paths",
        source=paths.SOURCE,
        sweep=own.sweep(),
        drawings=plots.drawings(own, {}),
        listings=(
            *default.listings(own),
            settings.listing(own.questions, {"G12": judge_g12, "G13": judge_g13}),
            *hidden.listings(own),
        ),
        claims=(
            Claim(
                f"G12{suffix}",
                f"Ordered {name}: chunk rescheduling with splitting avoids the decay when path 2 has 1 Mbit/s or less.",
                "no decay with, decay without",
                f"at every such rate within {100 * TOLERANCE:.0f} % of what path 1 carries alone, or more; without "
                "rescheduling less than that",
                judge_g12,
            ),
            Claim(
                f"G13{suffix}",
                f"Ordered {name}: packet-drop reports keep throughput high over the bit error rate.",
                "high",
                f"at least {100 * _HIGH_SHARE:.0f} % of the error-free throughput, and more than without at 5e-6",
                judge_g13,
            ),
            Claim(
                f"G14{suffix}",
                f"Ordered {name}: smart fast retransmission improves throughput over the delay of path 2.",
                "higher with",
                f"more than {100 * TOLERANCE:.0f} % higher at one delay at least, and nowhere more than that lower",
                judge_g14,
            ),
        ),
        standings=partial(default.against_best, mix=own),
    )


FIGURE_7 = figure(7, "rfc9260", "CMT")
FIGURE_8 = figure(8, "cmt_rp_v1", "CMT/RP")
