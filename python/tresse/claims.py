"""What a claim is: a published statement, and a judge that reads its verdict off measured tables.

Judges never see how a figure was made, and a tolerance is part of the claim: it is printed with the verdict.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tresse.metrics import Mean
from tresse.tables import Tables

TOLERANCE = 0.05
"""Relative tolerance of a claim that names no other."""


class Verdict(StrEnum):
    """What the measurement says about a claim."""

    REPRODUCED = "reproduced"
    BETTER = "better"
    MISSED = "missed"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Measure:
    """One number behind a verdict."""

    what: str
    value: Mean
    unit: str
    digits: int = 2

    def text(self) -> str:
        """Print as "at 64 KiB: 19.20 ± 0.01 Mbit/s (n = 24)"."""
        return f"{self.what}: {self.value.text(self.unit, self.digits)}"


@dataclass(frozen=True)
class Judgement:
    """A verdict, the finding in one sentence, and the numbers behind it."""

    verdict: Verdict
    finding: str
    measures: tuple[Measure, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A statement of a paper and how it is judged."""

    id: str
    statement: str
    paper: str
    """The paper's figure, as stated in its text."""
    tolerance: str
    """The rule that separates reproduced from missed."""
    judge: Callable[[Tables], Judgement]


@dataclass(frozen=True)
class Finding:
    """A claim with its judgement, as reports show it."""

    claim: Claim
    figure: str
    judgement: Judgement

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        measures: list[Mapping[str, Any]] = [
            {
                "what": measure.what,
                "mean": measure.value.value,
                "half_width_95": None if measure.value.n == 1 else measure.value.half_width,
                "n": measure.value.n,
                "unit": measure.unit,
            }
            for measure in self.judgement.measures
        ]
        return {
            "id": self.claim.id,
            "figure": self.figure,
            "statement": self.claim.statement,
            "paper": self.claim.paper,
            "tolerance": self.claim.tolerance,
            "verdict": self.judgement.verdict.value,
            "finding": self.judgement.finding,
            "measures": measures,
        }


class NotMeasured(Exception):  # noqa: N818 - not an error: a judge has nothing to judge yet
    """A point that the claim needs has no run."""


def judge(claim: Claim, figure: str, tables: Tables) -> Finding:
    """Judge one claim; a point without a run makes it "not measured", never "missed"."""
    try:
        return Finding(claim, figure, claim.judge(tables))
    except NotMeasured as missing:
        return Finding(claim, figure, Judgement(Verdict.NOT_MEASURED, str(missing)))
