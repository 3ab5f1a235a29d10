"""Figures 6 and 7 and the comparison with the adaptive map: what their judges say about stacks of known rates."""

from collections.abc import Callable

import pandas as pd
import pytest

from tresse.claims import Verdict, judge
from tresse.figures import select
from tresse.sweep import Sweep
from tresse.tables import Tables

FIGURES = select(["pfldnet2010-6", "pfldnet2010-7", "adaptive-1", "adaptive-2", "adaptive-3"])
CLAIMS = {claim.id: (figure, claim) for figure in FIGURES for claim in figure.claims}

Rates = Callable[[str, str, int], tuple[list[float], float]]
"""From setup, variant and sigma: each stream's Mbit/s, and the delay of all messages in ms."""


def tables_of(sweep: Sweep, rates: Rates) -> Tables:
    runs, streams = [], []
    for point in sweep.points:
        labels = point.labels
        found, delay = rates(str(labels["setup"]), str(labels["variant"]), int(labels["sigma_kib"]))
        for seed in (1, 2):
            runs.append({**labels, "seed": seed, "throughput_mbps": sum(found)})
            streams += [
                {
                    **labels,
                    "seed": seed,
                    "stream": stream,
                    "throughput_mbps": rate,
                    "delay_mean_ms": delay,
                }
                for stream, rate in enumerate(found)
            ]
    nothing = pd.DataFrame()
    return Tables(pd.DataFrame(runs), pd.DataFrame(streams), nothing, nothing)


def verdict(claim: str, rates: Rates) -> Verdict:
    figure, wanted = CLAIMS[claim]
    return judge(wanted, figure.name, tables_of(figure.sweep, rates)).judgement.verdict


def always(rates: list[float], delay: float) -> Rates:
    return lambda setup, variant, sigma: (rates, delay)


def full(setup: str, variant: str, sigma: int) -> tuple[list[float], float]:
    rate_b = 25 if "25" in setup else 50
    return ([9.68, rate_b * 0.968], 50.0)


def adaptive_beside(rate: float, delay: float) -> Rates:
    return lambda setup, variant, sigma: ([rate], delay) if variant == "adaptive" else ([10.0], 50.0)


@pytest.mark.parametrize(
    ("claim", "rates", "expected"),
    [
        ("P8", lambda setup, variant, sigma: ([17.0 if "25" in setup else 29.0] * 2, 50.0), Verdict.REPRODUCED),
        ("P8", always([15.0, 15.0], 50.0), Verdict.MISSED),
        ("P9", always([9.68, 9.68], 50.0), Verdict.REPRODUCED),
        ("P9", full, Verdict.MISSED),
        ("P10", full, Verdict.REPRODUCED),
        ("P10", always([9.68, 9.68], 50.0), Verdict.MISSED),
        ("P11", always([2.9], 620.0), Verdict.REPRODUCED),
        ("P11", always([2.9], 300.0), Verdict.MISSED),
        ("P11", always([5.0], 620.0), Verdict.MISSED),
        ("P12", always([5.2], 150.0), Verdict.REPRODUCED),
        ("P12", always([6.8], 60.0), Verdict.BETTER),
        ("P12", always([6.8], 200.0), Verdict.MISSED),
        ("P13", always([20.0], 60.0), Verdict.REPRODUCED),
        ("P13", always([20.0], 40.0), Verdict.BETTER),
        ("P13", always([20.0], 70.0), Verdict.MISSED),
        ("P14", always([3.0], 100.0), Verdict.REPRODUCED),
        ("P14", lambda setup, variant, sigma: ([2.9 if "no" in variant else 4.5], 9.0), Verdict.MISSED),
        ("B1 delay", adaptive_beside(10.0, 50.0), Verdict.REPRODUCED),
        ("B1 delay", adaptive_beside(9.4, 50.0), Verdict.MISSED),
        ("B1 delay", adaptive_beside(12.0, 60.0), Verdict.MISSED),
        ("B2", full, Verdict.REPRODUCED),
        ("B2", always([9.68, 9.68], 50.0), Verdict.MISSED),
        ("B3", always([19.36], 17.0), Verdict.REPRODUCED),
        ("B3", always([18.0], 17.0), Verdict.MISSED),
        ("B6 three paths", always([20.33], 17.0), Verdict.REPRODUCED),
        ("B6 three paths", always([19.36], 17.0), Verdict.MISSED),
    ],
)
def test_verdicts(claim: str, rates: Rates, expected: Verdict) -> None:
    assert verdict(claim, rates) == expected


def test_p11_is_about_the_curve_without_nr_sack_and_tells_of_the_other() -> None:
    figure, claim = CLAIMS["P11"]
    tables = tables_of(figure.sweep, lambda setup, variant, sigma: ([2.9 if "no" in variant else 4.5], 620.0))
    judgement = judge(claim, figure.name, tables).judgement
    assert judgement.verdict == Verdict.REPRODUCED
    assert judgement.finding == "2.90 Mbit/s at 620 ms; with NR-SACK 4.50 Mbit/s at 620 ms"


def test_every_drawing_and_listing_can_be_made() -> None:
    for figure in FIGURES:
        tables = tables_of(figure.sweep, always([5.0, 5.0], 50.0))
        for drawing in figure.drawings:
            assert drawing.draw(tables).axes
        for listing in figure.listings:
            assert not listing.make(tables).empty
