"""Figure 5: unordered transfers over unlike paths, and the claims G4 to G9."""

from functools import partial

from tresse.claims import TOLERANCE, Claim, Judgement, Measure, Verdict
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, hidden, paths, plots, settings
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
from tresse.figures.globecom2010.mixes import Mix, curve, throughput
from tresse.figures.globecom2010.paths import DELAY, ERRORS, RATE
from tresse.metrics import Mean
from tresse.tables import Tables

MIX = Mix(
    ordered=False, controller="rfc9260", variants=UNORDERED, hidden=hidden.UNORDERED, questions=settings.UNORDERED
)

_PAYLOAD_SHARE = paths.PAYLOAD_BYTES / paths.PACKET_BYTES
_ALMOST_NOTHING = 0.10
"""Share of what both mechanisms give that counts as almost zero."""
_CLEARLY = 1.25
"""Factor by which a throughput is clearly higher."""


def _measures(found: dict[str, Mean]) -> tuple[Measure, ...]:
    return tuple(Measure(what, value, "Mbit/s", 1) for what, value in found.items())


def _judge_g4(tables: Tables) -> Judgement:
    neither, both = (throughput(tables, RATE, 1, variant) for variant in (SACK, NR_SPLIT))
    share = neither.value / both.value
    finding = f"at 1 Mbit/s {100 * share:.1f} % of what NR-SACK and splitting carry"
    verdict = Verdict.REPRODUCED if share <= _ALMOST_NOTHING else Verdict.MISSED
    return Judgement(verdict, finding, _measures({"neither": neither, "both": both}))


def _judge_g5(tables: Tables) -> Judgement:
    neither, alone, split, both = (curve(tables, RATE, variant) for variant in (SACK, NR, SACK_SPLIT, NR_SPLIT))
    unlike = [rate for rate in RATE.values if rate < paths.RATE_MBPS]
    worse = all(split[rate].value < neither[rate].value for rate in unlike)
    helps = all(alone[rate].value > neither[rate].value for rate in unlike)
    nearest = min(alone[rate].value / both[rate].value for rate in unlike)
    finding = (
        f"splitting alone is {'worse than neither at every rate' if worse else 'not worse everywhere'} below 100 "
        f"Mbit/s; NR-SACK alone carries at least {100 * nearest:.0f} % of both"
    )
    measures = _measures(
        {
            f"{name}, {rate:g} Mbit/s": found[rate]
            for rate in (1, 10)
            for name, found in (("neither", neither), ("NR-SACK", alone), ("splitting", split), ("both", both))
        }
    )
    if not (worse and helps):
        verdict = Verdict.MISSED
    else:
        verdict = Verdict.BETTER if nearest >= 1 - TOLERANCE else Verdict.REPRODUCED
    return Judgement(verdict, finding, measures)


def _judge_g6(tables: Tables) -> Judgement:
    both = curve(tables, RATE, NR_SPLIT)
    expected = {rate: (paths.RATE_MBPS + rate) * _PAYLOAD_SHARE for rate in RATE.values}
    farthest = max(RATE.values, key=lambda rate: abs(both[rate].value / expected[rate] - 1))
    off = both[farthest].value / expected[farthest] - 1
    finding = f"farthest from (100 + ρ) × 0.968 at ρ = {farthest:g} Mbit/s: {100 * off:+.1f} %"
    verdict = Verdict.REPRODUCED if abs(off) <= TOLERANCE else Verdict.MISSED
    return Judgement(verdict, finding, _measures({f"{rate:g} Mbit/s": both[rate] for rate in (10, 100)}))


def _judge_g7(tables: Tables) -> Judgement:
    worst, clean = ERRORS.values[-1], throughput(tables, ERRORS, 0, NR_SPLIT)
    sack, sack_split, nr, nr_split = (
        throughput(tables, ERRORS, worst, variant) for variant in (SACK, SACK_SPLIT, NR, NR_SPLIT)
    )
    share = max(sack.value, sack_split.value) / clean.value
    same = abs(nr.value / nr_split.value - 1)
    finding = (
        f"at 5e-6 without NR-SACK {100 * share:.1f} % of the error-free throughput; NR-SACK lifts it "
        f"{nr.value / sack.value:.1f}-fold; splitting changes that by {100 * same:.1f} %"
    )
    good = share <= _ALMOST_NOTHING and nr.value >= _CLEARLY * sack.value and same <= TOLERANCE
    measures = _measures({"SACK": sack, "NR-SACK": nr, "NR-SACK, split": nr_split})
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, measures)


def _judge_g8(tables: Tables) -> Judgement:
    worst = ERRORS.values[-1]
    bound = ERRORS.bound_mbps(worst, MIX.buffers(ERRORS))
    found = {variant: throughput(tables, ERRORS, worst, variant) for variant in (NR, NR_SPLIT, REPORTS, REPORTS_SPLIT)}
    nr, lowest = found[NR], min(found[REPORTS], found[REPORTS_SPLIT], key=lambda mean: mean.value)
    finding = (
        f"at 5e-6 drop reports carry {lowest.value / nr.value:.2f} times as much as NR-SACK alone, and "
        f"{100 * lowest.value / bound:.0f} % of what intact packets can carry"
    )
    good = lowest.value > nr.value and lowest.value >= (1 - TOLERANCE) * bound
    measures = _measures({variant.name: mean for variant, mean in found.items()})
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, measures)


def _judge_g9(tables: Tables) -> Judgement:
    longest = DELAY.values[-1]
    found: dict[str, Mean] = {}
    parts, good = [], True
    for splitting, alike in (
        ("without splitting", (SACK, HASTY, NR)),
        ("with it", (SACK_SPLIT, HASTY_SPLIT, NR_SPLIT)),
    ):
        sack, hasty, smart = (throughput(tables, DELAY, longest, variant) for variant in alike)
        found |= dict(zip((variant.name for variant in alike), (sack, hasty, smart), strict=True))
        best = max(sack.value, hasty.value, smart.value)
        good &= smart.value >= (1 - TOLERANCE) * best and hasty.value < (1 - TOLERANCE) * smart.value
        parts.append(
            f"{splitting} NR-SACK with smart fast retransmission carries {100 * smart.value / best:.0f} % of the best, "
            f"and without {100 * hasty.value / smart.value:.0f} % of that"
        )
    finding = f"at {longest:g} ms {'; '.join(parts)}"
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, _measures(found))


FIGURE = Figure(
    name="globecom2010-5",
    title="Figure 5: unordered CMT over unlike paths",
    source=paths.SOURCE,
    sweep=MIX.sweep(),
    drawings=plots.drawings(MIX, {RATE: ((10, 106), (100, 192))}),
    listings=(
        *default.listings(MIX),
        settings.listing(MIX.questions, {"G9": _judge_g9}),
        *hidden.listings(MIX),
    ),
    claims=(
        Claim(
            "G4",
            "With neither buffer splitting nor NR-SACK, throughput falls to almost zero at 1 Mbit/s on path 2.",
            "almost zero",
            f"at most {100 * _ALMOST_NOTHING:.0f} % of what both mechanisms give",
            _judge_g4,
        ),
        Claim(
            "G5",
            "NR-SACK alone improves that only somewhat; splitting alone is worse than neither.",
            "split alone < neither < NR-SACK alone",
            "order of the means at every rate below 100 Mbit/s; better: NR-SACK alone is within 5 % of both",
            _judge_g5,
        ),
        Claim(
            "G6",
            "With both, throughput is linear in the rate of path 2.",
            "106 Mbit/s at 10, 192 at 100",
            f"{100 * TOLERANCE:.0f} % of (100 + ρ) × 0.968 at every rate",
            _judge_g6,
        ),
        Claim(
            "G7",
            "At a bit error rate of 5e-6 there is almost no throughput without NR-SACK; NR-SACK lifts it clearly, "
            "whatever the splitting.",
            "almost zero; clearly higher",
            f"at most {100 * _ALMOST_NOTHING:.0f} % of the error-free throughput; at least {_CLEARLY} times as much; "
            f"{100 * TOLERANCE:.0f} % between split and not",
            _judge_g7,
        ),
        Claim(
            "G8",
            "Packet-drop reports raise it further: only the overhead of the retransmissions is lost.",
            "higher again",
            f"at 5e-6: higher than with NR-SACK alone, and within {100 * TOLERANCE:.0f} % of what both paths carry of "
            "packets that are not damaged",
            _judge_g8,
        ),
        Claim(
            "G9",
            "Over the delay of path 2, NR-SACK with smart fast retransmission is best, whatever the splitting; "
            "without, throughput is clearly less at high delay.",
            "best with; clearly less without",
            f"at the longest delay, with splitting as without: within {100 * TOLERANCE:.0f} % of the best curve with, "
            "more than that below it without",
            _judge_g9,
        ),
    ),
    standings=partial(default.against_best, mix=MIX),
)
