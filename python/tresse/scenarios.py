"""The scenario files in the package, which `tresse sim` and the tests use too."""

from pathlib import Path

DIRECTORY = Path(__file__).parent / "scenarios"


def read(name: str) -> str:
    """Return the text of the scenario `name`, a path below `scenarios/` such as "pfldnet2010/two-paths.toml".

    Raises `FileNotFoundError`, which lists the existing names.
    """
    path = DIRECTORY / name
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = ", ".join(sorted(str(file.relative_to(DIRECTORY)) for file in DIRECTORY.rglob("*.toml")))
        there = f"there are {known}" if known else f"{DIRECTORY} holds none; reinstall the package"
        raise FileNotFoundError(f'scenario "{name}" not found: {there}') from None
