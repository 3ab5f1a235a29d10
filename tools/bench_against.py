"""Speed of the core and of the simulator beside that of an older commit, as ratios: above 1 it has become faster.

Builds the benchmarks `goodput` and `packets` here and in a work tree of the commit, below `target/against`, and lets
the two sides take turns, so that the ratios survive a noisy machine. What counts is the fastest run of each row.

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
# Benchmarks by name, each with its package.
BENCHES = {"goodput": "tresse-proto", "packets": "tresse-sim"}
GOODPUT = re.compile(
    r"\s*(?P<message>\d+) B\s+tresse\s+(?P<buffers>\d+) KiB\s+[\d.]+ \([\d.]+ to (?P<fastest>[\d.]+)\) Gbit/s"
)
PACKETS = re.compile(r"data packets/s: .*max (?P<fastest>\d+)")

# What is measured, and in which unit.
Row = tuple[str, str]

# For both sides alike; other C libraries than glibc do not look at it.
KEEP_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1073741824"}


def rates(output: str) -> Iterator[tuple[Row, float]]:
    """The rows of our own stack with the speed of their fastest turn.

    >>> list(rates("   64 B  tresse       64 KiB      3.65 (3.56 to 3.67) Gbit/s     7119812 /s   6.29"))
    [(('64 B, 64 KiB', 'Gbit/s'), 3.67)]
    >>> list(rates("data packets/s: median 749898, min 738836, max 753563"))
    [(('simulator', 'M packets/s'), 0.753563)]
    """
    for line in output.splitlines():
        if row := GOODPUT.match(line):
            yield (f"{row['message']} B, {row['buffers']} KiB", "Gbit/s"), float(row["fastest"])
        elif row := PACKETS.match(line):
            yield ("simulator", "M packets/s"), int(row["fastest"]) / 1e6


def run(*command: str | Path, at: Path = ROOT) -> str:
    """Runs a command in the tree `at`; its standard output. Ends the program if the command fails."""
    # Two trees of one workspace must not share what they build: the same package of both would go by one name.
    own = {} if at == ROOT else {"CARGO_TARGET_DIR": str(at / "target")}
    env = os.environ | KEEP_MEMORY | own
    done = subprocess.run(command, cwd=at, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench-against: `{' '.join(map(str, command))}` failed in {at}")
    return done.stdout


def built(at: Path) -> list[Path]:
    """The benchmarks of the tree `at`, built there."""
    return [benchmark(at, name, package) for name, package in BENCHES.items()]


def benchmark(at: Path, name: str, package: str) -> Path:
    """The benchmark `name` of a package in the tree `at`, built there."""
    command = (CARGO, "bench", "--locked", "--package", package, "--bench", name, "--no-run")
    for line in run(*command, "--message-format=json-render-diagnostics", at=at).splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    sys.exit(f"bench-against: {at} has no benchmark `{name}`")


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
    before: dict[Row, float] = {}
    here: dict[Row, float] = {}
    for _ in range(max(1, chosen.runs)):
        for benchmarks, best in ((then, before), (now, here)):
            for each in benchmarks:
                for row, rate in rates(run(each, "--bench")):
                    best[row] = max(rate, best.get(row, 0.0))
    print(f"{'':>18} {chosen.commit[:12]:>12} {'here':>12} {'':<11} {'ratio':>6}")
    for (what, unit), rate in here.items():
        if old := before.get((what, unit)):
            print(f"{what:>18} {old:>12.3f} {rate:>12.3f} {unit:<11} {rate / old:>6.2f}")


if __name__ == "__main__":
    main()
