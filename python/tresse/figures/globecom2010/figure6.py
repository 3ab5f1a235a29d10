"""Figure 6: unordered transfers with pooled resources (CMT/RP), and the claims G10 and G11."""

from functools import partial

from tresse.claims import TOLERANCE, Claim, Judgement, Measure, Verdict
from tresse.figures.figure import Figure
from tresse.figures.globecom2010 import default, hidden, paths, plots, settings
from tresse.figures.globecom2010.mechanisms import NR, NR_SPLIT, SACK, SACK_SPLIT, UNORDERED
from tresse.figures.globecom2010.mixes import Mix, curve, throughput
from tresse.figures.globecom2010.paths import ERRORS, RATE
from tresse.tables import Tables

MIX = Mix(ordered=False, controller="cmt_rp_v1", variants=UNORDERED, hidden=hidden.POOLED, questions=settings.POOLED)

WITHOUT_MBPS, WITH_MBPS = 175.0, 192.0
"""Of two equal paths, without and with splitting."""


def _judge_g10(tables: Tables) -> Judgement:
    without, with_split = (throughput(tables, RATE, 100, variant) for variant in (NR, NR_SPLIT))
    measures = tuple(
        Measure(variant.name, throughput(tables, RATE, 100, variant), "Mbit/s", 1)
        for variant in (SACK, SACK_SPLIT, NR, NR_SPLIT)
    )
    off = {"without": without.value / WITHOUT_MBPS - 1, "with splitting": with_split.value / WITH_MBPS - 1}
    finding = "; ".join(f"{what}: {100 * share:+.1f} %" for what, share in off.items())
    lower = without.value < with_split.value
    good = lower and all(abs(share) <= TOLERANCE for share in off.values())
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, measures)


def _judge_g11(tables: Tables) -> Judgement:
    curves = {variant: curve(tables, ERRORS, variant) for variant in MIX.variants[ERRORS]}
    behind = {}
    for error_rate in ERRORS.values:
        split, other = (
            max(found[error_rate].value for variant, found in curves.items() if (variant.dash == "-") == is_split)
            for is_split in (True, False)
        )
        behind[error_rate] = split / other - 1
    finding = "best with splitting over best without: " + ", ".join(
        f"{100 * share:+.1f} % at {error_rate:g}" for error_rate, share in behind.items()
    )
    highest = max(curves, key=lambda variant: max(mean.value for mean in curves[variant].values()))
    verdict = Verdict.REPRODUCED if highest.dash == "-" else Verdict.MISSED
    return Judgement(verdict, f"the highest throughput is that of {highest.name}; {finding}")


FIGURE = Figure(
    name="globecom2010-6",
    title="Figure 6: unordered CMT/RP over unlike paths",
    source=paths.SOURCE,
    sweep=MIX.sweep(),
    drawings=plots.drawings(MIX, {RATE: ((100, WITHOUT_MBPS), (100, WITH_MBPS))}),
    listings=(
        *default.listings(MIX),
        settings.listing(MIX.questions, {"G10": _judge_g10}),
        *hidden.listings(MIX),
    ),
    claims=(
        Claim(
            "G10",
            "Over two equal paths CMT/RP gives about 175 Mbit/s without splitting and the full throughput with it.",
            f"{WITHOUT_MBPS:.0f} and {WITH_MBPS:.0f} Mbit/s",
            f"{100 * TOLERANCE:.0f} %, with NR-SACK",
            _judge_g10,
        ),
        Claim(
            "G11",
            "Over the bit error rate, the highest throughput is only reached with splitting.",
            "highest with splitting",
            "the highest mean of all curves and error rates is one with splitting",
            _judge_g11,
        ),
    ),
    standings=partial(default.against_best, mix=MIX),
)
