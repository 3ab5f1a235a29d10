"""Path changes during a transfer: the time until the adaptive map uses the new capacity, and the claim B5.

Each point is one kind of change and one window of time after it; each window has its own runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.figure
import pandas as pd

from tresse.claims import Claim, Judgement, Measure, NotMeasured
from tresse.evidence import Evidence, at_least, everywhere
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010.variants import PACKET_BYTES, PAYLOAD_SHARE
from tresse.metrics import Mean, mean, summarise
from tresse.plots.theme import FAINT, GREEN, new_figure, style
from tresse.sweep import Point, Profile, Sweep
from tresse.tables import Tables

SOURCE = "The project's own (docs/adaptive.md)"
SCENARIO = "adaptive/changing.toml"
CHANGE_S = 8.0
"""Time at which the path changes in the scenario."""
DETECTION_S = 0.3
"""Time to detect one failure: the smallest retransmission timeout (`rto_min`) of the preset."""
NEEDED = 0.95
WINDOW_S = 0.5
OFFSETS_S = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)


@dataclass(frozen=True)
class Event:
    """A change: its overrides, and the paths after it as (rate in Mbit/s, delay in ms)."""

    name: str
    overrides: Mapping[str, str]
    after: tuple[tuple[float, float], ...]

    @property
    def possible_mbps(self) -> float:
        """User data that the paths can carry after the change, in Mbit/s."""
        return sum(rate for rate, _ in self.after) * PAYLOAD_SHARE

    @property
    def back_s(self) -> float:
        """Three round trips of the slowest remaining path and the detection of one failure, in seconds."""
        slowest = max(2 * delay + PACKET_BYTES * 8 / (rate * 1000) for rate, delay in self.after)
        return round(3 * slowest / 1000 + DETECTION_S, 3)


_A = (10.0, 10.0)
EVENTS = (
    Event("B dies", {"path.1.change.0.outage": "true"}, (_A,)),
    Event("A dies, B 50 ms", {"path.0.change.0.outage": "true", "path.1.delay": "50ms"}, ((10.0, 50.0),)),
    Event("B slows to 2 Mbit/s", {"path.1.change.0.rate": "2Mbit/s"}, (_A, (2.0, 10.0))),
    Event("B grows to 75 ms", {"path.1.change.0.delay": "75ms"}, (_A, (10.0, 75.0))),
    Event("A grows to 75 ms", {"path.0.change.0.delay": "75ms"}, ((10.0, 75.0), _A)),
    Event("B joins", {"path.1.joins": f"{CHANGE_S:.0f}s"}, (_A, _A)),
)


def _point(event: Event, offset: float) -> Point:
    return Point(
        labels={"event": event.name, "offset_s": offset},
        overrides={
            **event.overrides,
            "settle": f"{round(1000 * (CHANGE_S + offset))}ms",
            "measure": f"{round(1000 * WINDOW_S)}ms",
        },
    )


SWEEP = Sweep(
    SCENARIO,
    points=tuple(_point(event, offset) for event in EVENTS for offset in (*OFFSETS_S, event.back_s)),
    profiles={name: Profile(name, runs=runs, overrides={}) for name, runs in (("quick", 4), ("paper", 24))},
)


def throughput(tables: Tables, event: Event, offset: float) -> Mean:
    """Return the mean throughput of one window, in Mbit/s; raise `NotMeasured` if there is no run."""
    rows = tables.runs
    rows = rows[(rows["event"] == event.name) & (rows["offset_s"] == offset)]
    if rows.empty:
        raise NotMeasured(f"no run of {event.name}, {offset} s")
    return mean(rows["throughput_mbps"])


def carried(tables: Tables, event: Event, offset: float) -> Mean:
    """Return the same for the data acknowledged on the paths, whether deliverable or not."""
    rows = tables.paths
    rows = rows[(rows["event"] == event.name) & (rows["offset_s"] == offset)]
    if rows.empty:
        raise NotMeasured(f"no run of {event.name}, {offset} s")
    return mean(rows.groupby("seed")["throughput_mbps"].sum())


def _judge(tables: Tables) -> Judgement:
    measures, evidence, slow = [], [], []
    for event in EVENTS:
        when = f"{event.name}, {event.back_s} s later, of {event.possible_mbps:.2f}"
        for how, measured in (("delivered", throughput), ("carried", carried)):
            found = measured(tables, event, event.back_s)
            measures.append(Measure(f"{when}, {how}", found, "Mbit/s"))
            evidence.append(at_least(found, NEEDED * event.possible_mbps))
            if evidence[-1] is not Evidence.SHOWN:
                slow.append(f"{event.name} ({100 * found.value / event.possible_mbps:.0f} % {how})")
    finding = f"not yet back, or not surely: {', '.join(slow)}" if slow else "back after every change"
    return Judgement(everywhere(evidence), finding, tuple(measures))


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, axes = new_figure(9.4, 6.0, rows=2, columns=3, share_y="all")
    with style():
        for ax, event in zip([ax for row in axes for ax in row], EVENTS, strict=True):
            rows = tables.runs[tables.runs["event"] == event.name]
            found = summarise(rows, ["offset_s"], "throughput_mbps").sort_values("offset_s")
            ax.errorbar(
                found["offset_s"] + WINDOW_S / 2,
                found["mean"],
                yerr=found["half_width"].fillna(0),
                color=GREEN,
                marker="o",
                markersize=3.5,
                capsize=2,
            )
            ax.axhline(event.possible_mbps, color=FAINT, linestyle=":")
            ax.axvline(event.back_s, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
            ax.set(title=event.name, xlabel="time after the change [s]", ylabel="user data [Mbit/s]")
            ax.set_ylim(bottom=0)
    return figure


def _throughputs(tables: Tables) -> pd.DataFrame:
    return summarise(tables.runs, ["event", "offset_s"], "throughput_mbps")


FIGURE = Figure(
    name="adaptive-5",
    title="Paths that change in mid-transfer",
    source=SOURCE,
    sweep=SWEEP,
    drawings=(
        Drawing(
            "windows",
            f"Throughput of user data in windows of {WINDOW_S} s around a change; two paths of 10 Mbit/s and 10 ms "
            "before, two saturated ordered streams, both buffers 256 KiB. Dotted: what the paths carry after it; "
            "upright: three round trips of the slowest path that is left and one failure detection later. What waited "
            "for a lost chunk comes out at once, so a window may exceed what the paths carry.",
            _draw,
        ),
    ),
    listings=(Listing("summary", "Throughput in Mbit/s, mean and 95 % half-width", _throughputs),),
    claims=(
        Claim(
            "B5",
            "When a path dies, slows down, grows longer or joins in mid-transfer, throughput is soon back at what is "
            "then possible, and no message is lost.",
            "3 RTT of the surviving paths + one failure detection",
            f"{100 * NEEDED:.0f} % with the whole interval in the window that begins then, of what is delivered and of "
            "what the paths carry, as what waited for a hole comes out at once when that is filled; the slowest round "
            "trip, 0.3 s for the detection; the simulator fails a run that loses or doubles a message",
            _judge,
        ),
    ),
)
