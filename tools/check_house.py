"""House budgets, measured: of files, functions and types, names of files, opening lines of files and of docs.

A Rust function that must be longer says so: `#[expect(clippy::too_many_lines, reason = "...")]`. Methods of a type are
counted over all files of its crate, so that a type does not become smaller by being cut into more files. A free
function whose first argument is of the type counts, too: it has the same access in another spelling. What is over
these budgets today is listed in `EXCESS`: the numbers may fall, and the list has to say so, and they may not rise.
Run from anywhere; prints each breach as FILE:LINE and exits with 1 when there is one.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FILE_LINES = 700
FUNCTION_LINES = 80
METHODS = 90
METHOD_FILES = 8
NAMESAKES = 2
NAMESAKES_OF_ALL = 3
NAMED_BY_FOLDER = {"mod.rs", "tests.rs", "main.rs", "lib.rs", "build.rs"}
# Every crate has errors, and they are always the same kind of thing.
NAMED_BY_CRATE = NAMED_BY_FOLDER | {"error.rs"}
EXCESS = {
    # Most of them are entries of a table, one or two for each socket option.
    "methods of tresse-sockets::Target": 122,
    "files of tresse-cli called args.rs": 5,
    "files of tresse-cli called client.rs": 3,
    "files of tresse-cli called message.rs": 4,
    "files of tresse-cli called server.rs": 3,
    "files of tresse-proto called invariants.rs": 4,
    "files of all crates called args.rs": 5,
    "files of all crates called invariants.rs": 4,
    "files of all crates called keys.rs": 4,
    "files of all crates called message.rs": 4,
    "files of all crates called offer.rs": 4,
    "files of all crates called settings.rs": 4,
}
BUILT = {"target", "build", "__pycache__", ".venv"}

ROOT = Path(__file__).resolve().parent.parent
RUST_FUNCTION = re.compile(
    r"^(?P<indent> *)(?:pub(?:\([a-z: ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn (?P<name>\w+)"
)
RUST_IMPL = re.compile(r"^impl(?:<.*?>)? (?P<type>\w+)(?:<.*>)?(?: where .*)? \{$")
RUST_METHOD = re.compile(r"^    (?:pub(?:\([a-z: ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn \w+")
RUST_FREE = re.compile(
    r"^(?:pub(?:\([a-z: ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn \w+(?:<.*?>)?\(\s*"
    r"(?:mut )?\w+: (?:&(?:'\w+ )?)?(?:mut )?(?:\w+::)*(?P<type>[A-Z]\w*)(?:<[^,()]*>)?[,)]",
    re.MULTILINE,
)
RUST_QUESTION = re.compile(r"^\s*/// (?:What|Whether|How|Who|Whose|Whom|Which|When|Where|Why)\b")


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
    """Return whether an attribute above the function at `start` expects it to be long, with a reason."""
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


def rust_methods(text: str) -> Counter[str]:
    r"""Number of own methods of each type in a formatted Rust file; those of traits do not count.

    >>> rust_methods("impl Ring<'_> {\n    pub(super) fn turn(&self) {}\n\n    fn stop(self) {}\n}\nfn other() {}\n")
    Counter({'Ring': 2})
    >>> rust_methods("impl Drop for Ring {\n    fn drop(&mut self) {}\n}\n")
    Counter()
    """
    methods: Counter[str] = Counter()
    owner = None
    for line in text.splitlines():
        if found := RUST_IMPL.match(line):
            owner = found["type"]
        elif line == "}":
            owner = None
        elif owner and RUST_METHOD.match(line):
            methods[owner] += 1
    return methods


def rust_free_functions(text: str) -> Counter[str]:
    r"""Number of free functions of a formatted Rust file by the type of their first parameter, borrowed or not.

    >>> rust_free_functions("fn turn(ring: &Ring<'_>) {}\npub(super) fn stop(ring: &mut ring::Ring, at: u8) {}\n")
    Counter({'Ring': 2})
    >>> rust_free_functions("fn merge<T: Ord>(\n    mut ring: Ring,\n    with: T,\n) {\n}\n")
    Counter({'Ring': 1})
    >>> rust_free_functions("fn all(rings: &[Ring]) {}\nfn any(at: u8, ring: &Ring) {}\nfn none() {}\n")
    Counter()
    >>> rust_free_functions("impl Ring {\n    fn join(other: &Ring) {}\n}\n")
    Counter()
    """
    return Counter(found["type"] for found in RUST_FREE.finditer(text))


def measures(files: Iterable[tuple[Path, str]]) -> Iterator[tuple[str, int, int]]:
    r"""Counts over all files of a crate: name, count, and the most that is allowed.

    >>> one = (Path("crates/a/src/one.rs"), "impl Ring {\n    fn turn(&self) {}\n}\n")
    >>> two = (Path("crates/a/src/two/one.rs"), "impl Ring {\n    fn stop(&self) {}\n}\n")
    >>> [(what, count) for what, count, _ in measures([one, two]) if "all crates" not in what]
    [('methods of a::Ring', 2), ('files with methods of a::Ring', 2), ('files of a called one.rs', 2)]
    >>> three = (Path("crates/b/src/one.rs"), "")
    >>> [(what, count) for what, count, _ in measures([one, two, three]) if "all crates" in what]
    [('files of all crates called one.rs', 3)]
    >>> free = (Path("crates/a/src/free.rs"), "fn halt(ring: &mut Ring) {}\nfn list(of: &Rope) {}\n")
    >>> [(what, count) for what, count, _ in measures([one, free]) if what.startswith("methods")]
    [('methods of a::Ring', 2)]
    """
    methods: Counter[str] = Counter()
    free: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    names: Counter[tuple[str, str]] = Counter()
    for path, text in files:
        if path.suffix != ".rs" or path.parts[0] != "crates" or path.parts[2] != "src":
            continue
        crate = path.parts[1]
        if path.name == "tests.rs" or "tests" in path.parts:
            continue
        names[crate, path.name] += path.name not in NAMED_BY_FOLDER
        for owner, count in rust_methods(text).items():
            methods[f"{crate}::{owner}"] += count
            spread[f"{crate}::{owner}"] += 1
        for owner, count in rust_free_functions(text).items():
            free[f"{crate}::{owner}"] += count
    for owner, count in methods.items():
        yield f"methods of {owner}", count + free[owner], METHODS
        yield f"files with methods of {owner}", spread[owner], METHOD_FILES
    for (crate, name), count in names.items():
        yield f"files of {crate} called {name}", count, NAMESAKES
    everywhere: Counter[str] = Counter()
    for (_, name), count in names.items():
        everywhere[name] += 0 if name in NAMED_BY_CRATE else count
    for name, count in everywhere.items():
        yield f"files of all crates called {name}", count, NAMESAKES_OF_ALL


def excesses(counted: Iterable[tuple[str, int, int]], known: Mapping[str, int]) -> Iterator[str]:
    """Counts that are over their budget by more than `known` says, and entries of `known` that are too high.

    >>> list(excesses([("methods of a::B", 12, 10)], {}))
    ['12 methods of a::B, at most 10']
    >>> list(excesses([("methods of a::B", 12, 10)], {"methods of a::B": 12}))
    []
    >>> list(excesses([("methods of a::B", 13, 10)], {"methods of a::B": 12}))
    ['13 methods of a::B, at most 12']
    >>> list(excesses([("methods of a::B", 11, 10)], {"methods of a::B": 12}))
    ['11 methods of a::B, fewer than 12: let EXCESS in tools/check_house.py say so']
    """
    left = dict(known)
    for what, count, budget in counted:
        most = max(budget, left.pop(what, budget))
        if count > most:
            yield f"{count} {what}, at most {most}"
        elif most > max(count, budget):
            yield f"{count} {what}, fewer than {most}: let EXCESS in tools/check_house.py say so"
    yield from (
        f"no {what}, fewer than {most}: let EXCESS in tools/check_house.py say so" for what, most in left.items()
    )


def says_what_it_is_for(path: Path, text: str) -> bool:
    """Return whether a file opens with its purpose; Rust's unit tests are described by the file beside them.

    >>> says_what_it_is_for(Path("src/paths.rs"), "//! Paths.")
    True
    >>> says_what_it_is_for(Path("src/paths.rs"), "use crate::time;")
    False
    """
    if path.suffix == ".rs":
        return path.name == "tests.rs" or text.startswith("//!")
    return not text.strip() or ast.get_docstring(ast.parse(text)) is not None


def questions(text: str) -> Iterator[int]:
    r"""Lines at which the doc of an item begins with a question word.

    >>> list(questions("/// What it holds.\nlet a;\n/// The rest.\n/// When full, it is sent.\nlet b;"))
    [1]
    """
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if RUST_QUESTION.match(line) and not before.lstrip().startswith("///"):
            yield number
        before = line


def breaches(path: Path, text: str) -> Iterator[str]:
    r"""Breaches of the rules in one file, one line each.

    >>> list(breaches(Path("a.py"), "'''A.'''\n" + "x = 1\n" * 700))
    ['a.py:1: 701 lines, at most 700: look for the noun hiding in it']
    """
    length = len(text.splitlines())
    if length > FILE_LINES:
        yield f"{path}:1: {length} lines, at most {FILE_LINES}: look for the noun hiding in it"
    if not says_what_it_is_for(path, text):
        yield f"{path}:1: does not open by saying what it is for"
    if path.suffix == ".rs" and path.parts[0] == "crates" and "src" in path.parts:
        for number in questions(text):
            yield f"{path}:{number}: begins with a question word: say what it is, or what it does (CONTRIBUTING.md)"
    functions = rust_functions(text) if path.suffix == ".rs" else python_functions(text)
    for function in functions:
        if function.length > FUNCTION_LINES and not function.excused:
            yield f"{path}:{function.line}: `{function.name}` has {function.length} lines, at most {FUNCTION_LINES}"


def sources() -> list[Path]:
    """Rust and Python files of the repository, without what was built."""
    files = [file for top in ("benches", "crates", "examples", "python", "tools") for file in (ROOT / top).rglob("*")]
    kept = [file.relative_to(ROOT) for file in files if file.suffix in (".rs", ".py")]
    return sorted(path for path in kept if not BUILT.intersection(path.parts))


def main() -> int:
    """Checks every source file, and each crate; 1 when one is over budget."""
    files = [(path, (ROOT / path).read_text("utf-8")) for path in sources()]
    found = [breach for path, text in files for breach in breaches(path, text)]
    found.extend(excesses(measures(files), EXCESS))
    print("\n".join(found) if found else f"house: {len(files)} source files within their budgets")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
