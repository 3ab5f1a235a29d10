"""Figure 4: throughput over buffer size on paths of different delay, and the claims P1 to P4."""

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes

from tresse import standings
from tresse.claims import TOLERANCE, Claim, Judgement, Measure, Verdict
from tresse.evidence import Evidence, everywhere, near
from tresse.figures.figure import Drawing, Figure, Listing
from tresse.figures.pfldnet2010 import delays
from tresse.figures.pfldnet2010.delays import CURVES, FIXED, ROUND_ROBIN, Curve
from tresse.metrics import summarise
from tresse.plots.limits import LimitPanel, draw_limits
from tresse.plots.theme import FAINT, PAPER, new_figure, style
from tresse.plots.timeline import TimelinePanel, draw_timeline
from tresse.tables import Tables

STATED_MBPS = 19.2
"""The throughput that the paper's text calls full."""
STATED = ((10, None, 64), (75, FIXED, 224), (75, ROUND_ROBIN, 288))
"""Delay of path B, mapping (None: both) and sigma in KiB at which the text states full throughput."""

_SIGMA_LABEL = "send and receive buffer σ [KiB]"


def _draw(tables: Tables) -> matplotlib.figure.Figure:
    figure, [[ax]] = new_figure(8.6, 4.9)
    with style():
        _draw_bounds(ax)
        for curve in CURVES:
            points = summarise(curve.of(tables).runs, ["sigma_kib"], "throughput_mbps")
            ax.errorbar(
                points["sigma_kib"],
                points["mean"],
                yerr=points["half_width"].fillna(0),
                label=curve.text,
                color=curve.colour,
                linestyle=curve.dash,
                marker="o" if curve.mapping == FIXED else "s",
                markerfacecolor=curve.colour if curve.mapping == FIXED else PAPER,
                capsize=2,
            )
        for delay, mapping, sigma in STATED:
            colour = Curve(delay, mapping or FIXED).colour
            ax.plot(
                sigma,
                STATED_MBPS,
                marker="D",
                markersize=11,
                markerfacecolor="none",
                color=colour,
                linestyle="none",
            )
            ax.annotate(
                f"{mapping or 'both'} {sigma}",
                (sigma, STATED_MBPS),
                xytext=(0, 10),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                color=colour,
            )
        ax.axhline(delays.FULL_MBPS, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
        ax.text(
            delays.SIGMAS_KIB[-1],
            delays.FULL_MBPS - 0.15,
            "95 % of 19.36",
            ha="right",
            va="top",
            fontsize=8.5,
            color=FAINT,
        )
        ax.plot(
            [],
            [],
            linestyle="none",
            marker="D",
            markerfacecolor="none",
            color=FAINT,
            label="stated in the paper",
        )
        ax.plot([], [], linestyle=":", color=FAINT, label="bound for any schedule")
        ax.set(xlabel=_SIGMA_LABEL, ylabel="throughput of user data [Mbit/s]", ylim=(0, 21.5))
        ax.set_xticks(range(32, delays.SIGMAS_KIB[-1] + 1, 32))
        ax.set_yticks(range(0, 21, 5))
        ax.legend(loc="lower right", ncols=2)
    return figure


def _draw_bounds(ax: Axes) -> None:
    sigmas = [delays.SIGMAS_KIB[0] + step for step in range(delays.SIGMAS_KIB[-1] - delays.SIGMAS_KIB[0] + 1)]
    for delay in delays.DELAYS_B_MS:
        limits = [delays.bound_mbps(delay, sigma) for sigma in sigmas]
        ax.plot(sigmas, limits, color=Curve(delay, FIXED).colour, linestyle=":", linewidth=1.1, alpha=0.8)


def _draw_limits(tables: Tables) -> matplotlib.figure.Figure:
    panels = [LimitPanel(curve.text, curve.of(tables)) for curve in CURVES]
    return draw_limits(panels, "sigma_kib", _SIGMA_LABEL, ["path A", "path B"])


def _draw_timeline(tables: Tables) -> matplotlib.figure.Figure:
    panels = []
    for curve in (Curve(75, mapping) for mapping in delays.STREAM_MAPS):
        samples = delays.measured(curve.of(tables).samples, curve, delays.RECORDED_KIB)
        panels.append(TimelinePanel(f"{curve.text}, {delays.RECORDED_KIB} KiB", samples))
    return draw_timeline(panels, ["path A", "path B"])


def sufficient_sigmas(tables: Tables) -> pd.DataFrame:
    """Return for each curve the smallest sigma that gives full throughput: measured, in the paper, and by the bound."""
    stated = {
        Curve(delay, mapping): sigma
        for delay, one, sigma in STATED
        for mapping in ([one] if one else delays.STREAM_MAPS)
    }
    rows = []
    for curve in CURVES:
        # Fine steps: the bound is computed, not measured.
        bound = next(s for s in range(1, 1024) if delays.bound_mbps(curve.delay_b_ms, s) >= delays.FULL_MBPS)
        ours = delays.sufficient_kib(tables, curve)
        rows.append(
            {
                "curve": curve.text,
                "ours_kib": f"{ours}" if ours else f"> {delays.SIGMAS_KIB[-1]}",
                "paper_kib": f"{stated[curve]}" if curve in stated else "not stated",
                "bound_kib": f"{bound}",
            }
        )
    return pd.DataFrame(rows)


def _throughputs(tables: Tables) -> pd.DataFrame:
    return summarise(tables.runs, ["delay_b_ms", "mapping", "sigma_kib"], "throughput_mbps")


def _judge_p1(tables: Tables) -> Judgement:
    curves = [Curve(10, mapping) for mapping in delays.STREAM_MAPS]
    found = {curve: delays.throughput(tables, curve, 64) for curve in curves}
    measures = tuple(Measure(f"{curve.text}, 64 KiB", value, "Mbit/s") for curve, value in found.items())
    sufficient = [delays.sufficient_kib(tables, curve) for curve in curves]
    verdict = everywhere(near(value, STATED_MBPS) for value in found.values())
    surely = [delays.sufficient_kib(tables, curve, Evidence.SHOWN) for curve in curves]
    if verdict is Verdict.REPRODUCED and all(sigma is not None and sigma < 64 for sigma in surely):
        verdict = Verdict.BETTER
    return Judgement(verdict, _sigmas_text(curves, sufficient), measures)


def _judge_p2(tables: Tables) -> Judgement:
    curve, by_kib = Curve(75, FIXED), 224
    verdict = everywhere(delays.is_full(tables, curve, sigma) for sigma in delays.SIGMAS_KIB if sigma >= by_kib)
    surely = delays.sufficient_kib(tables, curve, Evidence.SHOWN)
    if verdict is Verdict.REPRODUCED and surely is not None and surely < by_kib:
        verdict = Verdict.BETTER
    measure = Measure(f"{curve.text}, {by_kib} KiB", delays.throughput(tables, curve, by_kib), "Mbit/s")
    return Judgement(verdict, _sigmas_text([curve], [delays.sufficient_kib(tables, curve)]), (measure,))


def _judge_p3(tables: Tables) -> Judgement:
    curve, by_kib, not_yet_kib = Curve(75, ROUND_ROBIN), 288, 224
    full = [delays.is_full(tables, curve, sigma) for sigma in delays.SIGMAS_KIB if sigma >= by_kib]
    not_yet = delays.is_short(tables, curve, not_yet_kib)
    measures = tuple(
        Measure(f"{curve.text}, {sigma} KiB", delays.throughput(tables, curve, sigma), "Mbit/s")
        for sigma in (not_yet_kib, by_kib)
    )
    text = _sigmas_text([curve], [delays.sufficient_kib(tables, curve)])
    return Judgement(everywhere([*full, not_yet]), text, measures)


def _judge_p4(tables: Tables) -> Judgement:
    curves = fixed, round_robin = [Curve(50, FIXED), Curve(50, ROUND_ROBIN)]
    sufficient = [delays.sufficient_kib(tables, curve) for curve in curves]
    shown = sufficient[0] or delays.SIGMAS_KIB[-1]
    full = [delays.is_full(tables, fixed, sigma) for sigma in delays.SIGMAS_KIB if sigma >= shown]
    measures = tuple(
        Measure(f"{curve.text}, {shown} KiB", delays.throughput(tables, curve, shown), "Mbit/s") for curve in curves
    )
    verdict = everywhere([*full, delays.is_short(tables, round_robin, shown)])
    return Judgement(verdict, _sigmas_text(curves, sufficient), measures)


def _sigmas_text(curves: list[Curve], sufficient: list[int | None]) -> str:
    parts = [
        f"{curve.text} from {sigma} KiB" if sigma else f"{curve.text} not up to {delays.SIGMAS_KIB[-1]} KiB"
        for curve, sigma in zip(curves, sufficient, strict=True)
    ]
    return f"full throughput: {'; '.join(parts)}"


_FULL_RULE = (
    f"full = {100 * delays.FULL_SHARE:.0f} % of {delays.CAPACITY_MBPS:.2f} Mbit/s, with the whole interval, here and "
    "at every larger σ"
)

FIGURE = Figure(
    name="pfldnet2010-4",
    title="Figure 4: throughput on paths of dissimilar delay",
    source=delays.SOURCE,
    sweep=delays.SWEEP,
    drawings=(
        Drawing(
            "throughput",
            "Throughput of user data over the buffer size σ; both paths 10 Mbit/s, path A 10 ms, path B 10, 50 or "
            "75 ms. Same colour: same delay; dashed: round-robin, solid: fixed mapping. Diamonds: where the paper's "
            "text states full throughput. Dotted: what no schedule exceeds with buffers of σ and acknowledgements on "
            "the path of their data.",
            _draw,
        ),
        Drawing(
            "limits",
            "What kept each path from sending, as shares of time. A buffer limits a path when it is full, or when the "
            "path has used up its share of it.",
            _draw_limits,
        ),
        Drawing(
            "timeline",
            f"One second of two runs with {delays.RECORDED_KIB} KiB: bytes in flight over each path on the colour of "
            "what limited it, and what both buffers hold.",
            _draw_timeline,
        ),
    ),
    listings=(
        Listing("default", standings.CAPTION, standings.listing(delays.against_best)),
        Listing("sufficient", "Smallest σ in KiB that gives 95 % of 19.36 Mbit/s", sufficient_sigmas),
        Listing("summary", "Throughput in Mbit/s, mean and 95 % half-width", _throughputs),
    ),
    claims=(
        Claim(
            "P1",
            "With delays of 10/10 ms and σ = 64 KiB, round-robin and fixed mapping alike give the full throughput.",
            f"~{STATED_MBPS} Mbit/s",
            f"{100 * TOLERANCE:.0f} % with the whole interval, for each mapping; better: both full below 64 KiB",
            _judge_p1,
        ),
        Claim(
            "P2",
            "With delays of 10/75 ms, fixed mapping is at full throughput by σ = 224 KiB.",
            "224 KiB",
            f"{_FULL_RULE}; better: below 224 KiB",
            _judge_p2,
        ),
        Claim(
            "P3",
            "With delays of 10/75 ms, round-robin is at full throughput by σ = 288 KiB, and is not yet at 224 KiB.",
            "288 KiB",
            f"{_FULL_RULE}; less than that at 224 KiB",
            _judge_p3,
        ),
        Claim(
            "P4",
            "With delays of 10/50 ms, fixed mapping reaches full throughput at a smaller σ than round-robin.",
            "fixed < round-robin",
            f"{_FULL_RULE}; less than that with round-robin at the same σ",
            _judge_p4,
        ),
    ),
    standings=delays.against_best,
)
