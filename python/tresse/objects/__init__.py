"""Typed objects for what goes into a simulation and what comes out of it."""

from tresse.objects.outcome import Outcome
from tresse.objects.scenario import (
    Access,
    Change,
    CoDel,
    Cross,
    GilbertElliott,
    Host,
    Link,
    Path,
    Record,
    Red,
    Scenario,
    Sporadic,
    Traffic,
    Transport,
)

__all__ = [
    "Access",
    "Change",
    "CoDel",
    "Cross",
    "GilbertElliott",
    "Host",
    "Link",
    "Outcome",
    "Path",
    "Record",
    "Red",
    "Scenario",
    "Sporadic",
    "Traffic",
    "Transport",
]
