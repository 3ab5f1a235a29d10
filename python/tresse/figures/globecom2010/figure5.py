"""Figure 5: unordered transfers over unlike paths, and the claims G4 to G9, with a part of G10."""

from functools import partial

from tresse.claims import TOLERANCE, Claim, Judgement, Measure, worst
from tresse.evidence import alike, at_least, at_points, everywhere, gain, graded, higher, near, shortfall
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, equal, paths, plots
from tresse.figures.globecom2010.mechanisms import (
    HASTY,
    HASTY_SPLIT,
    NR,
    NR_SPLIT,
    REPORTS,
    REPORTS_SPLIT,
    SACK,
    SACK_SPLIT,
    UNORDERED,
)
from tresse.figures.globecom2010.mixes import Mix, curve, runs
from tresse.figures.globecom2010.paths import DELAY, ERRORS, RATE
from tresse.metrics import Mean, mean
from tresse.tables import Tables

MIX = Mix(ordered=False, controller="rfc9260", variants=UNORDERED)

_PAYLOAD_SHARE = paths.PAYLOAD_BYTES / paths.PACKET_BYTES
_ALMOST_NOTHING = 0.10
"""Largest share of the throughput of both mechanisms that counts as almost zero."""
_CLEARLY = 1.25
"""Factor by which a throughput is clearly higher."""


def _measures(found: dict[str, Mean]) -> tuple[Measure, ...]:
    return tuple(Measure(what, value, "Mbit/s", 1) for what, value in found.items())


def _judge_g4(tables: Tables) -> Judgement:
    neither, both = (runs(tables, RATE, 1, variant) for variant in (SACK, NR_SPLIT))
    lost = shortfall(neither, both)
    finding = f"at 1 Mbit/s {100 * (1 - lost.value):.1f} % of what NR-SACK and splitting carry"
    measures = _measures({"neither": mean(neither), "both": mean(both)})
    return Judgement(everywhere([higher(lost, 1 - _ALMOST_NOTHING)]), finding, measures)


def _judge_g5(tables: Tables) -> Judgement:
    unlike = [rate for rate in RATE.values if rate < paths.RATE_MBPS]
    neither, alone, split, both = (
        {rate: runs(tables, RATE, rate, variant) for rate in unlike} for variant in (SACK, NR, SACK_SPLIT, NR_SPLIT)
    )
    improves = at_points(higher(gain(alone[rate], neither[rate])) for rate in unlike)
    worsens = at_points(higher(shortfall(split[rate], neither[rate])) for rate in unlike)
    gaps = {rate: shortfall(alone[rate], both[rate]) for rate in unlike}
    somewhat = at_points(higher(gap, TOLERANCE) for gap in gaps.values())
    least = min(gaps, key=lambda rate: gaps[rate].value)
    finding = (
        f"below 100 Mbit/s, NR-SACK alone over neither: {improves}; splitting alone below neither: {worsens}; NR-SACK "
        f"alone below both: {somewhat}, least by {100 * gaps[least].value:.1f} % at {least:g} Mbit/s"
    )
    measures = _measures(
        {
            f"{name}, {rate:g} Mbit/s": mean(found[rate])
            for rate in (1, 10)
            for name, found in (("neither", neither), ("NR-SACK", alone), ("splitting", split), ("both", both))
        }
    )
    return Judgement(graded(somewhat, worst([improves, worsens])), finding, measures)


def _judge_g6(tables: Tables) -> Judgement:
    both = curve(tables, RATE, NR_SPLIT)
    expected = {rate: (paths.RATE_MBPS + rate) * _PAYLOAD_SHARE for rate in RATE.values}
    found = {rate: near(both[rate], expected[rate]) for rate in RATE.values}
    farthest = max(RATE.values, key=lambda rate: abs(both[rate].value / expected[rate] - 1))
    off = both[farthest].value / expected[farthest] - 1
    finding = f"farthest from (100 + ρ) × 0.968 at ρ = {farthest:g} Mbit/s: {100 * off:+.1f} %"
    verdict = worst([everywhere(found[rate] for rate in _NAMED_MBPS), at_points(found.values())])
    return Judgement(verdict, finding, _measures({f"{rate:g} Mbit/s": both[rate] for rate in _NAMED_MBPS}))


_NAMED_MBPS = (10, 100)
"""Rates for which the paper's text states a throughput."""


def _judge_g7(tables: Tables) -> Judgement:
    worst_rate, clean = ERRORS.values[-1], runs(tables, ERRORS, 0, NR_SPLIT)
    sack, sack_split, nr, nr_split = (
        runs(tables, ERRORS, worst_rate, variant) for variant in (SACK, SACK_SPLIT, NR, NR_SPLIT)
    )
    lost = [shortfall(without, clean) for without in (sack, sack_split)]
    lifts = [gain(nr, sack), gain(nr_split, sack_split)]
    same = gain(nr_split, nr)
    finding = (
        f"at 5e-6 without NR-SACK {100 * (1 - min(share.value for share in lost)):.1f} % of the error-free throughput; "
        f"NR-SACK lifts it {1 + min(share.value for share in lifts):.1f}-fold; splitting changes that by "
        f"{100 * same.value:+.1f} %"
    )
    effect = everywhere([*(higher(x, 1 - _ALMOST_NOTHING) for x in lost), *(higher(x, _CLEARLY - 1) for x in lifts)])
    measures = _measures({"SACK": mean(sack), "NR-SACK": mean(nr), "NR-SACK, split": mean(nr_split)})
    return Judgement(graded(everywhere([alike(same)]), effect), finding, measures)


def _judge_g8(tables: Tables) -> Judgement:
    highest = ERRORS.values[-1]
    bound = ERRORS.bound_mbps(highest, MIX.buffers(ERRORS))
    found = {variant: runs(tables, ERRORS, highest, variant) for variant in (NR, NR_SPLIT, REPORTS, REPORTS_SPLIT)}
    gains = [gain(found[REPORTS], found[NR]), gain(found[REPORTS_SPLIT], found[NR_SPLIT])]
    means = {variant: mean(values) for variant, values in found.items()}
    lowest = min(means[REPORTS].value, means[REPORTS_SPLIT].value)
    finding = (
        f"at 5e-6 drop reports carry {1 + min(share.value for share in gains):.2f} times as much as NR-SACK alone, and "
        f"{100 * lowest / bound:.0f} % of what intact packets can carry"
    )
    stated = everywhere(at_least(means[variant], (1 - TOLERANCE) * bound) for variant in (REPORTS, REPORTS_SPLIT))
    verdict = graded(stated, everywhere(higher(share) for share in gains))
    return Judgement(verdict, finding, _measures({variant.name: value for variant, value in means.items()}))


_SAME_SPLITTING = {"without splitting": (SACK, HASTY, NR), "with it": (SACK_SPLIT, HASTY_SPLIT, NR_SPLIT)}


def _judge_g9(tables: Tables) -> Judgement:
    delays = DELAY.values
    longest, parts = delays[-1], []
    found: dict[str, Mean] = {}
    best, less = [], []
    for splitting, variants in _SAME_SPLITTING.items():
        curves = [{delay: runs(tables, DELAY, delay, variant) for delay in delays} for variant in variants]
        _, hasty, smart = curves
        ahead = {d: min((gain(smart[d], other[d]) for other in curves[:2]), key=lambda x: x.value) for d in delays}
        best.append(at_points(at_least(share, -TOLERANCE) for share in ahead.values()))
        without = shortfall(hasty[longest], smart[longest])
        less.append(higher(without, TOLERANCE))
        behind = min(ahead, key=lambda delay: ahead[delay].value)
        parts.append(
            f"{splitting} NR-SACK with smart fast retransmission is {100 * ahead[behind].value:+.0f} % beside the "
            f"other curves at worst ({behind:g} ms), and {longest:g} ms carry {100 * without.value:.0f} ± "
            f"{100 * without.half_width:.0f} % less without"
        )
        found |= {variant.name: mean(curve[longest]) for variant, curve in zip(variants, curves, strict=True)}
    return Judgement(graded(worst(best), everywhere(less)), "; ".join(parts), _measures(found))


FIGURE = Figure(
    name="globecom2010-5",
    title="Figure 5: unordered CMT over unlike paths",
    source=paths.SOURCE,
    sweep=MIX.sweep(),
    drawings=plots.drawings(MIX, {RATE: ((10, 106), (100, 192))}),
    listings=default.listings(MIX),
    claims=(
        Claim(
            "G4",
            "With neither buffer splitting nor NR-SACK, throughput falls to almost zero at 1 Mbit/s on path 2.",
            "almost zero",
            f"at most {100 * _ALMOST_NOTHING:.0f} % of what both mechanisms give, by the paired difference",
            _judge_g4,
        ),
        Claim(
            "G5",
            "NR-SACK alone improves that only somewhat; splitting alone is worse than neither.",
            "split alone < neither < NR-SACK alone",
            "at every rate below 100 Mbit/s, by paired differences; only somewhat: both carry more than NR-SACK alone, "
            f"by {100 * TOLERANCE:.0f} % or more; weaker where they do not",
            _judge_g5,
        ),
        Claim(
            "G6",
            "With both, throughput is linear in the rate of path 2.",
            "106 Mbit/s at 10, 192 at 100",
            f"{100 * TOLERANCE:.0f} % of (100 + ρ) × 0.968 with the whole interval: at 10 and 100 Mbit/s, and at every "
            "rate",
            _judge_g6,
        ),
        Claim(
            "G7",
            "At a bit error rate of 5e-6 there is almost no throughput without NR-SACK; NR-SACK lifts it clearly, "
            "whatever the splitting.",
            "almost zero; clearly higher",
            f"with splitting as without: at most {100 * _ALMOST_NOTHING:.0f} % of the error-free throughput; at least "
            f"{_CLEARLY} times as much, by paired differences; {100 * TOLERANCE:.0f} % between split and not",
            _judge_g7,
        ),
        Claim(
            "G8",
            "Packet-drop reports raise it further: only the overhead of the retransmissions is lost.",
            "higher again",
            f"at 5e-6, with splitting as without: higher than with NR-SACK alone by the paired difference; within "
            f"{100 * TOLERANCE:.0f} % of what both paths carry of packets that are not damaged, with the whole "
            "interval",
            _judge_g8,
        ),
        Claim(
            "G9",
            "Over the delay of path 2, NR-SACK with smart fast retransmission is best, whatever the splitting; "
            "without, throughput is clearly less at high delay.",
            "best with; clearly less without",
            f"with splitting as without, by paired differences: within {100 * TOLERANCE:.0f} % of the best curve with, "
            f"at every delay; {100 * TOLERANCE:.0f} % or more below it without, at the longest",
            _judge_g9,
        ),
        equal.OF_CMT,
    ),
    standings=partial(default.against_best, mix=MIX),
)
