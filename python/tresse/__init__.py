"""The lab of tresse: scenarios in, figures and verdicts out.

The simulator and the protocol live in the private native module `tresse._native`; this package decides
what to run, keeps what was measured, and says what it means.
"""

from tresse._native import RunError, ScenarioError
from tresse.metrics import Mean, mean
from tresse.schedulers import StreamScheduler
from tresse.sweep import Point, Profile, Sweep, Task, run

__all__ = ["Mean", "Point", "Profile", "RunError", "ScenarioError", "StreamScheduler", "Sweep", "Task", "mean", "run"]
