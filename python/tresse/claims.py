"""Claims: statements of papers; judges, which derive verdicts from measured tables; rows, which have one verdict each.

Judges get only the tables of a figure. A tolerance is part of the claim and is printed with the verdict.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tresse.metrics import Mean
from tresse.tables import Tables

TOLERANCE = 0.05
"""Relative tolerance of claims that state no other."""


class Verdict(StrEnum):
    """Verdicts on a claim, from best to worst."""

    BETTER = "better"
    """The aim of the paper is met with less buffer, less delay or more throughput at the same point."""
    REPRODUCED = "reproduced"
    """The result is as stated, within the tolerance, at every point named, and intervals separate it from its opposite.
    """
    WEAKER = "weaker"
    """The effect has the right sign, but is smaller than stated, or not separated by intervals, or only at some points.
    """
    MISSED = "missed"
    """None of the verdicts above holds."""
    NOT_MEASURED = "not measured"
    """A point that the claim needs has no run."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of a row with several parts: the worst of `verdicts`."""
    order = list(Verdict)
    return max(verdicts, key=order.index)


@dataclass(frozen=True)
class Measure:
    """A measured number on which a verdict is based."""

    what: str
    value: Mean
    unit: str
    digits: int = 2

    def text(self) -> str:
        """Print as "at 64 KiB: 19.20 ± 0.01 Mbit/s (n = 24)"."""
        return f"{self.what}: {self.value.text(self.unit, self.digits)}"


@dataclass(frozen=True)
class Judgement:
    """A verdict, the finding in one sentence, and the measured numbers."""

    verdict: Verdict
    finding: str
    measures: tuple[Measure, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, or a part of one, with its judge."""

    id: str
    """Id of the row of the claim, such as "G12"."""
    statement: str
    paper: str
    """The number in the paper, as its text states it."""
    tolerance: str
    """Rule for the verdict."""
    judge: Callable[[Tables], Judgement]
    part: str = ""
    """Name of the part, if the row has several."""

    def __post_init__(self) -> None:
        if not re.fullmatch("[A-Z][0-9]+", self.id, re.ASCII):
            raise ValueError(f'claim id "{self.id}": an id is a capital letter and a number, such as "M1"')


@dataclass(frozen=True)
class Finding:
    """A claim with its judgement, for reports."""

    claim: Claim
    figure: str
    judgement: Judgement

    def document(self) -> dict[str, Any]:
        """Return the finding as an object for JSON."""
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
            "part": self.claim.part,
            "figure": self.figure,
            "statement": self.claim.statement,
            "paper": self.claim.paper,
            "tolerance": self.claim.tolerance,
            "verdict": self.judgement.verdict.value,
            "finding": self.judgement.finding,
            "measures": measures,
        }


@dataclass(frozen=True)
class Row:
    """All claims with the same id."""

    id: str
    parts: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the parts."""
        return worst(part.judgement.verdict for part in self.parts)

    def document(self) -> dict[str, Any]:
        """Return the row as an object for JSON."""
        return {"id": self.id, "verdict": self.verdict.value, "parts": [part.document() for part in self.parts]}


PAPERS = "PGWRB"
"""First letters of ids, in the order of rows: those of the four papers, then of further claims.

Rows with other letters, those of figures of a user's own, follow in alphabetical order.
"""


def rows(findings: Iterable[Finding]) -> list[Row]:
    """Return one row for each id, in order, with its parts in the order of `findings`."""
    parts: dict[str, list[Finding]] = {}
    for finding in findings:
        parts.setdefault(finding.claim.id, []).append(finding)
    ids = sorted(parts, key=lambda name: (name[0] not in PAPERS, PAPERS.find(name[0]), name[0], int(name[1:])))
    return [Row(name, tuple(parts[name])) for name in ids]


def verdict_counts(found: Iterable[Row]) -> list[tuple[Verdict, int]]:
    """Return the count of each verdict; verdicts without a row are left out."""
    verdicts = [row.verdict for row in found]
    return [(verdict, verdicts.count(verdict)) for verdict in Verdict if verdict in verdicts]


class NotMeasured(Exception):  # noqa: N818 - not an error: a judge has nothing to judge yet
    """The judge needs a point that has no run."""


def judge(claim: Claim, figure: str, tables: Tables) -> Finding:
    """Judge a claim. If a point has no run, the verdict is "not measured", never "missed"."""
    try:
        return Finding(claim, figure, claim.judge(tables))
    except NotMeasured as missing:
        return Finding(claim, figure, Judgement(Verdict.NOT_MEASURED, str(missing)))
