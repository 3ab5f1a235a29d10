"""Outcomes on disk."""

from pathlib import Path

import pytest

from tresse.store import Store, write_atomically
from tresse.sweep import Task

TASK = Task("text", (), 1)


def test_what_was_kept_is_found_again(store: Store) -> None:
    assert store.load(TASK) is None
    store.keep(TASK, {"throughput_mbps": 19.2})
    assert store.load(TASK) == {"throughput_mbps": 19.2}


def test_other_code_finds_nothing(tmp_path: Path) -> None:
    Store(tmp_path, "this-code").keep(TASK, {})
    assert Store(tmp_path, "other-code").load(TASK) is None


@pytest.mark.parametrize("damage", [b"", b'{"outc', b"[]", b"{}", b'{"outcome": 3}', b"\xff\xfe"])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, damage: bytes) -> None:
    store = Store(tmp_path, "this-code")
    store.keep(TASK, {"throughput_mbps": 19.2})
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(damage)
    assert store.load(TASK) is None


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "table.csv"
    write_atomically(target, b"old")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
