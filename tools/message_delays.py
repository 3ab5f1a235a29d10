"""One-way delays of single messages over two unlike paths against the better path alone, in random setups.

A setup has two paths that lose 1 %, and messages of 1 or 16 KiB, one every 20 or 250 ms on average, all drawn from its
number (docs/path-schedulers.md). Printed are, for each, the median and the 99th percentile as parts of those over the
better path; and at the end how many are later by more than a level.

    .venv/bin/python tools/message_delays.py [--first N] [--count N] [--preset NAME] [--measure SECONDS]
        [--set NAME=VALUE]
"""

import argparse
import math
import random
import statistics
from collections.abc import Sequence

from random_setups import log_uniform, transport

import tresse

# Parts of the better path's delay beyond which setups are counted.
LEVELS = (1.05, 1.20)
# Bytes of a message, and seconds between messages on average.
SIZES, GAPS = (1024, 16384), (0.02, 0.25)
# Part of a path's rate that the messages take at most: a path that they fill has no delay to compare with.
LOAD = 0.5


def path(draws: random.Random, least_rate: float) -> str:
    """A path of up to 60 Mbit/s and 2 to 100 ms that loses 1 %; its queue holds half a BDP up to twice that."""
    rate, delay = log_uniform(draws, least_rate, 60), log_uniform(draws, 2, 100)
    queue = max(20, int(rate * 1e6 * 2 * delay / 1e3 / 8 / 1500 * log_uniform(draws, 0.5, 2)))
    return f'[[path]]\nrate = "{rate:.3f}Mbit/s"\ndelay = "{delay:.2f}ms"\nqueue = "{queue} packets"\nloss = 0.01\n'


def setup(number: int, preset: str, measure: int, settings: Sequence[str]) -> tuple[str, list[str]]:
    """The scenario of that number without its paths, and these."""
    draws = random.Random(number)
    size, gap = draws.choice(SIZES), draws.choice(GAPS)
    paths = [path(draws, max(1, 8e-6 * size / gap / LOAD)) for _ in range(2)]
    head = (
        f'preset = "{preset}"\nsettle = "5s"\nmeasure = "{measure}s"\n[transport]\n{transport(settings)}[traffic]\n'
        f'ordered = false\n[[traffic.sporadic]]\nstream = 0\ngap = "{1000 * gap:.0f}ms"\nsize = "{size}B..{size}B"\n'
    )
    return head, paths


def delays(scenario: str, seed: int) -> tuple[float, float]:
    """Median and 99th percentile, ms."""
    (stream,) = tresse.run(scenario, {}, seed=seed).streams
    if stream.delay_ms is None:
        return math.inf, math.inf
    return stream.delay_ms.p50, stream.delay_ms.p99


def main() -> None:
    """Prints a line a setup, and what comes of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--preset", default="cmt")
    parser.add_argument("--measure", type=int, default=120)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="of the transport")
    options = parser.parse_args()
    ratios: tuple[list[float], list[float]] = ([], [])
    for number in range(options.first, options.first + options.count):
        head, paths = setup(number, options.preset, options.measure, options.set)
        alone = [delays(head + one, number) for one in paths]
        together = delays(head + "".join(paths), number)
        # The better path is the one with the lower median.
        best = min(alone)
        for some, ours, its in zip(ratios, together, best, strict=True):
            some.append(ours / its)
        print(
            f"{number:6} p50 {together[0]:7.1f} of {best[0]:7.1f} ms: {ratios[0][-1]:.3f}"
            f"   p99 {together[1]:7.1f} of {best[1]:7.1f} ms: {ratios[1][-1]:.3f}",
            flush=True,
        )
    for name, some in zip(("p50", "p99"), ratios, strict=True):
        later = ", ".join(f"{sum(one > level for one in some)} above {level:.2f}" for level in LEVELS)
        print(f"{name}: {later} of {len(some)}; mean {statistics.geometric_mean(some):.3f}, most {max(some):.2f}")


if __name__ == "__main__":
    main()
