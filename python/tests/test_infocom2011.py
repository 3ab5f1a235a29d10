"""The judges of the INFOCOM 2011 workshop paper on outcomes made up to reach each verdict."""

import tomllib
from collections.abc import Callable

import pandas as pd
import pytest

from tresse import _native, scenarios
from tresse.claims import Verdict, judge
from tresse.figures.figure import Figure
from tresse.figures.infocom2011 import figure9, figure10, talks
from tresse.figures.infocom2011.talks import FCFS, PRIORITY, STANDARD
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
        (figure9.FIGURE, 500, 450, Verdict.WEAKER),
        (figure9.FIGURE, 500, 500, Verdict.MISSED),
        (figure9.FIGURE, 500, 600, Verdict.MISSED),
        (figure9.FIGURE, 500, 200, Verdict.MISSED),
        (figure10.FIGURE, 23_000, 5_000, Verdict.REPRODUCED),
        (figure10.FIGURE, 23_000, 9_000, Verdict.WEAKER),
        (figure10.FIGURE, 23_000, 2_000, Verdict.MISSED),
        # The share is as published, and the latencies are not.
        (figure10.FIGURE, 42_000, 8_500, Verdict.WEAKER),
        (figure10.FIGURE, 14_000, 3_100, Verdict.WEAKER),
        (figure10.FIGURE, 29_000, 8_000, Verdict.WEAKER),
        (figure10.FIGURE, 29_000, 6_300, Verdict.REPRODUCED),
    ],
)
def test_priority_has_to_shorten_the_latency_as_published(
    figure: Figure, fcfs: float, priority: float, verdict: Verdict
) -> None:
    verdicts = _verdicts(figure, _tables(figure, _latency(fcfs, priority)))
    assert list(verdicts.values()) == [verdict, Verdict.REPRODUCED]


def test_seeds_that_only_one_scheduler_has_do_not_count() -> None:
    whole = _tables(figure9.FIGURE, _latency(500, 350))
    left = ~((whole.streams["scheduler"] == PRIORITY) & (whole.streams["seed"] == 3))
    part = Tables(whole.runs, whole.streams[left], EMPTY, EMPTY)
    assert _verdicts(figure9.FIGURE, part)["W1"] is Verdict.REPRODUCED
    none = Tables(whole.runs, whole.streams[whole.streams["scheduler"] == FCFS], EMPTY, EMPTY)
    assert _verdicts(figure9.FIGURE, none)["W1"] is Verdict.NOT_MEASURED


@pytest.mark.parametrize(("figure", "fcfs", "priority"), [(figure9.FIGURE, 500, 350), (figure10.FIGURE, 23_000, 5_000)])
def test_a_latency_that_chance_may_have_made_is_weaker(figure: Figure, fcfs: float, priority: float) -> None:
    tables = _tables(figure, _latency(fcfs, priority))
    streams = tables.streams.copy()
    one = (streams["variant"] == STANDARD) & (streams["scheduler"] == PRIORITY)
    for seed, factor in ((1, 1.3), (3, 0.7)):
        streams.loc[one & (streams["seed"] == seed), "delay_mean_ms"] *= factor
    found = _verdicts(figure, Tables(tables.runs, streams, EMPTY, EMPTY))
    assert next(iter(found.values())) is Verdict.WEAKER


@pytest.mark.parametrize("column", ["throughput_mbps", talks.TCP])
@pytest.mark.parametrize("figure", [figure9.FIGURE, figure10.FIGURE])
@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.9, Verdict.MISSED), (1.1, Verdict.MISSED), (1.04, Verdict.REPRODUCED)]
)
def test_each_flow_has_to_keep_its_throughput(column: str, figure: Figure, factor: float, verdict: Verdict) -> None:
    fcfs, priority = (500, 350) if figure is figure9.FIGURE else (23_000, 5_000)
    tables = _tables(figure, _latency(fcfs, priority))
    one = (tables.runs["variant"] == STANDARD) & (tables.runs["scheduler"] == PRIORITY)
    runs = tables.runs.copy()
    runs.loc[one, column] *= factor
    latency, throughput = _verdicts(figure, Tables(runs, tables.streams, EMPTY, EMPTY)).values()
    assert (latency, throughput) == (Verdict.REPRODUCED, verdict)
    for seed, by_chance in ((1, 1.2), (3, 0.8)):
        runs.loc[one & (runs["seed"] == seed), column] *= by_chance
    unsure = Verdict.WEAKER if verdict is Verdict.REPRODUCED else Verdict.MISSED
    assert list(_verdicts(figure, Tables(runs, tables.streams, EMPTY, EMPTY)).values())[1] is unsure


@pytest.mark.parametrize("figure", [figure9.FIGURE, figure10.FIGURE])
def test_the_send_buffer_of_the_scenario_is_among_those_of_w1(figure: Figure) -> None:
    resolved = tomllib.loads(_native.resolve(scenarios.read(figure.sweep.scenario), {}))
    assert resolved["transport"]["send_buffer"] in (f"{talks.STANDARD_KIB}KiB", f"{talks.STANDARD_KIB * 1024}B")


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (
            (80, 93, 112),
            "20 to 40 % with send buffers from 80 to 112 KiB, of those from 32 to 256; the paper names none",
        ),
        ((64, 93), "20 to 40 % with send buffers from 64 to 93 KiB, but not of 80, of those from 32 to 256"),
        ((), "20 to 40 % with no send buffer of those from 32 to 256 KiB"),
    ],
)
def test_w1_says_which_send_buffers_give_the_share(inside: tuple[int, ...], text: str) -> None:
    names = [STANDARD if kib == 93 else f"send buffer {kib} KiB" for kib in inside]

    def latency(variant: str, scheduler: str) -> float:
        return 500.0 if scheduler == FCFS or variant not in names else 350.0

    [found, _] = (judge(claim, "figure", _tables(figure9.FIGURE, latency)) for claim in figure9.FIGURE.claims)
    assert text in found.judgement.finding


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


def test_a_caption_speaks_of_what_the_text_states_only_where_it_is_drawn() -> None:
    captions = [figure.drawings[0].caption for figure in (figure9.FIGURE, figure10.FIGURE)]
    assert ["dashed" in caption for caption in captions] == [False, True]
