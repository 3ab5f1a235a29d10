"""Common setup of the figures: files of 8 MB over two lossy paths, and their transfer times (section II).

The figure that states the bandwidths is not in our text of the paper; its authors use 10 Mbit/s elsewhere. Claims are
judged at that rate, and each figure also shows the verdicts at others.
"""

from collections.abc import Callable, Mapping

import pandas as pd

from tresse.claims import Judgement, NotMeasured
from tresse.evidence import Runs, by_seed
from tresse.metrics import Mean, mean
from tresse.plots.theme import BLUE, GREEN, ORANGE, PURPLE, SKY
from tresse.sweep import Label, Point, Profile
from tresse.tables import Tables

SOURCE = (
    "J. R. Iyengar, P. D. Amer, R. Stewart: Receive Buffer Blocking in Concurrent Multipath Transfer. "
    "IEEE GLOBECOM 2005"
)
TWO_PATHS = "globecom2005/two-paths.toml"

_TO_THE_END = {"measure": "3600s"}
PROFILES = {"quick": Profile("quick", 30, _TO_THE_END), "paper": Profile("paper", 100, _TO_THE_END)}
"""Profiles: a run ends when its file is delivered; the paper has at least 100 runs for each point."""

PACKET_BYTES, PAYLOAD_BYTES = 1500, 1452
VOLUME_MBIT = 8 * 2**20 * 8 / 1e6

SAME, ASAP, CWND, SSTHRESH, LOSS_RATE = "same", "asap", "cwnd", "ssthresh", "loss_rate"
POLICIES = {SAME: ORANGE, ASAP: PURPLE, CWND: SKY, SSTHRESH: BLUE, LOSS_RATE: GREEN}
"""Retransmission policies with their colours."""
LOSS_BASED = (CWND, SSTHRESH, LOSS_RATE)

LOSSES_PERCENT = tuple(range(1, 11))
"""Loss rates of the worse path."""

RATE_MBPS = 10
"""Rate of both paths, unless stated otherwise."""
OTHER_RATES_MBPS = (2, 100)
"""Other rates: one that limits throughput before the loss does, and one that never limits it."""


def policy_text(policy: str) -> str:
    """Print as "RTX-LOSSRATE"."""
    return f"RTX-{policy.replace('_', '').upper()}"


def policy_overrides(policy: str) -> dict[str, str]:
    """Return the settings of a retransmission policy: it applies to all retransmissions."""
    return {"transport.fast_retransmit_path": policy, "transport.timeout_retransmit_path": policy}


def loss_overrides(percent: int) -> dict[str, str]:
    """Return the override for the loss rate of the worse path in both directions."""
    return {"path.1.loss": f"{percent}%"}


def point(labels: Mapping[str, Label], *overrides: Mapping[str, str], rate_mbps: int = RATE_MBPS) -> Point:
    """Return a point whose paths have this rate."""
    rate = f"{rate_mbps}Mbit/s"
    merged = {"path.0.rate": rate, "path.1.rate": rate}
    for part in overrides:
        merged.update(part)
    return Point({**labels, "rate_mbps": rate_mbps}, merged)


Judge = Callable[[Tables], Judgement]


def usual(tables: Tables) -> Tables:
    """Return the runs at the rate of the figures and claims."""
    return tables.where(rate_mbps=RATE_MBPS)


def at_usual_rate(judge: Judge) -> Judge:
    """Return a judge for tables that contain other rates too."""
    return lambda tables: judge(usual(tables))


def verdicts_by_rate(
    judges: Mapping[str, Judge], elsewhere: Mapping[str, Judge] | None = None
) -> Callable[[Tables], pd.DataFrame]:
    """Return a table of the verdicts of the same judges at each rate; `elsewhere` has those for fewer points."""
    at_others = elsewhere or judges

    def table(tables: Tables) -> pd.DataFrame:
        rows = []
        for claim in judges:
            for rate in sorted((RATE_MBPS, *OTHER_RATES_MBPS)):
                judge = (judges if rate == RATE_MBPS else at_others)[claim]
                judgement = judge(tables.where(rate_mbps=rate))
                rows.append(
                    {"claim": claim, "rate_mbps": rate, "verdict": judgement.verdict, "finding": judgement.finding}
                )
        return pd.DataFrame(rows)

    return table


def rows(tables: Tables, **labels: Label) -> pd.DataFrame:
    """Return the runs of one point; raise `NotMeasured` if there are none."""
    found = tables.where(**labels).runs
    if found.empty:
        text = ", ".join(f"{name} {value}" for name, value in labels.items())
        raise NotMeasured(f"no run with {text}")
    return found


def runs_of(tables: Tables, column: str, **labels: Label) -> Runs:
    """Return a column of the runs of one point, by seed; raise `NotMeasured` if a transfer did not end."""
    return by_seed(rows(tables, **labels), column, ", ".join(f"{name} {value}" for name, value in labels.items()))


def mean_of(tables: Tables, column: str, **labels: Label) -> Mean:
    """Return the mean of a column at one point; raise `NotMeasured` if a transfer did not end."""
    values = rows(tables, **labels)[column]
    if values.isna().any():
        raise NotMeasured(f"a transfer did not end within its run at {labels}")
    return mean(values)
