"""Claims: published statements, judges that read verdicts off measured tables, and rows, which have one verdict each.

Judges never see how a figure was made, and a tolerance is part of the claim: it is printed with the verdict.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tresse.metrics import Mean
from tresse.tables import Tables

TOLERANCE = 0.05
"""Relative tolerance of a claim that names no other."""


class Verdict(StrEnum):
    """Verdicts on a claim, the best first."""

    BETTER = "better"
    """The paper's own aim is met with less buffer, less delay or more throughput at the same point."""
    REPRODUCED = "reproduced"
    """It is as stated, within the tolerance, at every point named, and separated from its opposite by intervals."""
    WEAKER = "weaker"
    """The effect has the right sign, but is smaller than stated, or not separated by intervals, or at some points."""
    MISSED = "missed"
    """None of these."""
    NOT_MEASURED = "not measured"
    """A point that the claim needs has no run."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of what has several parts."""
    order = list(Verdict)
    return max(verdicts, key=order.index)


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
    """A statement of a paper, or a part of one, and how it is judged."""

    id: str
    """Of the row that it belongs to, such as "G12"."""
    statement: str
    paper: str
    """The paper's figure, as stated in its text."""
    tolerance: str
    """The rule behind the verdict."""
    judge: Callable[[Tables], Judgement]
    part: str = ""
    """Which part of the row this is, where it has several."""


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
    """All parts of what one id states."""

    id: str
    parts: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of its parts."""
        return worst(part.judgement.verdict for part in self.parts)

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {"id": self.id, "verdict": self.verdict.value, "parts": [part.document() for part in self.parts]}


PAPERS = "PGWRB"
"""First letters of ids, in the order of rows: the four papers, then what goes beyond them."""


def rows(findings: Iterable[Finding]) -> list[Row]:
    """One row for each id, in order, with its parts in the order of `findings`."""
    parts: dict[str, list[Finding]] = {}
    for finding in findings:
        parts.setdefault(finding.claim.id, []).append(finding)
    ids = sorted(parts, key=lambda name: (PAPERS.index(name[0]), int(name[1:])))
    return [Row(name, tuple(parts[name])) for name in ids]


def verdict_counts(found: Iterable[Row]) -> list[tuple[Verdict, int]]:
    """Count of each verdict; verdicts not given are left out."""
    verdicts = [row.verdict for row in found]
    return [(verdict, verdicts.count(verdict)) for verdict in Verdict if verdict in verdicts]


class NotMeasured(Exception):  # noqa: N818 - not an error: a judge has nothing to judge yet
    """A point that the claim needs has no run."""


def judge(claim: Claim, figure: str, tables: Tables) -> Finding:
    """Judge one claim; a point without a run makes it "not measured", never "missed"."""
    try:
        return Finding(claim, figure, claim.judge(tables))
    except NotMeasured as missing:
        return Finding(claim, figure, Judgement(Verdict.NOT_MEASURED, str(missing)))
