"""The lab of tresse: runs scenarios, and produces figures and verdicts on claims.

The simulator and the protocol are in the private native module `tresse._native`. This package selects the runs, stores
their outcomes, and evaluates them.
"""

from tresse._native import RunError, ScenarioError
from tresse.metrics import Mean, mean
from tresse.objects import (
    Access,
    Change,
    CoDel,
    Cross,
    GilbertElliott,
    Host,
    Link,
    Outcome,
    Path,
    Record,
    Red,
    Scenario,
    Sporadic,
    Traffic,
    Transport,
)
from tresse.schedulers import StreamScheduler
from tresse.sweep import Point, Profile, Sweep, Task, run

__all__ = [
    "Access",
    "Change",
    "CoDel",
    "Cross",
    "GilbertElliott",
    "Host",
    "Link",
    "Mean",
    "Outcome",
    "Path",
    "Point",
    "Profile",
    "Record",
    "Red",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sporadic",
    "StreamScheduler",
    "Sweep",
    "Task",
    "Traffic",
    "Transport",
    "mean",
    "run",
]
