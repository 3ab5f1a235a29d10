"""The numbers of README.md are what its commands print."""

import re
import shlex
from pathlib import Path

import pytest

import tresse

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def _first_simulation() -> tuple[str, dict[str, str]]:
    """Scenario and settings of the first `tresse sim` of the page."""
    command = re.search(r"^target/release/tresse sim (.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert command is not None
    words = shlex.split(command[1].replace("\\\n", " "))
    settings = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
    return words[0], dict(setting.split("=", 1) for setting in settings)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "the throughput is {} Mbit/s"),
        ({"transport.stream_map": "fixed:0,1"}, "both paths are full: {} Mbit/s"),
        ({"preset": "cmt"}, "both paths are full: {} Mbit/s"),
    ],
)
def test_the_page_says_what_comes_out(changed: dict[str, str], sentence: str) -> None:
    scenario, settings = _first_simulation()
    text = (Path(__file__).parents[2] / scenario).read_text(encoding="utf-8")
    found = tresse.run(text, {**settings, **changed}, 1).throughput_mbps
    assert sentence.format(f"{found:.1f}") in " ".join(README.split())
