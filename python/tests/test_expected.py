"""Files of expected verdicts: what they have to say, and how rows differ from them."""

from pathlib import Path

import pytest

from tresse import expected
from tresse.claims import Claim, Finding, Judgement, Row, Verdict
from tresse.expected import Expected, ExpectedError
from tresse.reproduction import all_rows
from tresse.tables import Tables

IDS = ["P1", "G12"]
GOOD = """
[P1]
verdict = "better"

[G12]
verdict = "missed"
reason = "half of the runs stall"
"""


def load(tmp_path: Path, text: str) -> dict[str, Expected]:
    file = tmp_path / "expected.toml"
    file.write_text(text, encoding="utf-8")
    return expected.load(file, IDS)


def row(name: str, *verdicts: Verdict) -> Row:
    def judge(_: Tables) -> Judgement:
        raise AssertionError("is judged already")

    claim = Claim(name, "", "", "", judge)
    return Row(name, tuple(Finding(claim, "figure", Judgement(verdict, "")) for verdict in verdicts))


def test_each_row_has_its_verdict_and_a_miss_its_reason(tmp_path: Path) -> None:
    found = load(tmp_path, GOOD)
    assert found == {"P1": Expected(Verdict.BETTER), "G12": Expected(Verdict.MISSED, "half of the runs stall")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[P1]\nverdict = 'better'\n", "no verdict for G12"),
        (GOOD + "[X1]\nverdict = 'better'\n", "there is no row X1"),
        (GOOD.replace("better", "splendid"), "P1: the verdict is one of better, reproduced, weaker, missed"),
        (GOOD.replace("better", "not measured"), "P1: the verdict is one of"),
        (GOOD.replace("better", "weaker"), "P1: weaker needs a reason"),
        (GOOD.replace("half of the runs stall", " "), "G12: missed needs a reason"),
        (GOOD.replace('"half of the runs stall"', "12"), "G12: the reason is a text"),
        (GOOD.replace("reason", "because"), "G12: unknown key because"),
        ("P1 = 'better'\n[G12]\nverdict = 'better'\n", "P1: is not a table"),
        ("[P1", "expected.toml: "),
    ],
)
def test_a_file_that_says_something_else_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExpectedError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("wanted", [Verdict.BETTER, Verdict.REPRODUCED, Verdict.WEAKER, Verdict.MISSED])
def test_a_verdict_differs_in_either_direction(verdict: Verdict, wanted: Verdict) -> None:
    found = expected.differences([row("P1", verdict)], {"P1": Expected(wanted)})
    assert found == ([] if verdict is wanted else [f"P1: {verdict}, expected {wanted}"])


def test_it_is_the_row_that_is_compared_and_not_its_parts() -> None:
    both = row("G12", Verdict.REPRODUCED, Verdict.MISSED)
    assert expected.differences([both], {"G12": Expected(Verdict.MISSED)}) == []


def test_the_file_of_the_repository_has_every_row() -> None:
    file = Path(__file__).parents[1] / "expected.toml"
    assert len(expected.load(file, [row.id for row in all_rows([])])) == 46
