"""Figures 7 and 8: ordered transfers, plain or with pooled resources, and the claims G12 to G14 about both."""

from functools import partial

from tresse.claims import TOLERANCE, Claim, Judgement, Measure
from tresse.evidence import Evidence, at_least, at_most, at_points, below, everywhere, gain, graded, higher, shortfall
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, paths, plots
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
)
from tresse.figures.globecom2010.mixes import Mix, runs
from tresse.figures.globecom2010.paths import DELAY, ERRORS, RATE
from tresse.metrics import mean
from tresse.tables import Tables

_SLOWEST = tuple(rate for rate in RATE.values if rate <= 1)
_ALONE_MBPS = paths.RATE_MBPS * paths.PAYLOAD_BYTES / paths.PACKET_BYTES
"""Throughput of path 1 alone; a lower one with a slow second path is a decay."""


def mix(controller: str) -> Mix:
    """Return the transfers of figure 7 (`rfc9260`) or 8 (`cmt_rp_v1`)."""
    return Mix(
        ordered=True,
        controller=controller,
        variants=ORDERED,
        least_runs={DELAY: paths.RUNS_OF_DIFFERENCES},
    )


def judge_g12(tables: Tables) -> Judgement:
    """Rescheduling with splitting keeps the throughput of path 1 alone at the slowest rates; without, it is less."""
    found = {variant: {rate: runs(tables, RATE, rate, variant) for rate in _SLOWEST} for variant in ORDERED[RATE]}
    means = {variant: {rate: mean(values) for rate, values in by_rate.items()} for variant, by_rate in found.items()}
    limit = (1 - TOLERANCE) * _ALONE_MBPS
    stated = [at_least(means[MOVED_SPLIT][rate], limit) for rate in _SLOWEST]
    stated += [below(means[variant][rate], limit) for variant in (PLAIN, PLAIN_SPLIT) for rate in _SLOWEST]
    gains = {
        rate: min((gain(found[MOVED_SPLIT][rate], found[v][rate]) for v in (PLAIN, PLAIN_SPLIT)), key=lambda x: x.value)
        for rate in _SLOWEST
    }
    measures = tuple(
        Measure(f"{variant.name}, {rate:g} Mbit/s", value, "Mbit/s", 1)
        for variant, by_rate in means.items()
        for rate, value in by_rate.items()
    )
    least = 100 * min(value.value for value in means[MOVED_SPLIT].values()) / _ALONE_MBPS
    finding = (
        f"at 1 Mbit/s and below, rescheduling with splitting carries at least {least:.0f} % of what path 1 does alone, "
        "and over the better without rescheduling "
        + ", ".join(f"{100 * g.value:+.0f} ± {100 * g.half_width:.0f} % at {rate:g}" for rate, g in gains.items())
    )
    effect = at_points(higher(share) for share in gains.values())
    return Judgement(graded(everywhere(stated), effect), finding, measures)


def judge_g13(tables: Tables) -> Judgement:
    """Drop reports keep throughput high at every error rate, and higher than without at the highest."""
    highest = ERRORS.values[-1]
    losses, gains, measures = [], [], []
    for reports, without in ((MOVED_REPORTS, MOVED), (MOVED_REPORTS_SPLIT, MOVED_SPLIT)):
        found = {rate: runs(tables, ERRORS, rate, reports) for rate in ERRORS.values}
        plain = runs(tables, ERRORS, highest, without)
        losses += [shortfall(found[rate], found[0]) for rate in ERRORS.values if rate]
        gains.append(gain(found[highest], plain))
        measures += [
            Measure(f"5e-6, {variant.name}", mean(values), "Mbit/s", 1)
            for variant, values in ((without, plain), (reports, found[highest]))
        ]
    most, least = max(losses, key=lambda x: x.value), min(gains, key=lambda x: x.value)
    finding = (
        f"with drop reports at least {100 * (1 - most.value):.0f} ± {100 * most.half_width:.0f} % of the error-free "
        f"throughput at every error rate; at 5e-6 {1 + least.value:.1f} times as much as without"
    )
    stated = at_points(at_most(loss, 1 - _HIGH_SHARE) for loss in losses)
    return Judgement(graded(stated, everywhere(higher(share) for share in gains)), finding, tuple(measures))


_HIGH_SHARE = 0.8
"""Share of the error-free throughput that counts as high."""


def judge_g14(tables: Tables) -> Judgement:
    """Smart fast retransmission raises the throughput where the paths' delays differ."""
    gains = {
        (delay, split): gain(runs(tables, DELAY, delay, smart), runs(tables, DELAY, delay, hasty))
        for delay in DELAY.values
        if delay != paths.DELAY_MS
        for split, smart, hasty in (("no split", MOVED, MOVED_HASTY), ("split", MOVED_SPLIT, MOVED_HASTY_SPLIT))
    }
    found = [higher(share) for share in gains.values()]
    finding = (
        f"higher with smart fast retransmission at {found.count(Evidence.SHOWN)} of {len(found)} points, lower at "
        f"{found.count(Evidence.AGAINST)}: "
        + ", ".join(
            f"{100 * share.value:+.1f} ± {100 * share.half_width:.1f} % at {delay:g} ms, {split}"
            for (delay, split), share in gains.items()
        )
    )
    return Judgement(at_points(found), finding)


def figure(number: int, controller: str, name: str) -> Figure:
    """Return one of the two figures."""
    own = mix(controller)
    return Figure(
        name=f"globecom2010-{number}",
        title=f"Figure {number}: ordered {name} over unlike paths",
        source=paths.SOURCE,
        sweep=own.sweep(),
        drawings=plots.drawings(own, {}),
        listings=default.listings(own),
        claims=(
            Claim(
                "G12",
                f"Ordered {name}: chunk rescheduling with splitting avoids the decay when path 2 has 1 Mbit/s or less.",
                "no decay with, decay without",
                f"at every such rate, with the whole interval, within {100 * TOLERANCE:.0f} % of what path 1 carries "
                "alone, or more; without rescheduling less than that; weaker: more than without only, by the paired "
                "difference",
                judge_g12,
                name,
            ),
            Claim(
                "G13",
                f"Ordered {name}: packet-drop reports keep throughput high over the bit error rate.",
                "high",
                f"with splitting as without, by paired differences: at least {100 * _HIGH_SHARE:.0f} % of the "
                "error-free throughput at every error rate, and more than without at 5e-6; weaker: only the latter",
                judge_g13,
                name,
            ),
            Claim(
                "G14",
                f"Ordered {name}: smart fast retransmission improves throughput over the delay of path 2.",
                "higher with",
                f"at every delay but path 1's own {paths.DELAY_MS:g} ms, with splitting as without, by paired "
                "differences",
                judge_g14,
                name,
            ),
        ),
        standings=partial(default.against_best, mix=own),
    )


FIGURE_7 = figure(7, "rfc9260", "CMT")
FIGURE_8 = figure(8, "cmt_rp_v1", "CMT/RP")
