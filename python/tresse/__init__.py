"""The lab of tresse: scenarios in, figures and verdicts out.

The simulator and the protocol live in the private native module `tresse._native`; this package decides
what to run, keeps what was measured, and says what it means.
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
