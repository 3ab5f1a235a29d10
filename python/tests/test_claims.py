"""Rows of claims: which there are, and the verdict of those that have several parts."""

from itertools import groupby

import pytest

from tresse.claims import Claim, Finding, Judgement, Verdict, rows, verdict_counts, worst
from tresse.figures import FIGURES
from tresse.tables import Tables

CLAIMS = [claim for figure in FIGURES for claim in figure.claims]
ROWS = {"P": 14, "G": 14, "W": 4, "R": 8, "B": 6}
"""How many rows each paper has, in their order."""


def finding(name: str, part: str, verdict: Verdict) -> Finding:
    def judge(_: Tables) -> Judgement:
        raise AssertionError("is judged already")

    return Finding(Claim(name, "", "", "", judge, part), "figure", Judgement(verdict, ""))


def test_there_are_46_rows_in_the_order_of_the_papers() -> None:
    found = rows(finding(claim.id, claim.part, Verdict.REPRODUCED) for claim in CLAIMS)
    assert [row.id for row in found] == [f"{paper}{number}" for paper in ROWS for number in range(1, ROWS[paper] + 1)]
    assert len(found) == 46


def test_rows_of_other_letters_follow_those_of_the_papers() -> None:
    found = rows(finding(name, "", Verdict.MISSED) for name in ("M10", "A1", "M2", "B1", "P3"))
    assert [row.id for row in found] == ["P3", "B1", "A1", "M2", "M10"]


@pytest.mark.parametrize("name", ["", "M", "1", "m1", "M1a", "M-1", "my claim"])
def test_an_id_that_is_no_letter_and_number_is_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match=f'claim id "{name}": an id is a capital letter and a number, such as "M1"'):
        finding(name, "", Verdict.MISSED)


def test_parts_of_a_row_have_names_of_their_own() -> None:
    for name, parts in groupby(sorted(CLAIMS, key=lambda claim: claim.id), key=lambda claim: claim.id):
        names = [part.part for part in parts]
        assert len(set(names)) == len(names), name
        assert all(names) or len(names) == 1, name


@pytest.mark.parametrize("better", list(Verdict))
def test_a_row_has_the_worst_verdict_of_its_parts(better: Verdict) -> None:
    order = [Verdict.BETTER, Verdict.REPRODUCED, Verdict.WEAKER, Verdict.MISSED, Verdict.NOT_MEASURED]
    for other in order:
        [row] = rows([finding("G12", "CMT", better), finding("G12", "CMT/RP", other)])
        assert row.verdict == order[max(order.index(better), order.index(other))]
        assert [part["verdict"] for part in row.document()["parts"]] == [better, other]
    assert worst([better]) == better


def test_a_row_counts_once() -> None:
    found = rows([finding("G12", part, Verdict.MISSED) for part in ("CMT", "CMT/RP")])
    assert verdict_counts([*found, *rows([finding("P1", "", Verdict.WEAKER)])]) == [
        (Verdict.WEAKER, 1),
        (Verdict.MISSED, 1),
    ]
