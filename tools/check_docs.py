"""Check that the links, files and tests exist that the documentation names.

Run from anywhere; prints each dangling pointer as FILE:LINE and exits with 1 when there is one.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "python/*.md")
SOURCES = (
    "crates/**/*.rs",
    "crates/**/*.toml",
    "examples/**/*.*",
    "python/**/*.py",
    "python/*.toml",
    "scenarios/**/*.toml",
    "tools/*",
)
# Made by running things, or typed as an example.
NOT_KEPT = {"SCENARIO.toml"}

LINK = re.compile(r"\]\((?!https?://|#)(?P<target>[^)#\s]+)")
QUOTED_FILE = re.compile(r"`(?P<path>[\w./-]+\.(?:rs|toml|md|py))`")
QUOTED_NAME = re.compile(r"`(?P<name>[a-z][a-z0-9_]+)`")
RUST_TEST = re.compile(r"#\[(?:tokio::)?test[^]]*\]\s*(?:#\[[^]]*\]\s*)*(?:async )?fn (\w+)")
PYTHON_TEST = re.compile(r"^def (test_\w+)", re.MULTILINE)


def dangling_links(page: Path, line: str) -> Iterator[str]:
    """Relative links of one line that lead nowhere.

    >>> list(dangling_links(ROOT / "README.md", "see [this](no/such/file.md) and [that](https://example.org)"))
    ['no link target no/such/file.md']
    """
    for link in LINK.finditer(line):
        if not (page.parent / link["target"]).exists():
            yield f"no link target {link['target']}"


def unknown_files(line: str, known: set[str]) -> Iterator[str]:
    """Quoted files of one line that are not the end of any path of the repository.

    >>> list(unknown_files("`paths/rtt.rs` and `attic/x.rs`", {"crates/p/src/paths/rtt.rs"}))
    ['no file attic/x.rs']
    """
    for quoted in QUOTED_FILE.finditer(line):
        path = quoted["path"]
        if path not in NOT_KEPT and not any(f"/{file}".endswith(f"/{path}") for file in known):
            yield f"no file {path}"


def unknown_tests(line: str, tests: set[str]) -> Iterator[str]:
    """Names in the last column of a table row that are not tests; a row without one has to say why.

    >>> list(unknown_tests("| 6.2 | `a.rs` | `it_works`, `it_does_not` |", {"it_works"}))
    ['no test it_does_not']
    """
    for name in QUOTED_NAME.finditer(line.rstrip(" |").rpartition("|")[2]):
        if name["name"] not in tests:
            yield f"no test {name['name']}"


def dangling() -> Iterator[str]:
    """Everything that the pages point at and that is not there."""
    pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]
    files = [file for pattern in SOURCES for file in ROOT.glob(pattern) if file.is_file()]
    known = {str(file.relative_to(ROOT)) for file in [*files, *pages, *ROOT.glob("*.toml")]}
    rust = [file for file in files if file.suffix == ".rs"]
    tests = {name for file in rust for name in RUST_TEST.findall(file.read_text("utf-8"))}
    python = [file for file in files if file.name.startswith("test_") and file.suffix == ".py"]
    tests |= {name for file in python for name in PYTHON_TEST.findall(file.read_text("utf-8"))}
    for page in pages:
        shown = page.relative_to(ROOT)
        for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
            found = [*dangling_links(page, line), *unknown_files(line, known)]
            if shown == Path("docs/rfc.md") and line.startswith("|"):
                found += unknown_tests(line, tests)
            yield from (f"{shown}:{number}: {what}" for what in found)


def main() -> int:
    """Checks every page; 1 when a pointer dangles."""
    found = list(dangling())
    print("\n".join(found) if found else "docs: every link, file and test that is named is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
