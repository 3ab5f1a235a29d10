"""Figures 4 and 5: what their judges say about stacks that behave in known ways."""

import math
from dataclasses import replace

import pandas as pd
import pytest
import synthetic
from synthetic import Model

from tresse.claims import Claim, Finding, Verdict, judge
from tresse.figures import select
from tresse.figures.pfldnet2010 import delays, figure4, figure5
from tresse.figures.pfldnet2010.delays import FIXED, ROUND_ROBIN, Curve
from tresse.tables import Tables

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
        ("P3", replace(GOOD, wasted={ROUND_ROBIN: 0.0, FIXED: 0.0}), Verdict.BETTER),
        ("P3", replace(GOOD, wasted={ROUND_ROBIN: 0.4, FIXED: 0.0}), Verdict.MISSED),
        ("P4", GOOD, Verdict.REPRODUCED),
        ("P4", replace(GOOD, wasted={ROUND_ROBIN: 0.0, FIXED: 0.0}), Verdict.MISSED),
        ("P4", replace(GOOD, full_mbps=18.0), Verdict.MISSED),
        ("P5", GOOD, Verdict.REPRODUCED),
        ("P5", replace(GOOD, delay_gap=lambda curve: 0.06), Verdict.MISSED),
        ("P6", GOOD, Verdict.REPRODUCED),
        ("P6", replace(GOOD, delay_gap=lambda curve: 0.04), Verdict.MISSED),
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


def test_streams_that_change_places_between_runs_do_not_miss_p5_unless_they_always_do() -> None:
    """Of two runs, one is 18 % apart one way and one the other: at one point, at nearly all, and all one way."""
    apart = synthetic.tables(replace(GOOD, delay_gap=lambda curve: 0.18), runs=2)
    both_ways = turned_round(apart, 1, apart.streams["mapping"] == ROUND_ROBIN)
    alike = synthetic.tables(GOOD, runs=2)
    somewhere = both_ways.streams["sigma_kib"] == 128
    at_one = replace(alike, streams=alike.streams.where(~somewhere, both_ways.streams))
    found = judge(CLAIMS["P5"], "figure", at_one).judgement
    assert found.verdict == Verdict.REPRODUCED
    assert "single runs by 0.0 % or less in the median, by up to 18 %" in found.finding
    assert judge(CLAIMS["P5"], "figure", both_ways).judgement.verdict == Verdict.MISSED
    one_way = replace(alike, streams=alike.streams.where(~somewhere, apart.streams))
    assert judge(CLAIMS["P5"], "figure", one_way).judgement.verdict == Verdict.MISSED


def test_the_claims_of_figure_4_are_judged_with_dac_as_well() -> None:
    """Whatever is no plain mapping wastes a third of the buffer of these tables."""
    table = figure4.settings(synthetic.tables(replace(GOOD, wasted={ROUND_ROBIN: 0.2, FIXED: 0.0})))
    assert list(table["claim"]) == ["P1", "P1", "P2", "P2", "P3", "P3", "P4", "P4"]
    assert list(table["verdict"][::2]) == [Verdict.BETTER, Verdict.BETTER, Verdict.REPRODUCED, Verdict.REPRODUCED]
    assert table["verdict"][7] == Verdict.MISSED


def test_the_table_of_single_runs() -> None:
    apart, alike = synthetic.tables(replace(GOOD, delay_gap=lambda curve: 0.06)), synthetic.tables(GOOD)
    plain = apart.streams[apart.streams["mapping"] == ROUND_ROBIN]
    with_dac = alike.streams[alike.streams["mapping"] == f"{ROUND_ROBIN} {delays.WITH_DAC}"]
    table = figure5.single_runs(replace(apart, streams=pd.concat([plain, with_dac])))
    runs = synthetic.RUNS * len(delays.SIGMAS_KIB)
    assert list(table["runs"]) == [runs] * 6
    assert list(table["apart"]) == [runs] * 3 + [0] * 3
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


def test_delays_that_differ_by_chance_only_miss_p6() -> None:
    # One run turned round: the means still differ by far more than 5 %, the paired interval holds zero.
    plain = synthetic.tables(GOOD)
    by_chance = turned_round(plain, 1, plain.streams["mapping"] == FIXED)
    assert judge(CLAIMS["P6"], "figure", by_chance).judgement.verdict == Verdict.MISSED


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


@pytest.mark.parametrize("claim", list(CLAIMS))
def test_one_run_is_enough_for_a_verdict(claim: str) -> None:
    finding = judge(CLAIMS[claim], "figure", synthetic.tables(GOOD, runs=1))
    assert finding.judgement.verdict in (Verdict.REPRODUCED, Verdict.BETTER)
    assert all(measure["half_width_95"] is None for measure in finding.document()["measures"])


def test_a_finding_as_a_document() -> None:
    finding: Finding = judge(CLAIMS["P1"], "pfldnet2010-4", synthetic.tables(GOOD))
    document = finding.document()
    assert document["id"] == "P1"
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
