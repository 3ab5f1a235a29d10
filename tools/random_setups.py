"""All paths together against the best one alone, in random setups (docs/small-buffers.md).

Each setup has two or three paths, buffers, messages and streams drawn from its number. Printed are, for each, the
throughput over all paths as a part of that over the best one and of the sum of all, and at the end how many are slower.

    .venv/bin/python tools/random_setups.py [--first N] [--count N] [--preset NAME] [--seeds N] [--jitter PART]
        [--set NAME=VALUE]
"""

import argparse
import math
import random
import statistics
from collections.abc import Sequence

import tresse

# Shares of the best path's throughput below which setups are counted.
LEVELS = (0.97, 0.90)


def log_uniform(draws: random.Random, low: float, high: float) -> float:
    """A number whose logarithm is uniformly distributed."""
    return math.exp(draws.uniform(math.log(low), math.log(high)))


def path(draws: random.Random, jitter: float) -> str:
    """A path of 0.5 to 60 Mbit/s and 1 to 150 ms; two in five lose 0.01 to 5 %, one in ten has CoDel.

    Packets take up to that part of the delay longer.
    """
    rate, delay = log_uniform(draws, 0.5, 60), log_uniform(draws, 1, 150)
    loss = 0.0 if draws.random() < 0.6 else log_uniform(draws, 1e-4, 0.05)
    queue = draws.choice((100, 100, None))
    if queue is None:
        filled = rate * 1e6 * 2 * delay / 1e3 / 8 / 1500
        queue = max(10, int(filled * draws.uniform(0.5, 3)))
    codel = 'discipline = "codel"\n' if draws.random() < 0.1 else ""
    link = f'rate = "{rate:.3f}Mbit/s"\ndelay = "{delay:.2f}ms"\nqueue = "{queue} packets"\nloss = {loss:.6f}\n'
    link += f'jitter = "{1000 * delay * jitter:.0f}us"\n'
    return f"[[path]]\n{link}{codel}"


def transport(settings: Sequence[str]) -> str:
    """Settings NAME=VALUE as lines of the table `[transport]`."""
    return "".join(f'{name} = "{value}"\n' for name, value in (one.split("=", 1) for one in settings))


def setup(number: int, preset: str, jitter: float, settings: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The scenario of that number without its paths, and these."""
    draws = random.Random(number)
    count = 2 if draws.random() < 0.8 else 3
    paths = [path(draws, jitter) for _ in range(count)]
    receive = int(log_uniform(draws, 16, 4096))
    send = receive if draws.random() < 0.7 else int(log_uniform(draws, 16, 4096))
    size = min(draws.choice((200, 1000, 1452, 10000, 60000)), receive * 1024 // 4, send * 1024 // 4)
    streams, ordered = draws.choice((1, 1, 2, 4, 16)), draws.random() < 0.8
    head = (
        f'preset = "{preset}"\nsettle = "8s"\nmeasure = "20s"\n'
        f'[transport]\nsend_buffer = "{send}KiB"\nreceive_buffer = "{receive}KiB"\n{transport(settings)}'
        f'[traffic]\nstreams = {streams}\nmessage_size = "{size}B"\nordered = {str(ordered).lower()}\n'
    )
    return head, paths


def throughput(scenario: str, seeds: Sequence[int]) -> list[float]:
    """Mbit/s, for each seed."""
    return [tresse.run(scenario, {}, seed=seed).throughput_mbps for seed in seeds]


def main() -> None:
    """Prints a line a setup, and what comes of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--preset", default="cmt")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jitter", type=float, default=0.0, help="part of its delay that a packet may take longer")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="of the transport")
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    ratios, parts = [], []
    for number in range(options.first, options.first + options.count):
        head, paths = setup(number, options.preset, options.jitter, options.set)
        alone = [max(throughput(head + one, seeds)) for one in paths]
        together = statistics.mean(throughput(head + "".join(paths), seeds))
        ratios.append(together / max(alone))
        parts.append(together / sum(alone))
        each = " + ".join(f"{one:.2f}" for one in alone)
        print(
            f"{number:6} {together:8.2f} of {each} Mbit/s: {ratios[-1]:.3f} of the best, {parts[-1]:.3f} of all",
            flush=True,
        )
    for level in LEVELS:
        print(f"below {level:.0%} of the best path: {sum(ratio < level for ratio in ratios)} of {len(ratios)}")
    print(f"least {min(ratios):.1%}, median {statistics.median(ratios):.1%}")
    print(f"of all paths together {statistics.mean(parts):.1%} in the mean")


if __name__ == "__main__":
    main()
