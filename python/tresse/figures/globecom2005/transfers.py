"""What the figures share: files of 8 MB over two lossy paths, and how long they take (section II).

The paper's figure with the bandwidths is lost; 10 Mbit/s is what its authors use elsewhere. How far the claims
depend on that is shown with figure 4.
"""

from collections.abc import Mapping

import pandas as pd

from tresse.claims import NotMeasured
from tresse.metrics import Mean, mean
from tresse.plots.theme import BLUE, GREEN, ORANGE, PURPLE, SKY
from tresse.sweep import Label, Point
from tresse.tables import Tables

SOURCE = (
    "J. R. Iyengar, P. D. Amer, R. Stewart: Receive Buffer Blocking in Concurrent Multipath Transfer. "
    "IEEE GLOBECOM 2005"
)
TWO_PATHS = "globecom2005/two-paths.toml"

RUNS = {"quick": 30, "paper": 100}
"""Runs a point: the paper has at least 100."""

VOLUME_MBIT = 8 * 2**20 * 8 / 1e6

SAME, ASAP, CWND, SSTHRESH, LOSS_RATE = "same", "asap", "cwnd", "ssthresh", "loss_rate"
POLICIES = {SAME: ORANGE, ASAP: PURPLE, CWND: SKY, SSTHRESH: BLUE, LOSS_RATE: GREEN}
"""Retransmission policies with their colours."""
LOSS_BASED = (CWND, SSTHRESH, LOSS_RATE)

LOSSES_PERCENT = tuple(range(1, 11))
"""Loss rates of the worse path."""


def policy_text(policy: str) -> str:
    """Print as "RTX-LOSSRATE"."""
    return f"RTX-{policy.replace('_', '').upper()}"


def policy_overrides(policy: str) -> dict[str, str]:
    """The settings of a retransmission policy: it holds for everything that is sent again."""
    return {"transport.fast_retransmit_path": policy, "transport.timeout_retransmit_path": policy}


def loss_overrides(percent: int) -> dict[str, str]:
    """The loss rate of the worse path, both ways."""
    return {"path.1.loss": f"{percent}%"}


def point(labels: Mapping[str, Label], *overrides: Mapping[str, str]) -> Point:
    """A point that runs until its file is delivered, whatever the profile measures."""
    merged: dict[str, str] = {"measure": "3600s"}
    for part in overrides:
        merged.update(part)
    return Point(labels, merged)


def rows(tables: Tables, **labels: Label) -> pd.DataFrame:
    """The runs of one point; raises `NotMeasured` when there are none."""
    found = tables.where(**labels).runs
    if found.empty:
        text = ", ".join(f"{name} {value}" for name, value in labels.items())
        raise NotMeasured(f"no run with {text}")
    return found


def mean_of(tables: Tables, column: str, **labels: Label) -> Mean:
    """Mean of a column at one point; raises `NotMeasured` when a transfer did not end."""
    values = rows(tables, **labels)[column]
    if values.isna().any():
        raise NotMeasured(f"a transfer did not end within its run at {labels}")
    return mean(values)
