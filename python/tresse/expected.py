"""Verdicts that a complete run is expected to give: read from a file, and compared with what a run gave.

The file has a table for each row, with its `verdict`; a row that is missed or weaker also has its `reason`.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tresse.claims import Row, Verdict

NEED_REASON = (Verdict.WEAKER, Verdict.MISSED)
"""Verdicts that stand with their reason only."""
_VERDICTS = {verdict.value: verdict for verdict in Verdict if verdict is not Verdict.NOT_MEASURED}


class ExpectedError(ValueError):
    """A file of expected verdicts that says less, more or something else than it has to."""


@dataclass(frozen=True)
class Expected:
    """Expected verdict of a row."""

    verdict: Verdict
    reason: str = ""


def load(path: Path, ids: Iterable[str]) -> dict[str, Expected]:
    """The expected verdict of each row in `ids`; raises `ExpectedError` when the file has others, or lacks a reason."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ExpectedError(f"{path}: {error}") from None
    known = list(ids)
    if missing := [name for name in known if name not in document]:
        raise ExpectedError(f"{path}: no verdict for {', '.join(missing)}")
    if unknown := [name for name in document if name not in known]:
        raise ExpectedError(f"{path}: there is no row {', '.join(unknown)}")
    return {name: _expected(document[name], f"{path}: {name}") for name in known}


def _expected(entry: object, where: str) -> Expected:
    if not isinstance(entry, Mapping):
        raise ExpectedError(f"{where}: is not a table with a verdict")
    if unknown := [key for key in entry if key not in ("verdict", "reason")]:
        raise ExpectedError(f"{where}: unknown key {', '.join(unknown)}; there are verdict and reason")
    verdict = _VERDICTS.get(str(entry.get("verdict")))
    if verdict is None:
        raise ExpectedError(f"{where}: the verdict is one of {', '.join(_VERDICTS)}")
    reason = entry.get("reason", "")
    if not isinstance(reason, str):
        raise ExpectedError(f"{where}: the reason is a text")
    if verdict in NEED_REASON and not reason.strip():
        raise ExpectedError(f"{where}: {verdict.value} needs a reason")
    return Expected(verdict, reason)


def differences(rows: Iterable[Row], expected: Mapping[str, Expected]) -> list[str]:
    """One line for each row whose verdict is another than expected, for the worse or for the better."""
    return [
        f"{row.id}: {row.verdict.value}, expected {expected[row.id].verdict.value}"
        for row in rows
        if row.verdict is not expected[row.id].verdict
    ]
