"""Latency-critical streams and paths that change: what their judges say about stacks of known delays and rates."""

from collections.abc import Callable

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


def changing_tables(share: Callable[[Event, float], float]) -> Tables:
    events = {event.name: event for event in EVENTS}
    runs = []
    for point in changing.SWEEP.points:
        event, offset = events[str(point.labels["event"])], float(point.labels["offset_s"])
        rate = share(event, offset) * event.possible_mbps
        runs += [{**point.labels, "seed": seed, "throughput_mbps": rate} for seed in (1, 2)]
    return Tables(pd.DataFrame(runs), NOTHING, NOTHING, NOTHING)


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
