"""Outcomes on disk, one small file a finished task, so that nothing is ever run twice.

A file appears under its final name complete or not at all: an interrupted reproduction resumes where it was.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tresse.sweep import Task


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` under `path`, replacing what is there in one step or leaving it untouched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


class Store:
    """Outcome documents under one directory, found by the key of their task."""

    def __init__(self, directory: Path, code: str) -> None:
        self._directory = directory
        self._code = code

    def load(self, task: Task) -> dict[str, Any] | None:
        """The outcome of `task`, or None when it has none yet (or only a damaged one)."""
        try:
            document = json.loads(self._path(task).read_bytes())
            outcome = document["outcome"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return outcome if isinstance(outcome, dict) else None

    def keep(self, task: Task, outcome: dict[str, Any]) -> None:
        """Keep the outcome of `task`, with what it was made of beside it for people who look."""
        document = {
            "scenario": task.name,
            "overrides": dict(task.overrides),
            "seed": task.seed,
            "code": self._code,
            "outcome": outcome,
        }
        write_atomically(self._path(task), json.dumps(document).encode())

    def _path(self, task: Task) -> Path:
        return self._directory / f"{task.key(self._code)}.json"
