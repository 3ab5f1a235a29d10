"""Latency-critical streams and paths that change: what their judges say about stacks of known delays and rates."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import pytest

from tresse.claims import Verdict, judge
from tresse.figures.adaptive import changing, urgent
from tresse.figures.adaptive.changing import EVENTS, Event
from tresse.figures.pfldnet2010.variants import Setup
from tresse.tables import Tables

NOTHING = pd.DataFrame()


def urgent_tables(delay: Callable[[Setup], float], share: float) -> Tables:
    setups = {setup.name: setup for setup in urgent.SETUPS}
    runs, streams = [], []
    for point in urgent.FIGURE.sweep.points:
        setup = setups[str(point.labels["setup"])]
        rate = share * setup.capacity_mbps
        for seed in (1, 2):
            first = {**point.labels, "seed": seed}
            runs.append({**first, "throughput_mbps": rate})
            waits = {"delay_mean_ms": delay(setup), "delay_p99_ms": delay(setup)}
            streams += [{**first, "stream": stream, "throughput_mbps": rate / 3, **waits} for stream in range(3)]
    return Tables(pd.DataFrame(runs), pd.DataFrame(streams), NOTHING, NOTHING)


def unsteady(tables: Tables, percent: float) -> Tables:
    """The tables with everything so much more in the first run and less in the second."""

    def changed(table: pd.DataFrame) -> pd.DataFrame:
        factors = table["seed"].map({1: 1 + percent / 100, 2: 1 - percent / 100})
        columns = [name for name in table.columns if name in ("throughput_mbps", "delay_mean_ms")]
        return table.assign(**{name: table[name] * factors for name in columns})

    streams = tables.streams if tables.streams.empty else changed(tables.streams)
    paths = tables.paths if tables.paths.empty else changed(tables.paths)
    return Tables(changed(tables.runs), streams, paths, tables.samples)


def times_least(ratio: float, setup: Setup) -> float:
    return ratio * urgent.least_ms(setup)


def test_a_delay_at_the_edge_of_its_limit_is_weaker_for_b4() -> None:
    (claim,) = urgent.FIGURE.claims
    for ratio, share in ((1.099, 1.0), (1.0, 0.951)):
        tables = urgent_tables(partial(times_least, ratio), share)
        assert judge(claim, "figure", tables).judgement.verdict == Verdict.REPRODUCED
        assert judge(claim, "figure", unsteady(tables, 0.5)).judgement.verdict == Verdict.WEAKER


@pytest.mark.parametrize("name", [setup.name for setup in urgent.SETUPS])
def test_each_pair_of_paths_of_b4(name: str) -> None:
    (claim,) = urgent.FIGURE.claims
    late = urgent_tables(lambda setup: (1.2 if setup.name == name else 1.0) * urgent.least_ms(setup), 1.0)
    assert judge(claim, "figure", late).judgement.verdict == Verdict.MISSED
    slow = urgent_tables(urgent.least_ms, 1.0)
    slow.runs.loc[slow.runs["setup"] == name, "throughput_mbps"] *= 0.9
    assert judge(claim, "figure", slow).judgement.verdict == Verdict.MISSED


def test_b4_names_its_latest_point_and_shows_the_latest_of_a_hundred_messages() -> None:
    (claim,) = urgent.FIGURE.claims
    tables = urgent_tables(lambda setup: (1.08 if setup.name == "10/50 ms" else 1.0) * urgent.least_ms(setup), 1.0)
    tables.streams["delay_p99_ms"] = 17.0
    judgement = judge(claim, "figure", tables).judgement
    assert judgement.finding.startswith("latest at 10/50 ms: 108.0 %")
    assert [measure.value.value for measure in judgement.measures if measure.what.endswith("99 %")] == [17.0] * 5


def changing_tables(share: Callable[[Event, float], float], held_back: float = 0.0) -> Tables:
    """Both paths carry half of it; that part of what is possible was delivered that had been carried before."""
    events = {event.name: event for event in EVENTS}
    runs, paths = [], []
    for point in changing.SWEEP.points:
        event, offset = events[str(point.labels["event"])], float(point.labels["offset_s"])
        rate = share(event, offset) * event.possible_mbps
        half = (rate - held_back * event.possible_mbps) / 2
        for seed in (1, 2):
            first = {**point.labels, "seed": seed}
            runs.append({**first, "throughput_mbps": rate})
            paths += [{**first, "path": path, "throughput_mbps": half} for path in (0, 1)]
    return Tables(pd.DataFrame(runs), NOTHING, pd.DataFrame(paths), NOTHING)


@pytest.mark.parametrize(
    ("delay", "share", "expected"),
    [
        (lambda setup: 1.09 * urgent.least_ms(setup), 0.96, Verdict.REPRODUCED),
        (lambda setup: 1.11 * urgent.least_ms(setup), 1.0, Verdict.MISSED),
        (lambda setup: 12.0, 1.0, Verdict.MISSED),
        (lambda setup: 10.0, 0.94, Verdict.MISSED),
    ],
)
def test_b4(delay: Callable[[Setup], float], share: float, expected: Verdict) -> None:
    (claim,) = urgent.FIGURE.claims
    assert judge(claim, "figure", urgent_tables(delay, share)).judgement.verdict == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (lambda event, offset: 0.96 if offset >= event.back_s else 0.1, Verdict.REPRODUCED),
        (lambda event, offset: 0.96 if offset > event.back_s else 0.1, Verdict.MISSED),
        (lambda event, offset: 0.94 if event.name == "B joins" else 1.0, Verdict.MISSED),
    ],
)
def test_b5(share: Callable[[Event, float], float], expected: Verdict) -> None:
    (claim,) = changing.FIGURE.claims
    assert judge(claim, "figure", changing_tables(share)).judgement.verdict == expected


def test_what_waited_for_a_hole_is_no_throughput_of_b5() -> None:
    (claim,) = changing.FIGURE.claims
    judgement = judge(claim, "figure", changing_tables(lambda event, offset: 1.0, held_back=0.06)).judgement
    assert judgement.verdict == Verdict.MISSED


@pytest.mark.parametrize("name", [event.name for event in EVENTS])
def test_each_change_of_b5(name: str) -> None:
    (claim,) = changing.FIGURE.claims
    slow = changing_tables(lambda event, offset: 0.94 if event.name == name else 1.0)
    assert judge(claim, "figure", slow).judgement.verdict == Verdict.MISSED
    unsure = changing_tables(lambda event, offset: 0.96 if event.name == name else 2.0)
    assert judge(claim, "figure", unsteady(unsure, 1)).judgement.verdict == Verdict.WEAKER


def test_the_fastest_path_is_the_one_that_a_packet_takes_first() -> None:
    assert [round(urgent.least_ms(setup), 2) for setup in urgent.SETUPS] == [11.2, 11.2, 11.2, 10.48, 10.24]


def test_every_drawing_and_listing_can_be_made() -> None:
    for figure, tables in (
        (urgent.FIGURE, urgent_tables(urgent.least_ms, 1.0)),
        (changing.FIGURE, changing_tables(lambda event, offset: 1.0)),
    ):
        for drawing in figure.drawings:
            assert drawing.draw(tables).axes
        for listing in figure.listings:
            assert not listing.make(tables).empty
