"""Tests of the tidy tables that are made of outcome documents."""

from typing import Any

import pytest
import synthetic

import tresse
from tresse.figures.pfldnet2010.delays import FIXED, Curve
from tresse.metrics import summarise
from tresse.sweep import Point
from tresse.tables import LIMITS, Tables

POINT = Point({"sigma_kib": 64}, {})


def outcome(seed: int = 1) -> dict[str, Any]:
    return synthetic.Model().outcome(Curve(10, FIXED), 64, seed)


def test_one_row_for_each_run_stream_and_path() -> None:
    tables = Tables.of([(POINT, outcome(1)), (POINT, outcome(2))])
    assert len(tables.runs) == 2
    assert list(zip(tables.streams["seed"], tables.streams["stream"], strict=True)) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert tables.paths["path"].tolist() == [0, 1, 0, 1]
    assert set(tables.runs["sigma_kib"]) == {64}


def test_units_are_in_the_column_names() -> None:
    columns = set(Tables.of([(POINT, outcome())]).streams.columns)
    assert {"throughput_mbps", "delay_mean_ms", "delay_p50_ms", "delay_p95_ms", "delay_p99_ms"} <= columns


def test_limits_are_shares_of_time() -> None:
    paths = Tables.of([(POINT, outcome())]).paths
    assert paths[[f"limit_{name}" for name in LIMITS]].sum(axis=1).round(9).tolist() == [1.0, 1.0]


def test_a_stream_without_messages_has_no_delay_and_does_not_count_in_means() -> None:
    silent = outcome(1)
    silent["streams"][1]["delay_ms"] = None
    tables = Tables.of([(POINT, silent), (POINT, outcome(2))])
    assert tables.streams["delay_mean_ms"].isna().tolist() == [False, True, False, False]
    assert summarise(tables.streams, ["stream"], "delay_mean_ms")["n"].tolist() == [2, 1]


def test_rows_are_chosen_by_label() -> None:
    tables = Tables.of([(POINT, outcome()), (Point({"sigma_kib": 128}, {}), outcome())])
    assert tables.where(sigma_kib=128).runs["sigma_kib"].tolist() == [128]
    assert tables.where(sigma_kib=99).runs.empty


def test_samples_are_those_of_the_measured_part_by_path() -> None:
    recorded = outcome() | {"measured_from_s": 2.0, "measured_s": 1.0, "series": synthetic.series(64)}
    samples = Tables.of([(POINT, outcome())], [(POINT, recorded)]).samples
    assert sorted(set(samples["path"])) == [0, 1]
    assert samples["time_s"].min() == 2.1
    assert samples["time_s"].max() == 3.0
    assert set(samples["sigma_kib"]) == {64}


SAMPLED = """
settle = "2s"
start_jitter = "0s"
[[path]]
rate = "10Mbit/s"
delay = "10ms"
"""


@pytest.mark.parametrize(
    ("overrides", "first_s", "last_s"),
    [
        # The last sample comes before the end of the run: at 2.8 s of 3 s, and one at 1.9 s is one of settling.
        ({"measure": "1s", "record.interval": "950ms"}, 2.85, 2.85),
        ({"measure": "1s", "record.interval": "500ms"}, 2.5, 3.0),
        # Everything is delivered soon after the measurement began.
        ({"measure": "60s", "record.interval": "100ms", "traffic.volume": "2500kB"}, 2.1, 2.1),
    ],
)
def test_samples_of_a_run_are_those_after_it_has_settled(
    overrides: dict[str, str], first_s: float, last_s: float
) -> None:
    recorded = tresse.run(SAMPLED, overrides).document
    times = Tables.of([(POINT, outcome())], [(POINT, recorded)]).samples["time_s"]
    assert (times.min(), times.max()) == (first_s, last_s)


def test_a_run_that_ends_before_it_has_settled_has_no_samples() -> None:
    recorded = tresse.run(SAMPLED, {"measure": "1s", "record.interval": "100ms", "traffic.volume": "100kB"}).document
    assert recorded["measured_s"] == 0
    assert recorded["series"]["time_s"]
    assert Tables.of([(POINT, outcome())], [(POINT, recorded)]).samples.empty


def test_without_a_record_there_are_no_samples() -> None:
    tables = Tables.of([(POINT, outcome())])
    assert tables.samples.empty
    assert tables.where(sigma_kib=64).samples.empty


def test_cross_traffic_has_a_column_for_each_pair() -> None:
    crossed = outcome() | {"cross": [{"id": 0, "throughput_mbps": 4.5}, {"id": 1, "throughput_mbps": 0.5}]}
    runs = Tables.of([(POINT, crossed)]).runs
    assert runs[["cross_0_mbps", "cross_1_mbps"]].to_numpy().tolist() == [[4.5, 0.5]]
