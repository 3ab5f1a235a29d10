"""Expected verdicts of a complete run: read from a file, and compared with the verdicts of a run.

The file has a table for each row, with its `verdict`; a row that is missed or weaker also has its `reason`.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tresse.claims import Row, Verdict

NEED_REASON = (Verdict.WEAKER, Verdict.MISSED)
"""Verdicts that need a reason in the file."""
_VERDICTS = {verdict.value: verdict for verdict in Verdict if verdict is not Verdict.NOT_MEASURED}


class ExpectedError(ValueError):
    """A file of expected verdicts has missing, unknown or invalid entries."""


@dataclass(frozen=True)
class Expected:
    """Expected verdict of a row, with its reason."""

    verdict: Verdict
    reason: str = ""


def load(path: Path, ids: Iterable[str]) -> dict[str, Expected]:
    """Return the expected verdict of each row in `ids`.

    Raises `ExpectedError` if the file lacks one of these rows, has others, or lacks a reason.
    """
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
    """Return one line for each row whose verdict differs from the expected one, for better or worse."""
    return [
        f"{row.id}: {row.verdict.value}, expected {expected[row.id].verdict.value}"
        for row in rows
        if row.verdict is not expected[row.id].verdict
    ]
