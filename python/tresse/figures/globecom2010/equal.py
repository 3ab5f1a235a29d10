"""Two equal paths, with and without pooled resources: the claim G10, whose parts belong to figures 5 and 6."""

from functools import partial

from tresse.claims import TOLERANCE, Claim, Judgement, Measure
from tresse.evidence import everywhere, gain, graded, higher, near
from tresse.figures.globecom2010.mechanisms import NR, NR_SPLIT
from tresse.figures.globecom2010.mixes import runs
from tresse.figures.globecom2010.paths import RATE
from tresse.metrics import mean
from tresse.tables import Tables

EQUAL_MBPS = 100
WITHOUT_MBPS, WITH_MBPS = 175.0, 192.0
"""Throughputs with pooled resources, without and with splitting; plain CMT has the latter in both cases."""


def _judge(tables: Tables, without_mbps: float) -> Judgement:
    without, with_split = (runs(tables, RATE, EQUAL_MBPS, variant) for variant in (NR, NR_SPLIT))
    stated = {NR: (mean(without), without_mbps), NR_SPLIT: (mean(with_split), WITH_MBPS)}
    measures = tuple(Measure(variant.name, found, "Mbit/s", 1) for variant, (found, _) in stated.items())
    finding = "; ".join(
        f"{variant.name}: {100 * (found.value / mbps - 1):+.1f} %" for variant, (found, mbps) in stated.items()
    )
    values = everywhere(near(found, mbps) for found, mbps in stated.values())
    if without_mbps == WITH_MBPS:
        return Judgement(values, finding, measures)
    return Judgement(graded(values, everywhere([higher(gain(with_split, without))])), finding, measures)


OF_CMT = Claim(
    "G10",
    "Over two equal paths plain CMT gives the full throughput without splitting as with it.",
    f"{WITH_MBPS:.0f} Mbit/s in both",
    f"{100 * TOLERANCE:.0f} % with the whole interval, with NR-SACK",
    partial(_judge, without_mbps=WITH_MBPS),
    "CMT",
)
OF_CMT_RP = Claim(
    "G10",
    "Over two equal paths CMT/RP gives about 175 Mbit/s without splitting and the full throughput with it.",
    f"{WITHOUT_MBPS:.0f} and {WITH_MBPS:.0f} Mbit/s",
    f"{100 * TOLERANCE:.0f} % with the whole interval, with NR-SACK; weaker: more with splitting, by the paired "
    "difference",
    partial(_judge, without_mbps=WITHOUT_MBPS),
    "CMT/RP",
)
