"""Outcomes on disk, one small file for each finished task, so that no task is run twice.

A file appears under its final name only when it is complete, so an interrupted reproduction continues where it stopped.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tresse.sweep import Task


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path`: replace an existing file in one step, or leave it unchanged."""
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
        """Return the outcome of `task`, or None if there is none or only a damaged one."""
        try:
            document = json.loads(self._path(task).read_bytes())
            outcome = document["outcome"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return outcome if isinstance(outcome, dict) else None

    def keep(self, task: Task, outcome: dict[str, Any]) -> None:
        """Store the outcome of `task`, together with the task's description for readers of the file."""
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
