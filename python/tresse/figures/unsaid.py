"""Verdicts under settings that a paper leaves unsaid, beside those of its figure."""

from collections.abc import Callable, Mapping

from tresse.claims import Judgement
from tresse.tables import Tables

AS_IN_FIGURE = "as in the figure"
CAPTION = "What the same judges say under settings that the paper leaves unsaid"


def verdicts(claim: str, judge: Callable[[Tables], Judgement], views: Mapping[str, Tables]) -> list[dict[str, str]]:
    """One row for each of `views`: the runs under a setting, by its name, told apart as the judge knows them."""
    found = {setting: judge(view) for setting, view in views.items()}
    return [
        {"claim": claim, "setting": setting, "verdict": judgement.verdict, "finding": judgement.finding}
        for setting, judgement in found.items()
    ]
