"""Goodput of the core beside that of an older commit, as a ratio: above 1 it has become faster.

Builds the benchmark `goodput` here and in a work tree of the commit, below `target/against`, and lets the two take
turns, so that the ratios survive a noisy machine. What counts is the fastest run of each row.

The C library is told to keep freed memory. Else it gives the benchmark's packet buffers back to the system in every
round, or does not, as chance places them on the heap: where one message fills the buffers that is more than a third of
the time, and says nothing of the core.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
BENCH = ("bench", "--locked", "--package", "tresse-proto", "--bench", "goodput")
ROW = re.compile(
    r"\s*(?P<message>\d+) B\s+tresse\s+(?P<buffers>\d+) KiB\s+[\d.]+ \([\d.]+ to (?P<fastest>[\d.]+)\) Gbit/s"
)

# Bytes of a message, KiB of the buffers.
Row = tuple[int, int]

# For both sides alike; other C libraries than glibc do not look at it.
KEEP_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1073741824"}


def rates(output: str) -> Iterator[tuple[Row, float]]:
    """The rows of our own stack with the goodput of their fastest turn in Gbit/s.

    >>> list(rates("   64 B  tresse       64 KiB      3.65 (3.56 to 3.67) Gbit/s     7119812 /s   6.29"))
    [((64, 64), 3.67)]
    """
    for row in map(ROW.match, output.splitlines()):
        if row:
            yield (int(row["message"]), int(row["buffers"])), float(row["fastest"])


def run(*command: str | Path, at: Path = ROOT) -> str:
    """Runs a command in the tree `at`; its standard output. Ends the program if the command fails."""
    # Two trees of one workspace must not share what they build: the same package of both would go by one name.
    own = {} if at == ROOT else {"CARGO_TARGET_DIR": str(at / "target")}
    env = os.environ | KEEP_MEMORY | own
    done = subprocess.run(command, cwd=at, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench-against: `{' '.join(map(str, command))}` failed in {at}")
    return done.stdout


def built(at: Path) -> Path:
    """The benchmark of the tree `at`, built there."""
    for line in run(CARGO, *BENCH, "--no-run", "--message-format=json-render-diagnostics", at=at).splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "goodput":
            return Path(message["executable"])
    sys.exit(f"bench-against: {at} has no benchmark `goodput`")


def tree_of(commit: str) -> Path:
    """A work tree of the commit."""
    number = run("git", "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").strip()
    tree = ROOT / "target" / "against" / number
    if not tree.exists():
        run("git", "worktree", "prune")
        run("git", "worktree", "add", "--detach", tree, number)
    return tree


def main() -> None:
    """Builds, measures, prints."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("commit", help="what to compare with")
    arguments.add_argument("--runs", type=int, default=3, help="turns of each side (default: %(default)s)")
    chosen = arguments.parse_args()
    then, now = built(tree_of(chosen.commit)), built(ROOT)
    fastest: dict[Path, dict[Row, float]] = {then: {}, now: {}}
    for _ in range(max(1, chosen.runs)):
        for side, best in fastest.items():
            for row, rate in rates(run(side, "--bench")):
                best[row] = max(rate, best.get(row, 0.0))
    print(f"{'message':>8} {'buffers':>9} {chosen.commit[:12]:>14} {'here':>14} {'ratio':>6}")
    for (message, buffers), rate in fastest[now].items():
        before = fastest[then].get((message, buffers))
        if before:
            line = f"{message:>6} B {buffers:>5} KiB {before:>7.2f} Gbit/s {rate:>7.2f} Gbit/s"
            print(f"{line} {rate / before:>6.2f}")


if __name__ == "__main__":
    main()
