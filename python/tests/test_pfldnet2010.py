"""Figures 4 and 5: what their judges say about stacks that behave in known ways."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import synthetic
from synthetic import Model

from tresse.claims import Claim, Finding, Verdict, judge
from tresse.figures import select
from tresse.figures.pfldnet2010 import delays, figure4, figure5
from tresse.figures.pfldnet2010.delays import FIXED, ROUND_ROBIN, Curve
from tresse.tables import Tables

if TYPE_CHECKING:
    import pandas as pd

CLAIMS: dict[str, Claim] = {
    claim.id: claim for figure in select(["pfldnet2010-4", "pfldnet2010-5"]) for claim in figure.claims
}
GOOD = Model()


def verdict(claim: str, model: Model) -> Verdict:
    return judge(CLAIMS[claim], "figure", synthetic.tables(model)).judgement.verdict


def test_every_claim_is_there_once() -> None:
    assert list(CLAIMS) == ["P1", "P2", "P3", "P4", "P5", "P6", "P7"]


@pytest.mark.parametrize(
    ("claim", "model", "expected"),
    [
        # A buffer that wastes a third of itself reaches full throughput at 64 KiB only at the slower rate.
        ("P1", GOOD, Verdict.BETTER),
        ("P1", replace(GOOD, full_mbps=18.0), Verdict.MISSED),
        ("P1", replace(GOOD, full_mbps=18.3), Verdict.REPRODUCED),
        ("P2", GOOD, Verdict.BETTER),
        ("P2", replace(GOOD, wasted={ROUND_ROBIN: 0.2, FIXED: 0.12}), Verdict.REPRODUCED),
        ("P2", replace(GOOD, wasted={ROUND_ROBIN: 0.2, FIXED: 0.2}), Verdict.MISSED),
        ("P2", replace(GOOD, full_mbps=18.3), Verdict.MISSED),
        ("P3", GOOD, Verdict.REPRODUCED),
        ("P3", replace(GOOD, wasted={ROUND_ROBIN: 0.0, FIXED: 0.0}), Verdict.MISSED),
        ("P3", replace(GOOD, wasted={ROUND_ROBIN: 0.4, FIXED: 0.0}), Verdict.MISSED),
        ("P4", GOOD, Verdict.REPRODUCED),
        ("P4", replace(GOOD, wasted={ROUND_ROBIN: 0.0, FIXED: 0.0}), Verdict.MISSED),
        ("P4", replace(GOOD, full_mbps=18.0), Verdict.MISSED),
        ("P5", GOOD, Verdict.REPRODUCED),
        ("P5", replace(GOOD, delay_gap=lambda curve: 0.06), Verdict.MISSED),
        ("P6", GOOD, Verdict.REPRODUCED),
        ("P6", replace(GOOD, delay_gap=lambda curve: 0.04), Verdict.WEAKER),
        ("P6", replace(GOOD, delay_gap=lambda curve: 0.0), Verdict.MISSED),
        ("P6", replace(GOOD, delay_gap=lambda curve: 0.5 if curve.delay_b_ms == 50 else 0.0), Verdict.MISSED),
        ("P6", replace(GOOD, delay_gap=lambda curve: -0.5), Verdict.MISSED),
        ("P6", replace(GOOD, throughput_gap=0.06), Verdict.MISSED),
        ("P7", GOOD, Verdict.REPRODUCED),
        ("P7", replace(GOOD, bend=1.0), Verdict.MISSED),
    ],
)
def test_verdicts(claim: str, model: Model, expected: Verdict) -> None:
    assert verdict(claim, model) == expected


def turned_round(tables: Tables, seed: int, rows: "pd.Series[bool]") -> Tables:
    """The tables with the streams of one run exchanged in these rows."""
    streams = tables.streams.copy()
    one = (streams["seed"] == seed) & rows
    streams.loc[one, "stream"] = 1 - streams.loc[one, "stream"]
    return replace(tables, streams=streams)


def with_rate(tables: Tables, curve: Curve, sigma_kib: int, mbps: float) -> Tables:
    """The tables with this throughput at one point."""
    runs = tables.runs.copy()
    runs.loc[at_point(tables, curve, sigma_kib), "throughput_mbps"] = mbps
    return replace(tables, runs=runs)


def at_point(tables: Tables, curve: Curve, sigma_kib: int) -> "pd.Series[bool]":
    """Rows of runs of one point."""
    runs = tables.runs
    one = (runs["delay_b_ms"] == curve.delay_b_ms) & (runs["mapping"] == curve.mapping)
    return one & (runs["sigma_kib"] == sigma_kib)


def test_p2_is_about_224_kib_and_all_beyond() -> None:
    tables, curve = synthetic.tables(GOOD), Curve(75, FIXED)
    for sigma in (224, 320):
        slow = with_rate(tables, curve, sigma, 18.0)
        assert judge(CLAIMS["P2"], "figure", slow).judgement.verdict == Verdict.MISSED
        unsure = noisy(tables, at_point(tables, curve, sigma), 20)
        assert judge(CLAIMS["P2"], "figure", unsure).judgement.verdict == Verdict.WEAKER
    # Below it only the gain is in question.
    unsure = noisy(tables, at_point(tables, curve, 208), 20)
    assert judge(CLAIMS["P2"], "figure", unsure).judgement.verdict == Verdict.REPRODUCED


def test_p3_is_about_224_kib_and_about_288_and_all_beyond() -> None:
    tables, curve = synthetic.tables(GOOD), Curve(75, ROUND_ROBIN)
    for sigma, wrong in ((224, 19.0), (288, 18.0), (320, 18.0)):
        assert judge(CLAIMS["P3"], "figure", with_rate(tables, curve, sigma, wrong)).judgement.verdict == Verdict.MISSED
        unsure = noisy(tables, at_point(tables, curve, sigma), 20)
        assert judge(CLAIMS["P3"], "figure", unsure).judgement.verdict == Verdict.WEAKER


def test_p4_needs_a_round_robin_that_is_surely_not_full_where_fixed_surely_is() -> None:
    tables, fixed, round_robin = synthetic.tables(GOOD), Curve(50, FIXED), Curve(50, ROUND_ROBIN)
    sigma = delays.sufficient_kib(tables, fixed)
    assert sigma is not None
    for curve in (fixed, round_robin):
        unsure = noisy(tables, at_point(tables, curve, sigma), 20)
        assert judge(CLAIMS["P4"], "figure", unsure).judgement.verdict == Verdict.WEAKER
    as_soon = tables
    for larger in (one for one in delays.SIGMAS_KIB if one >= sigma):
        as_soon = with_rate(as_soon, round_robin, larger, 19.0)
    assert judge(CLAIMS["P4"], "figure", as_soon).judgement.verdict == Verdict.MISSED


def p5(tables: Tables) -> Verdict:
    return judge(CLAIMS["P5"], "figure", tables).judgement.verdict


def test_p5_asks_each_sigma_for_its_mean_and_for_its_median_run() -> None:
    alike = synthetic.tables(GOOD, runs=4)
    apart = synthetic.tables(replace(GOOD, delay_gap=lambda curve: 0.18), runs=4)
    turned = alike.streams["mapping"] == ROUND_ROBIN
    # Half of the runs one way and half the other: the mean is even, and no run is.
    both_ways = turned_round(turned_round(apart, 1, turned), 2, turned)

    def at(tables: Tables, sigmas: tuple[int, ...]) -> Tables:
        there = alike.streams["sigma_kib"].isin(sigmas)
        return replace(alike, streams=alike.streams.where(~there, tables.streams))

    assert p5(alike) is Verdict.REPRODUCED
    for wrong in (apart, both_ways):
        assert p5(at(wrong, (128,))) is Verdict.WEAKER
        assert p5(at(wrong, delays.SIGMAS_KIB[::2])) is Verdict.WEAKER
        assert p5(at(wrong, delays.SIGMAS_KIB)) is Verdict.MISSED
    finding = judge(CLAIMS["P5"], "figure", at(both_ways, (128,))).judgement.finding
    assert finding.startswith("apart at 3 of 57 points; ")
    assert "the median single run by up to 18.0 % (10/10 ms, round-robin, 128 KiB)" in finding


def test_one_run_that_differs_leaves_p5_unsure_of_its_sigma() -> None:
    alike = synthetic.tables(GOOD, runs=4)
    apart = synthetic.tables(replace(GOOD, delay_gap=lambda curve: 0.16), runs=4)
    one = (alike.streams["sigma_kib"] == 128) & (alike.streams["seed"] == 1)
    # 4 % in the mean, with an interval of 13: neither the same nor apart.
    assert p5(replace(alike, streams=alike.streams.where(~one, apart.streams))) is Verdict.WEAKER


def test_the_table_of_single_runs() -> None:
    table = figure5.single_runs(synthetic.tables(replace(GOOD, delay_gap=lambda curve: 0.06)))
    runs = synthetic.RUNS * len(delays.SIGMAS_KIB)
    assert list(table["runs"]) == list(table["apart"]) == [runs] * 3
    assert table["largest_percent"][0] == pytest.approx(6)


def test_a_long_delay_of_the_second_stream_is_not_cut_off() -> None:
    [drawing] = figure5.FIGURE.drawings
    assert synthetic.all_is_shown(drawing.draw(synthetic.tables(GOOD)))


def test_a_throughput_that_sinks_with_the_buffer_misses_p7() -> None:
    tables = synthetic.tables(GOOD)
    runs = tables.runs.copy()
    runs.loc[runs["sigma_kib"] == delays.SIGMAS_KIB[-1], "throughput_mbps"] *= 0.9
    sinking = replace(tables, runs=runs)
    assert judge(CLAIMS["P7"], "figure", sinking).judgement.verdict == Verdict.MISSED


@pytest.mark.parametrize(("turns", "expected"), [(False, Verdict.WEAKER), (True, Verdict.MISSED)])
def test_delays_that_hardly_grow_or_grow_by_chance_do_not_show_p7(turns: bool, expected: Verdict) -> None:
    tables = synthetic.tables(GOOD)
    streams = tables.streams.copy()
    where = (streams["delay_b_ms"] == 10) & (streams["sigma_kib"] >= delays.bandwidth_delay_kib(10))
    # A hundredth of a percent in all, in each run; or it rises in one run and falls in the next.
    slope = 0.01 * (-1.0) ** streams["seed"] if turns else 0.0001
    streams.loc[where, "delay_mean_ms"] = 60 + slope * streams["sigma_kib"]
    assert judge(CLAIMS["P7"], "figure", replace(tables, streams=streams)).judgement.verdict == expected


def test_delays_that_differ_by_chance_only_are_weaker_for_p6() -> None:
    # One run turned round: the means still differ by far more than 5 %, the paired interval holds zero.
    plain = synthetic.tables(GOOD)
    by_chance = turned_round(plain, 1, plain.streams["mapping"] == FIXED)
    assert judge(CLAIMS["P6"], "figure", by_chance).judgement.verdict == Verdict.WEAKER


@pytest.mark.parametrize(("delay", "sigma", "verdict"), [(75, 240, Verdict.WEAKER), (75, 160, Verdict.REPRODUCED)])
def test_p6_wants_equal_throughput_where_equation_1_is_satisfied(delay: int, sigma: int, verdict: Verdict) -> None:
    tables = synthetic.tables(GOOD)
    streams = tables.streams.copy()
    one = (streams["mapping"] == FIXED) & (streams["delay_b_ms"] == delay) & (streams["sigma_kib"] == sigma)
    streams.loc[one & (streams["stream"] == 1), "throughput_mbps"] *= 1.1
    assert judge(CLAIMS["P6"], "figure", replace(tables, streams=streams)).judgement.verdict == verdict


def test_a_longer_delay_of_stream_0_at_one_sigma_misses_p6() -> None:
    tables, against = synthetic.tables(GOOD), synthetic.tables(replace(GOOD, delay_gap=lambda curve: -0.5))
    one = tables.streams["sigma_kib"] == 128
    turned = replace(tables, streams=tables.streams.where(~one, against.streams))
    assert judge(CLAIMS["P6"], "figure", turned).judgement.verdict == Verdict.MISSED


def test_a_stream_without_messages_is_named() -> None:
    tables = synthetic.tables(GOOD)
    streams = tables.streams.copy()
    silent = (streams["mapping"] == FIXED) & (streams["sigma_kib"] == 64) & (streams["stream"] == 1)
    streams.loc[silent, "delay_mean_ms"] = math.nan
    finding = judge(CLAIMS["P6"], "figure", replace(tables, streams=streams))
    assert finding.judgement.verdict == Verdict.NOT_MEASURED
    assert finding.judgement.finding == "a stream got no message at 10/50 ms, fixed, 64 KiB"


@pytest.mark.parametrize("claim", list(CLAIMS))
def test_missing_points_are_not_a_miss(claim: str) -> None:
    tables = synthetic.tables(GOOD)
    # 240 KiB lies in every judge's range.
    partial = replace(
        tables,
        runs=tables.runs[tables.runs["sigma_kib"] != 240],
        streams=tables.streams[tables.streams["sigma_kib"] != 240],
    )
    finding = judge(CLAIMS[claim], "figure", partial)
    assert finding.judgement.verdict == Verdict.NOT_MEASURED
    assert "240 KiB" in finding.judgement.finding


def noisy(tables: Tables, rows: "pd.Series[bool]", percent: float) -> Tables:
    """The tables with the throughput of the first run so much higher in these rows, and that of the last one lower."""
    runs = tables.runs.copy()
    last = runs["seed"].max()
    runs.loc[rows & (runs["seed"] == 1), "throughput_mbps"] *= 1 + percent / 100
    runs.loc[rows & (runs["seed"] == last), "throughput_mbps"] *= 1 - percent / 100
    return replace(tables, runs=runs)


def test_p1_is_about_both_mappings_and_their_intervals() -> None:
    tables = synthetic.tables(GOOD)
    at_64 = (tables.runs["delay_b_ms"] == 10) & (tables.runs["sigma_kib"] == 64)
    for mapping in delays.STREAM_MAPS:
        one = at_64 & (tables.runs["mapping"] == mapping)
        runs = tables.runs.copy()
        runs.loc[one, "throughput_mbps"] = 18.0
        assert judge(CLAIMS["P1"], "figure", replace(tables, runs=runs)).judgement.verdict == Verdict.MISSED
        assert judge(CLAIMS["P1"], "figure", noisy(tables, one, 20)).judgement.verdict == Verdict.WEAKER


def test_a_finding_as_a_document() -> None:
    finding: Finding = judge(CLAIMS["P1"], "pfldnet2010-4", synthetic.tables(GOOD))
    document = finding.document()
    assert document["figure"] == "pfldnet2010-4"
    assert document["verdict"] == "better"
    assert document["measures"][0]["n"] == synthetic.RUNS
    assert document["measures"][0]["mean"] == pytest.approx(19.3, abs=0.01)


def test_the_sufficient_buffer_is_the_one_from_which_on_all_suffice() -> None:
    tables = synthetic.tables(GOOD)
    curve = Curve(10, FIXED)
    assert delays.sufficient_kib(tables, curve) == 48
    runs = tables.runs.copy()
    dip = (runs["delay_b_ms"] == 10) & (runs["mapping"] == FIXED) & (runs["sigma_kib"] == 128)
    runs.loc[dip, "throughput_mbps"] = 15.0
    assert delays.sufficient_kib(replace(tables, runs=runs), curve) == 144


def test_the_table_of_sufficient_buffers() -> None:
    rows = figure4.sufficient_sigmas(synthetic.tables(replace(GOOD, wasted={ROUND_ROBIN: 0.5, FIXED: 0.0})))
    by_curve = rows.set_index("curve")
    assert by_curve.loc["10/75 ms, round-robin", "ours_kib"] == "> 320"
    assert by_curve.loc["10/75 ms, round-robin", "paper_kib"] == "288"
    assert by_curve.loc["10/50 ms, fixed", "paper_kib"] == "not stated"
    # 0.95 of 19.36 Mbit/s: 9.68 at 21.2 ms, the rest, 8.712, at 151.2 ms: 189,821 bytes.
    assert by_curve.loc["10/75 ms, fixed", "bound_kib"] == "186"


def test_equation_1_by_worked_numbers() -> None:
    assert delays.bandwidth_delay_kib(10) * delays.KIB == 50_000
    assert delays.bandwidth_delay_kib(75) * delays.KIB == 212_500
