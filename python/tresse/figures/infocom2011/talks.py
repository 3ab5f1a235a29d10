"""Common setup of the figures: two people who chat while one sends a photo to the other (section III).

Each figure has one bottleneck and the same two schedulers. The paper does not state the buffers and the amount of web
traffic; every figure lists the latency for other values of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.figure
import pandas as pd

from tresse.claims import TOLERANCE, Claim, Judgement, Measure, NotMeasured
from tresse.evidence import Evidence, alike, at_least, at_most, everywhere, gain, graded, higher, near
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.metrics import Mean, mean
from tresse.plots.theme import BLUE, INK, ORANGE, new_figure, style
from tresse.sweep import Point, Profile, Sweep
from tresse.tables import Tables

SOURCE = (
    "Y. Wang, I. Rhee, S. Ha: Augment SCTP Multi-Streaming with Pluggable Scheduling. IEEE INFOCOM 2011 workshops, "
    "pages 810-815"
)
FCFS, PRIORITY = "first come, first served", "priority"
SCHEDULERS = {
    FCFS: ("first_come", "", ORANGE),
    PRIORITY: ("priority", "0=1,1=2", BLUE),
}
"""Name and configuration of each scheduler, and its colour; stream 0 carries the messages."""

STANDARD = "standard"
STANDARD_KIB = 93
"""Send buffer of the scenarios in KiB."""
SEND_BUFFERS_KIB = (32, 48, 64, 80, STANDARD_KIB, 112, 128, 160, 192, 256)
"""Send buffers to compare: the paper does not state its own, and the latency depends on it."""
MESSAGES = 0
"""The stream that carries the messages."""
WEB_PAIRS = (1, 2, 3, 4)
TCP = "cross_0_mbps"
"""Column with the throughput of the long-lived flow."""


@dataclass(frozen=True)
class Bottleneck:
    """The bottleneck of one figure, and the paper's numbers for it."""

    scenario: str
    """Path below `scenarios/`."""
    users: int
    """Users of each pair with web-like traffic in the scenario."""
    runs: Mapping[str, int]
    """Runs for each point by profile, of 600 s each as in the paper, which has 10; a run takes a second at most."""
    latency_unit: tuple[str, float]
    """Unit of latencies in texts, and the number of milliseconds in it."""
    published_ms: Mapping[str, float]
    """Latencies that the paper's text states, by scheduler."""
    reduction: tuple[float, float]
    """Least and largest share by which priority shortens the latency according to the paper."""


def _with_buffer(kib: int) -> str:
    """Return the name of the variant with this send buffer."""
    return STANDARD if kib == STANDARD_KIB else f"send buffer {kib} KiB"


def _variants(bottleneck: Bottleneck) -> dict[str, dict[str, str]]:
    def users(count: int) -> dict[str, str]:
        return {f"cross.{pair}.users": str(count) for pair in WEB_PAIRS}

    return {
        STANDARD: {},
        **{
            _with_buffer(size): {"transport.send_buffer": f"{size}KiB"}
            for size in SEND_BUFFERS_KIB
            if size != STANDARD_KIB
        },
        "receive buffer 1 MiB": {"transport.receive_buffer": "1MiB"},
        "no web traffic": {f"cross.{pair}.start": "900h" for pair in WEB_PAIRS},
        "three times the web traffic": users(3 * bottleneck.users),
    }


def sweep(bottleneck: Bottleneck) -> Sweep:
    """Return the sweep of both schedulers with the standard settings and with the others."""
    points = [
        Point(
            {"variant": variant, "scheduler": scheduler},
            {
                **overrides,
                "transport.stream_scheduler": name,
                "transport.stream_scheduler_config": config,
            },
        )
        for variant, overrides in _variants(bottleneck).items()
        for scheduler, (name, config, _) in SCHEDULERS.items()
    ]
    profiles = {name: Profile(name, runs, {}) for name, runs in bottleneck.runs.items()}
    return Sweep(bottleneck.scenario, points=tuple(points), profiles=profiles)


def _by_seed(table: pd.DataFrame, column: str, variant: str, scheduler: str) -> pd.Series:
    """Return a column of the runs of one point, by seed."""
    if table.empty:
        raise NotMeasured("nothing was measured")
    found = table[(table["variant"] == variant) & (table["scheduler"] == scheduler)]
    values = found.set_index("seed")[column].sort_index()
    if values.empty or values.isna().any():
        raise NotMeasured(f"{column} is not measured with {scheduler}, {variant}")
    return values


def latency(tables: Tables, scheduler: str, variant: str = STANDARD) -> pd.Series:
    """Return the mean latency of the messages in each run, in milliseconds."""
    streams = tables.streams
    messages = streams if streams.empty else streams[streams["stream"] == MESSAGES]
    return _by_seed(messages, "delay_mean_ms", variant, scheduler)


def reduction(tables: Tables, variant: str = STANDARD) -> Mean:
    """Return the share by which priority shortens the latency; runs of the same seed are compared."""
    shortened = (1 - latency(tables, PRIORITY, variant) / latency(tables, FCFS, variant)).dropna()
    if shortened.empty:
        raise NotMeasured(f"no seed was measured with both schedulers, {variant}")
    return mean(shortened)


def _throughput(tables: Tables, column: str, scheduler: str, variant: str = STANDARD) -> pd.Series:
    return _by_seed(tables.runs, column, variant, scheduler)


FLOWS = {"throughput_mbps": "SCTP", TCP: "long-lived TCP"}
"""Columns with throughputs, and the flow of each."""


def _draw(tables: Tables, bottleneck: Bottleneck) -> matplotlib.figure.Figure:
    figure, axes = new_figure(8.6, 3.6, 1, 2, share_y="none")
    unit, divisor = bottleneck.latency_unit
    left, right = axes[0]
    with style():
        for offset, (scheduler, (_, _, colour)) in zip((-0.2, 0.2), SCHEDULERS.items(), strict=True):
            for position, column in enumerate(FLOWS):
                value = mean(_throughput(tables, column, scheduler))
                left.bar(
                    position + offset,
                    value.value,
                    0.36,
                    yerr=value.half_width,
                    color=colour,
                    ecolor=INK,
                    capsize=3,
                    label=scheduler if position == 0 else None,
                )
            wait = mean(latency(tables, scheduler))
            place = 0 if scheduler == FCFS else 1
            right.bar(
                place,
                wait.value / divisor,
                0.5,
                yerr=wait.half_width / divisor,
                color=colour,
                ecolor=INK,
                capsize=3,
            )
            if scheduler in bottleneck.published_ms:
                published = bottleneck.published_ms[scheduler] / divisor
                right.hlines(published, place - 0.3, place + 0.3, color=INK, linestyle="--")
                right.text(
                    place + 0.32, published, f"paper:\n~{published:g} {unit}", va="center", color=INK, fontsize=9
                )
        left.set_title("throughput")
        left.set(ylabel="Mbit/s", ylim=(0, None))
        right.set_title("mean latency of the messages")
        right.set(ylabel=unit, ylim=(0, None), xlim=(-0.5, 1.7))
        for ax in (left, right):
            ax.set_xticks((0, 1))
            ax.grid(visible=False, axis="x")
        left.set_xticklabels(list(FLOWS.values()))
        right.tick_params(axis="x", labelbottom=False)
        left.legend(loc="upper left")
    return figure


def _listing(tables: Tables, bottleneck: Bottleneck) -> pd.DataFrame:
    unit, divisor = bottleneck.latency_unit
    rows = []
    for variant in _variants(bottleneck):
        waits = {scheduler: mean(latency(tables, scheduler, variant) / divisor) for scheduler in SCHEDULERS}
        share = reduction(tables, variant)
        flows = {
            f"{flow}, Mbit/s": " / ".join(
                f"{mean(_throughput(tables, column, scheduler, variant)).value:.3f}" for scheduler in SCHEDULERS
            )
            for column, flow in FLOWS.items()
        }
        rows.append(
            {
                "setting": variant,
                **{scheduler: f"{wait.value:.2f} {unit}" for scheduler, wait in waits.items()},
                "shorter by": f"{100 * share.value:.0f} ± {100 * share.half_width:.0f} %",
                **flows,
            }
        )
    return pd.DataFrame(rows)


def _judge_latency(tables: Tables, bottleneck: Bottleneck) -> Judgement:
    unit, divisor = bottleneck.latency_unit
    share = reduction(tables)
    least, most = bottleneck.reduction
    waits = {scheduler: mean(latency(tables, scheduler)) for scheduler in SCHEDULERS}
    shown = {scheduler: mean(latency(tables, scheduler) / divisor) for scheduler in SCHEDULERS}
    measures = tuple(Measure(scheduler, wait, unit, 2) for scheduler, wait in shown.items())
    finding = f"{100 * share.value:.0f} ± {100 * share.half_width:.0f} % shorter by priority"
    published = bottleneck.published_ms
    if published:
        factors = [waits[scheduler].value / published[scheduler] for scheduler in SCHEDULERS]
        finding += f"; the latencies themselves are {factors[0]:.2f} and {factors[1]:.2f} times the paper's"
    finding += f"; {_buffers_text(tables, bottleneck)}"
    stated = [min(at_least(share, least), at_most(share, most))]
    stated += [near(waits[scheduler], wait, AS_PUBLISHED) for scheduler, wait in published.items()]
    return Judgement(graded(everywhere(stated), everywhere([_shorter(share, least, most)])), finding, measures)


def _buffers_text(tables: Tables, bottleneck: Bottleneck) -> str:
    """Describe which of the measured send buffers give the stated share."""
    least, most = bottleneck.reduction
    shares = {kib: reduction(tables, _with_buffer(kib)).value for kib in SEND_BUFFERS_KIB}
    inside = [kib for kib, share in shares.items() if least <= share <= most]
    measured = f"of those from {SEND_BUFFERS_KIB[0]} to {SEND_BUFFERS_KIB[-1]}"
    stated = f"{100 * least:.0f} to {100 * most:.0f} %"
    if not inside:
        return f"{stated} with no send buffer {measured} KiB"
    gaps = [kib for kib in SEND_BUFFERS_KIB if inside[0] < kib < inside[-1] and kib not in inside]
    but = f", but not of {', '.join(map(str, gaps))}" if gaps else ""
    return f"{stated} with send buffers from {inside[0]} to {inside[-1]} KiB{but}, {measured}; the paper names none"


def _shorter(share: Mean, least: float, most: float) -> Evidence:
    """Judge whether priority shortens the latency as much as stated, or less; more counts as another effect."""
    return min(higher(share, least), at_most(share, most))


AS_PUBLISHED = 0.30
"""Relative tolerance of latencies that the text states."""


def _judge_throughput(tables: Tables) -> Judgement:
    texts, measures, found = [], [], []
    for column, flow in FLOWS.items():
        fcfs, priority = (_throughput(tables, column, scheduler) for scheduler in SCHEDULERS)
        change = gain(priority, fcfs)
        found.append(alike(change))
        texts.append(f"{flow} {100 * change.value:+.1f} ± {100 * change.half_width:.1f} %")
        measures += [
            Measure(f"{flow}, {scheduler}", mean(values), "Mbit/s", 3)
            for scheduler, values in ((FCFS, fcfs), (PRIORITY, priority))
        ]
    finding = "by priority instead of first come, first served: " + ", ".join(texts)
    return Judgement(everywhere(found), finding, tuple(measures))


def figure(
    number: int, title: str, bottleneck: Bottleneck, latency_claim: tuple[str, str, str], throughput_claim: str
) -> Figure:
    """Return the figure of one bottleneck; `latency_claim` is an id, the paper's claim, and its numbers."""
    claim, text, paper = latency_claim
    least, most = (f"{100 * share:.0f}" for share in bottleneck.reduction)
    stated = "; dashed: what the paper's text states" if bottleneck.published_ms else ""
    times = f"; both latencies within {100 * AS_PUBLISHED:.0f} % of the paper's" if bottleneck.published_ms else ""
    return Figure(
        name=f"infocom2011-{number}",
        title=title,
        source=SOURCE,
        sweep=sweep(bottleneck),
        drawings=(
            Drawing(
                "bars",
                "Throughput of the association and of the long-lived TCP flow, and mean latency of the messages, under "
                f"both schedulers. Upright: 95 % intervals{stated}.",
                lambda tables: _draw(tables, bottleneck),
            ),
        ),
        listings=(
            Listing(
                "settings",
                "What the paper does not say: the same with other buffers and other web traffic. Throughputs: first "
                "come, first served / priority",
                lambda tables: _listing(tables, bottleneck),
            ),
        ),
        claims=(
            Claim(
                claim,
                text,
                paper,
                f"mean of the ratios, seed by seed, from {least} to {most} % with the whole interval{times}; weaker: "
                f"less than {least} %{'' if not times else ', or other latencies'}",
                lambda tables: _judge_latency(tables, bottleneck),
            ),
            Claim(
                throughput_claim,
                "The throughput of the SCTP flow and of the long-lived TCP flow is the same under both schedulers.",
                "the same",
                f"for each flow, the change seed by seed is within ±{100 * TOLERANCE:.0f} % with the whole interval",
                _judge_throughput,
            ),
        ),
    )
