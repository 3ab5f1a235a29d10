"""Typed objects for the input and the output of simulations."""

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
