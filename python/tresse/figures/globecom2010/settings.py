"""Settings that the paper leaves unsaid and on which a verdict depends: the same judges, under each of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from tresse.claims import Judgement
from tresse.figures import unsaid
from tresse.figures.figure import Listing
from tresse.figures.globecom2010.mechanisms import (
    HASTY,
    HASTY_SPLIT,
    MOVED,
    MOVED_REPORTS,
    MOVED_REPORTS_SPLIT,
    MOVED_SPLIT,
    NR,
    NR_SPLIT,
    PLAIN,
    PLAIN_SPLIT,
    SACK,
    SACK_SPLIT,
    Variant,
)
from tresse.figures.globecom2010.paths import DELAY, ERRORS, RATE, Panel
from tresse.tables import Tables

Judge = Callable[[Tables], Judgement]


@dataclass(frozen=True)
class Setting:
    """Settings of the scenario besides those of a curve."""

    name: str
    overrides: Mapping[str, str]

    def of(self, variant: Variant) -> Variant:
        """The curve with these settings as well."""
        return replace(variant, name=f"{variant.name}{self._mark}", overrides={**variant.overrides, **self.overrides})

    def view(self, tables: Tables) -> Tables:
        """The runs with these settings, named as the judges know the curves."""
        names = tables.runs["variant"].astype(str)
        runs = tables.runs[names.str.endswith(self._mark)]
        return replace(tables, runs=runs.assign(variant=runs["variant"].str.removesuffix(self._mark)))

    @property
    def _mark(self) -> str:
        return f" [{self.name}]"


@dataclass(frozen=True)
class Question:
    """A claim under one setting, with the points that its judge looks at."""

    claim: str
    setting: Setting
    panel: Panel
    variants: tuple[Variant, ...]
    values: tuple[float, ...]

    def points(self) -> Iterator[tuple[float, Variant]]:
        """What is to be measured."""
        for variant in self.variants:
            for value in self.values:
                yield value, self.setting.of(variant)


# Both are the paper's times: what halves a window over 100 ms is seldom, and takes a minute to heal.
_PRIMARY_FIRST = Setting(
    "primary path first, SACKs in turn, settle 19 s, measure 60 s",
    {
        "transport.path_scheduler": "in_order",
        "transport.sack_path": "round_robin",
        "settle": "19s",
        "measure": "60s",
    },
)
_LONGER_LINKS = Setting(
    "primary path first, 0.3 ms more each way",
    {"transport.path_scheduler": "in_order", "path.0.delay": "1.3ms", "path.1.delay": "1.3ms"},
)
_LOSS_CUT = Setting("old path pays as for a loss", {"transport.moved_chunk_cut": "loss"})
_SPARED = Setting("bit errors in user data only", {"path.1.bit_errors_spare": "48B"})

_AT_LONGEST = DELAY.values[-1:]
UNORDERED = (Question("G9", _PRIMARY_FIRST, DELAY, (SACK, SACK_SPLIT, NR, NR_SPLIT, HASTY, HASTY_SPLIT), _AT_LONGEST),)
"""Of figure 5."""
POOLED = (Question("G10", _LONGER_LINKS, RATE, (SACK, SACK_SPLIT, NR, NR_SPLIT), (100,)),)
"""Of figure 6."""
_SLOWEST = tuple(rate for rate in RATE.values if rate <= 1)
ORDERED = (
    Question("G12", _LOSS_CUT, RATE, (PLAIN, PLAIN_SPLIT, MOVED, MOVED_SPLIT), _SLOWEST),
    Question("G13", _SPARED, ERRORS, (MOVED_REPORTS, MOVED_REPORTS_SPLIT, MOVED_SPLIT), ERRORS.values),
)
"""Of figures 7 and 8."""


def listing(questions: tuple[Question, ...], judges: Mapping[str, Judge]) -> Listing:
    """The table for the report: the verdict of the figure, then that under the other setting."""

    def table(tables: Tables) -> pd.DataFrame:
        rows: list[dict[str, str]] = []
        for question in questions:
            views = {unsaid.AS_IN_FIGURE: tables, question.setting.name: question.setting.view(tables)}
            rows += unsaid.verdicts(question.claim, judges[question.claim], views)
        return pd.DataFrame(rows)

    return Listing("settings", unsaid.CAPTION, table)
