"""Fixtures of several tests: a temporary store, and a stack that answers at once."""

from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic

from tresse import _native
from tresse.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs", "this-code")


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Callable[[synthetic.Model], None]:
    """Puts a made-up stack in the place of the native one."""

    def install(model: synthetic.Model) -> None:
        monkeypatch.setattr(_native, "run", synthetic.run_of(model))

    return install
