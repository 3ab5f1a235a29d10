"""Figures 6 and 7 and the comparison with the adaptive map: what their judges say about stacks of known rates."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from tresse.claims import Verdict, judge
from tresse.figures import select
from tresse.sweep import Sweep
from tresse.tables import Tables

FIGURES = select(["pfldnet2010-6", "pfldnet2010-7", "adaptive-1", "adaptive-2", "adaptive-3"])
CLAIMS = {f"{claim.id} {claim.part}".strip(): (figure, claim) for figure in FIGURES for claim in figure.claims}

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


def rates_of(claim: str, tables: Tables) -> Verdict:
    figure, wanted = CLAIMS[claim]
    return judge(wanted, figure.name, tables).judgement.verdict


def halves(setup: str, variant: str, sigma: int) -> tuple[list[float], float]:
    """Claim of P8."""
    return ([(10 + (25 if "25" in setup else 50)) * 0.968 / 2] * 2, 50.0)


@pytest.mark.parametrize("setup", ["10/25 Mbit/s", "10/50 Mbit/s"])
@pytest.mark.parametrize("stream", [0, 1])
def test_one_stream_of_one_bandwidth_misses_p8_to_p10_or_leaves_them_unsure(setup: str, stream: int) -> None:
    for claim, rates in (("P8", halves), ("P9", always([9.68, 9.68], 50.0)), ("P10", full)):
        tables = tables_of(CLAIMS[claim][0].sweep, rates)
        assert rates_of(claim, tables) == Verdict.REPRODUCED
        one = (tables.streams["setup"] == setup) & (tables.streams["stream"] == stream)
        runs, streams = tables.runs.copy(), tables.streams.copy()
        streams.loc[one, "throughput_mbps"] *= 0.8
        runs.loc[runs["setup"] == setup, "throughput_mbps"] *= 0.8
        assert rates_of(claim, replace(tables, runs=runs, streams=streams)) == Verdict.MISSED
        for seed, factor in ((1, 1.04), (2, 0.96)):
            runs.loc[(runs["setup"] == setup) & (runs["seed"] == seed), "throughput_mbps"] *= factor / 0.8
            streams.loc[one & (streams["seed"] == seed), "throughput_mbps"] *= factor / 0.8
        assert rates_of(claim, replace(tables, runs=runs, streams=streams)) == Verdict.WEAKER


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
        ("P11", always([3.05], 620.0), Verdict.MISSED),
        ("P11", always([2.9], 595.0), Verdict.MISSED),
        ("P12", always([5.2], 150.0), Verdict.REPRODUCED),
        ("P12", always([6.8], 60.0), Verdict.MISSED),
        ("P12", always([6.8], 150.0), Verdict.MISSED),
        ("P12", always([4.5], 150.0), Verdict.MISSED),
        ("P12", always([5.2], 120.0), Verdict.MISSED),
        ("P12", always([5.2], 200.0), Verdict.MISSED),
        # Throughput stays from 96 KiB on, and delay grows with the buffer.
        ("P12", lambda setup, variant, sigma: ([min(5.2, 5.2 * sigma / 96)], 150 * sigma / 96), Verdict.REPRODUCED),
        # It passes 5 Mbit/s and 150 ms, and goes on.
        ("P12", lambda setup, variant, sigma: ([5.2 * sigma / 96], 150.0), Verdict.MISSED),
        ("P13", always([20.0], 60.0), Verdict.REPRODUCED),
        ("P13", always([20.0], 40.0), Verdict.BETTER),
        ("P13", always([20.0], 70.0), Verdict.MISSED),
        ("P13", always([18.5], 60.0), Verdict.MISSED),
        ("P13", always([18.5], 40.0), Verdict.MISSED),
        ("P14", always([3.0], 100.0), Verdict.REPRODUCED),
        ("P14", lambda setup, variant, sigma: ([2.9 if "no" in variant else 3.1], 9.0), Verdict.REPRODUCED),
        ("P14", lambda setup, variant, sigma: ([2.9 if "no" in variant else 3.3], 9.0), Verdict.MISSED),
        ("P14", lambda setup, variant, sigma: ([3.3 if "no" in variant else 2.9], 9.0), Verdict.MISSED),
        # A tenth of what the paths carry is two thirds of what it carries here.
        ("P14", lambda setup, variant, sigma: ([3.0 if "no" in variant else 4.0], 9.0), Verdict.MISSED),
        (
            "P14",
            lambda setup, variant, sigma: ([2.9 if "no" in variant or sigma > 32 else 4.5], 9.0),
            Verdict.WEAKER,
        ),
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


def unsteady(tables: Tables, column: str, factor: float) -> Tables:
    """The tables with a column so many times as large in the first run, and as much smaller in the second."""

    def changed(table: pd.DataFrame) -> pd.DataFrame:
        if column not in table:
            return table
        factors = table["seed"].map({1: factor, 2: 2 - factor})
        return table.assign(**{column: table[column] * factors})

    return replace(tables, runs=changed(tables.runs), streams=changed(tables.streams))


@pytest.mark.parametrize(
    ("rate", "delay", "expected"),
    [(9.4, 50.0, Verdict.MISSED), (10.0, 53.0, Verdict.MISSED), (9.6, 52.0, Verdict.REPRODUCED)],
)
@pytest.mark.parametrize("part", ["delay", "bandwidth", "three paths"])
def test_one_point_decides_b1(part: str, rate: float, delay: float, expected: Verdict) -> None:
    def rates(setup: str, variant: str, sigma: int) -> tuple[list[float], float]:
        # Round-robin is the better one in throughput, fixed in delay.
        if variant == "adaptive" and sigma == 128:
            return [rate], delay
        return [8.0 if variant == "fixed" else 10.0], 60.0 if variant == "round-robin" else 50.0

    assert verdict(f"B1 {part}", rates) == expected


@pytest.mark.parametrize("setup", ["10/25 Mbit/s", "10/50 Mbit/s"])
def test_each_bandwidth_of_b2(setup: str) -> None:
    tables = tables_of(CLAIMS["B2"][0].sweep, full)
    runs = tables.runs.copy()
    runs.loc[runs["setup"] == setup, "throughput_mbps"] *= 0.9
    assert rates_of("B2", replace(tables, runs=runs)) == Verdict.MISSED


def test_chance_leaves_b6_unsure() -> None:
    tables = tables_of(CLAIMS["B6 three paths"][0].sweep, always([20.33], 17.0))
    assert rates_of("B6 three paths", unsteady(tables, "throughput_mbps", 1.1)) == Verdict.WEAKER


@pytest.mark.parametrize(("claim", "rates"), [("B2", full), ("B3", always([20.0], 17.0))])
def test_chance_leaves_b2_and_b3_unsure(claim: str, rates: Rates) -> None:
    tables = tables_of(CLAIMS[claim][0].sweep, rates)
    assert rates_of(claim, unsteady(tables, "throughput_mbps", 1.04)) == Verdict.WEAKER


def test_chance_leaves_b1_unsure() -> None:
    tables = tables_of(CLAIMS["B1 delay"][0].sweep, always([10.0], 50.0))
    runs = tables.runs.copy()
    one = (runs["variant"] == "adaptive") & (runs["sigma_kib"] == 128) & (runs["seed"] == 1)
    runs.loc[one, "throughput_mbps"] *= 0.95
    assert rates_of("B1 delay", replace(tables, runs=runs)) == Verdict.WEAKER


@pytest.mark.parametrize("column", ["throughput_mbps", "delay_mean_ms"])
@pytest.mark.parametrize(
    ("claim", "rates"), [("P11", always([2.9], 620.0)), ("P12", always([5.2], 150.0)), ("P13", always([20.0], 60.0))]
)
def test_figure_7_is_judged_by_intervals(claim: str, rates: Rates, column: str) -> None:
    tables = unsteady(tables_of(CLAIMS[claim][0].sweep, rates), column, 1.1)
    assert rates_of(claim, tables) == Verdict.WEAKER


def test_p14_compares_runs_of_one_seed() -> None:
    tables = tables_of(CLAIMS["P14"][0].sweep, always([3.0], 9.0))
    assert rates_of("P14", unsteady(tables, "throughput_mbps", 1.3)) == Verdict.REPRODUCED
    runs = tables.runs.copy()
    runs.loc[(runs["variant"] == "round-robin, NR-SACK") & (runs["seed"] == 1), "throughput_mbps"] *= 1.1
    assert rates_of("P14", replace(tables, runs=runs)) == Verdict.WEAKER, "small in the mean, with a wide interval"


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
