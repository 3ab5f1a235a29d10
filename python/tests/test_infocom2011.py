"""The judges of the INFOCOM 2011 workshop paper on outcomes made up to reach each verdict."""

from collections.abc import Callable

import pandas as pd
import pytest

from tresse.claims import Verdict, judge
from tresse.figures.figure import Figure
from tresse.figures.infocom2011 import figure9, figure10, talks
from tresse.figures.infocom2011.talks import FCFS, PRIORITY, STANDARD
from tresse.metrics import Mean
from tresse.tables import Tables

Latency = Callable[[str, str], float]
EMPTY = pd.DataFrame()


def _tables(figure: Figure, latency_ms: Latency, tcp_mbps: Callable[[str], float] = lambda _: 5.0) -> Tables:
    runs, streams = [], []
    for point in figure.sweep.points:
        variant, scheduler = (str(point.labels[label]) for label in ("variant", "scheduler"))
        for seed in (1, 2, 3):
            noise = 1 + 0.01 * (seed - 2)
            first = {**point.labels, "seed": seed}
            runs.append({**first, "throughput_mbps": 3.0 * noise, talks.TCP: tcp_mbps(scheduler) * noise})
            delay = latency_ms(variant, scheduler) * noise
            streams += [{**first, "stream": 0, "delay_mean_ms": delay}, {**first, "stream": 1, "delay_mean_ms": 9e9}]
    return Tables(pd.DataFrame(runs), pd.DataFrame(streams), EMPTY, EMPTY)


def _verdicts(figure: Figure, tables: Tables) -> dict[str, Verdict]:
    return {claim.id: judge(claim, figure.name, tables).judgement.verdict for claim in figure.claims}


def _latency(fcfs: float, priority: float) -> Latency:
    # Other settings turn the tables, and do not count.
    return lambda variant, scheduler: fcfs if (scheduler == FCFS) == (variant == STANDARD) else priority


@pytest.mark.parametrize(
    ("figure", "fcfs", "priority", "verdict"),
    [
        (figure9.FIGURE, 500, 350, Verdict.REPRODUCED),
        (figure9.FIGURE, 500, 450, Verdict.MISSED),
        (figure9.FIGURE, 500, 200, Verdict.MISSED),
        (figure10.FIGURE, 23_000, 5_000, Verdict.REPRODUCED),
        (figure10.FIGURE, 23_000, 9_000, Verdict.MISSED),
    ],
)
def test_priority_has_to_shorten_the_latency_as_published(
    figure: Figure, fcfs: float, priority: float, verdict: Verdict
) -> None:
    verdicts = _verdicts(figure, _tables(figure, _latency(fcfs, priority)))
    assert list(verdicts.values()) == [verdict, Verdict.REPRODUCED]


def test_a_flow_that_suffers_is_a_miss() -> None:
    tables = _tables(figure9.FIGURE, _latency(500, 350), lambda scheduler: 4.0 if scheduler == PRIORITY else 5.0)
    assert _verdicts(figure9.FIGURE, tables) == {"W1": Verdict.REPRODUCED, "W2": Verdict.MISSED}


def test_nothing_is_judged_before_it_is_measured() -> None:
    assert set(_verdicts(figure9.FIGURE, Tables(EMPTY, EMPTY, EMPTY, EMPTY)).values()) == {Verdict.NOT_MEASURED}


def test_the_finding_of_figure_10_tells_how_far_the_latencies_themselves_are() -> None:
    tables = _tables(figure10.FIGURE, _latency(46_000, 10_000))
    claim = figure10.FIGURE.claims[0]
    assert "2.00 and 2.00 times the paper's" in judge(claim, "infocom2011-10", tables).judgement.finding


@pytest.mark.parametrize("figure", [figure9.FIGURE, figure10.FIGURE])
def test_every_setting_has_its_row_and_the_bars_are_drawn(figure: Figure) -> None:
    tables = _tables(figure, _latency(23_000, 5_000))
    [settings] = [listing.make(tables) for listing in figure.listings]
    assert settings["setting"].tolist() == list(dict.fromkeys(str(p.labels["variant"]) for p in figure.sweep.points))
    assert [drawing.draw(tables) for drawing in figure.drawings]


@pytest.mark.parametrize(
    ("change", "interval", "same"), [(4.9, 5.9, True), (-4.9, 5.9, True), (5.1, 5.9, False), (0.0, 10.1, False)]
)
def test_a_throughput_is_the_same_when_its_change_is_small_and_known(
    change: float, interval: float, same: bool
) -> None:
    assert talks.is_same(Mean(change, interval, 10)) is same
