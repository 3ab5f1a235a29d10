"""Every scheduler with every map: what is measured, and what is made of it."""

import pandas as pd
import pytest

from tresse.figures.adaptive import combinations
from tresse.figures.adaptive.combinations import FIGURES, PATH_SCHEDULERS, STREAM_SCHEDULERS, THREE_PATHS, TWO_PATHS
from tresse.figures.figure import Figure
from tresse.tables import Tables

NOTHING = pd.DataFrame()


def made_up(figure: Figure) -> Tables:
    """A stack that carries 90 % of the bound with the adaptive map, half with any other, and waits for 100 or 50 ms."""
    setups = {setup.name: setup for setup in (*TWO_PATHS, *THREE_PATHS)}
    runs, streams = [], []
    for point in figure.sweep.points:
        adaptive = str(point.labels["variant"]).endswith("adaptive")
        bound = setups[str(point.labels["setup"])].bound_mbps(float(point.labels["sigma_kib"]))
        first = {**point.labels, "seed": 1}
        rate = (0.9 if adaptive else 0.5) * bound
        runs.append({**first, "throughput_mbps": rate})
        waits = {"delay_mean_ms": 50.0 if adaptive else 100.0}
        streams += [{**first, "stream": stream, "throughput_mbps": rate / 2, **waits} for stream in range(2)]
    return Tables(pd.DataFrame(runs), pd.DataFrame(streams), NOTHING, NOTHING)


def test_every_scheduler_meets_every_map_in_every_setup() -> None:
    points = [point.labels for figure in FIGURES[:2] for point in figure.sweep.points]
    assert len({(labels["setup"], labels["variant"]) for labels in points}) == 6 * 3 * len(PATH_SCHEDULERS.lines)
    points = [point.labels for figure in FIGURES[2:] for point in figure.sweep.points]
    assert len({(labels["setup"], labels["variant"]) for labels in points}) == 6 * 3 * len(STREAM_SCHEDULERS.lines)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_drawing_and_listing_can_be_made(figure: Figure) -> None:
    tables = made_up(figure)
    for drawing in figure.drawings:
        assert drawing.draw(tables).axes
    for listing in figure.listings:
        assert not listing.make(tables).empty


def test_the_ranking_counts_all_points_alike() -> None:
    found = combinations.ranking(made_up(FIGURES[1]), THREE_PATHS).set_index("variant")
    best, other = found.loc["blest, adaptive"], found.loc["blest, any"]
    assert list(found.index[:1].str.endswith("adaptive")) == [True]
    assert best.round(3).to_dict() == {
        "mean_share_of_bound": 0.9,
        "least_share_of_bound": 0.9,
        "mean_delay_over_shortest": 1.0,
    }
    assert (round(other["mean_share_of_bound"], 3), round(other["mean_delay_over_shortest"], 3)) == (0.5, 2.0)
