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


def test_p5_is_judged_under_other_settings_as_well() -> None:
    apart, alike = synthetic.tables(replace(GOOD, delay_gap=lambda curve: 0.06)), synthetic.tables(GOOD)
    plain = alike.streams[alike.streams["mapping"] == ROUND_ROBIN]
    others = [plain.assign(mapping=f"{ROUND_ROBIN} {setting}") for setting in figure5.SETTINGS]
    [listing] = (listing for listing in figure5.FIGURE.listings if listing.name == "settings")
    table = listing.make(replace(apart, streams=pd.concat([apart.streams, *others])))
    assert list(table["verdict"]) == [Verdict.MISSED, Verdict.REPRODUCED, Verdict.REPRODUCED]
    points = 3 * len(delays.SIGMAS_KIB)
    assert f"at {points} of {points} points" in table["finding"][0]


def test_a_throughput_that_sinks_with_the_buffer_misses_p7() -> None:
    tables = synthetic.tables(GOOD)
    runs = tables.runs.copy()
    runs.loc[runs["sigma_kib"] == delays.SIGMAS_KIB[-1], "throughput_mbps"] *= 0.9
    sinking = replace(tables, runs=runs)
    assert judge(CLAIMS["P7"], "figure", sinking).judgement.verdict == Verdict.MISSED


def test_delays_that_differ_by_chance_only_miss_p6() -> None:
    tables = synthetic.tables(GOOD)
    streams = tables.streams.copy()
    # One run turned round: the means still differ by far more than 5 %, the paired interval holds zero.
    one = (streams["seed"] == 1) & (streams["mapping"] == FIXED)
    streams.loc[one, "stream"] = 1 - streams.loc[one, "stream"]
    by_chance = replace(tables, streams=streams)
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
