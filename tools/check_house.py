"""House budgets, measured: file length, function length, and an opening line that says what a file is for.

A Rust function that must be longer says so: `#[expect(clippy::too_many_lines, reason = "...")]`.
Run from anywhere; prints each breach as FILE:LINE and exits with 1 when there is one.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE_LINES = 700
FUNCTION_LINES = 80
BUILT = {"target", "build", "__pycache__", ".venv"}

ROOT = Path(__file__).resolve().parent.parent
RUST_FUNCTION = re.compile(
    r"^(?P<indent> *)(?:pub(?:\([a-z: ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn (?P<name>\w+)"
)


@dataclass(frozen=True)
class Function:
    """One function: where it starts, how many lines of code it has, whether its length is argued for."""

    name: str
    line: int
    length: int
    excused: bool = False


def rust_functions(text: str) -> Iterator[Function]:
    r"""Functions of a formatted Rust file; blank lines and comments do not count.

    >>> list(rust_functions("fn one() {\n    // why\n    act();\n}\n"))
    [Function(name='one', line=1, length=3, excused=False)]
    >>> list(rust_functions("trait T {\n    fn two(&self);\n    fn three() {}\n}\n"))
    []
    """
    lines = text.splitlines()
    for start, line in enumerate(lines):
        found = RUST_FUNCTION.match(line)
        if not found:
            continue
        opening = start
        while not lines[opening].rstrip().endswith(("{", ";", "}")) and opening + 1 < len(lines):
            opening += 1
        if not lines[opening].rstrip().endswith("{"):
            continue
        closing = found["indent"] + "}"
        end = next((n for n in range(opening, len(lines)) if lines[n] == closing), len(lines) - 1)
        code = [text for text in map(str.strip, lines[start : end + 1]) if text and not text.startswith("//")]
        yield Function(found["name"], start + 1, len(code), excused=argued(lines, start))


def argued(lines: list[str], start: int) -> bool:
    """Whether an attribute above the function at `start` expects it to be long, with a reason."""
    above = "\n".join(lines[max(0, start - 6) : start])
    attributes = above.rpartition("}")[2]
    return re.search(r"expect\(\s*clippy::too_many_lines,\s*reason = ", attributes) is not None


def python_functions(text: str) -> Iterator[Function]:
    r"""Functions of a Python file, with their docstrings.

    >>> [(f.name, f.length) for f in python_functions("def f():\n    return 1\n")]
    [('f', 2)]
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)


def says_what_it_is_for(path: Path, text: str) -> bool:
    """Whether a file opens with its purpose; Rust's unit tests are described by the file beside them.

    >>> says_what_it_is_for(Path("src/paths.rs"), "//! Paths.")
    True
    >>> says_what_it_is_for(Path("src/paths.rs"), "use crate::time;")
    False
    """
    if path.suffix == ".rs":
        return path.name == "tests.rs" or text.startswith("//!")
    return not text.strip() or ast.get_docstring(ast.parse(text)) is not None


def breaches(path: Path, text: str) -> Iterator[str]:
    r"""What is wrong with one file, one line each.

    >>> list(breaches(Path("a.py"), "'''A.'''\n" + "x = 1\n" * 700))
    ['a.py:1: 701 lines, at most 700: look for the noun hiding in it']
    """
    length = len(text.splitlines())
    if length > FILE_LINES:
        yield f"{path}:1: {length} lines, at most {FILE_LINES}: look for the noun hiding in it"
    if not says_what_it_is_for(path, text):
        yield f"{path}:1: does not open by saying what it is for"
    functions = rust_functions(text) if path.suffix == ".rs" else python_functions(text)
    for function in functions:
        if function.length > FUNCTION_LINES and not function.excused:
            yield f"{path}:{function.line}: `{function.name}` has {function.length} lines, at most {FUNCTION_LINES}"


def sources() -> list[Path]:
    """Rust and Python files of the repository, without what was built."""
    files = [file for top in ("crates", "examples", "python", "tools") for file in (ROOT / top).rglob("*")]
    kept = [file.relative_to(ROOT) for file in files if file.suffix in (".rs", ".py")]
    return sorted(path for path in kept if not BUILT.intersection(path.parts))


def main() -> int:
    """Checks every source file; 1 when one is over budget."""
    files = sources()
    found = [breach for path in files for breach in breaches(path, (ROOT / path).read_text("utf-8"))]
    print("\n".join(found) if found else f"house: {len(files)} source files within their budgets")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
