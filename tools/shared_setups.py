"""Paths that may share a bottleneck, in random setups (docs/congestion.md).

In a third of the setups two paths share their links, with one to four TCP flows beside them; in the others each path
has links of its own. Printed are the throughput as a part of what one path of `cubic` takes in the same place, where
paths share, and as a part of what uncoupled `cubic` takes, where they do not; and how many setups miss the aims. Of
those that share, also how many miss it where the link is idle for a tenth of the time beside one path: no bottleneck.

Who gets what beside others differs from run to run. With several seeds means are compared, and with `--alone` one path
beside itself with other seeds: what is left of chance. With `--alike` the paths that do not share are like the first
one, so that they behave alike for other reasons than a common queue.

    .venv/bin/python tools/shared_setups.py [--first N] [--count N] [--controller NAME] [--seeds N] [--alone]
        [--alike] [--measure SECONDS]
"""

import argparse
import random
import statistics

from random_setups import log_uniform

import tresse

# The most of one flow's part where paths share, and the least of uncoupled throughput where they do not.
MOST, LEAST = 1.2, 0.97
# The share of the time for which a bottleneck's transmitter is busy at least.
BUSY = 0.9


def path(draws: random.Random) -> str:
    """A path of 2 to 60 Mbit/s and 2 to 100 ms, whose queue holds half of what it carries up to twice that."""
    rate, delay = log_uniform(draws, 2, 60), log_uniform(draws, 2, 100)
    queue = max(10, int(rate * 1e6 * 2 * delay / 1e3 / 8 / 1500 * log_uniform(draws, 0.5, 2)))
    loss = 0.0 if draws.random() < 0.8 else log_uniform(draws, 1e-4, 0.01)
    jitter = 0.0 if draws.random() < 0.5 else delay * draws.uniform(0, 0.2)
    link = f'rate = "{rate:.3f}Mbit/s"\ndelay = "{delay:.2f}ms"\nqueue = "{queue} packets"\n'
    return f'[[path]]\n{link}loss = {loss:.6f}\njitter = "{1000 * jitter:.0f}us"\n'


def cross(path: int, flows: int) -> str:
    """TCP flows beside the association on that path."""
    return f'[[cross]]\nkind = "bulk"\npath = {path}\nflows = {flows}\n' if flows else ""


def setup(number: int, measure: float) -> tuple[bool, str, list[str], str]:
    """Setup of that number: whether paths share links, the scenario without its paths, the paths, and cross traffic."""
    draws = random.Random(number)
    shares = draws.random() < 1 / 3
    buffer = int(log_uniform(draws, 512, 4096))
    head = (
        f'preset = "cmt"\nsettle = "10s"\nmeasure = "{measure}s"\n'
        f'[transport]\nsend_buffer = "{buffer}KiB"\nreceive_buffer = "{buffer}KiB"\n'
    )
    if shares:
        return shares, head, [path(draws), "[[path]]\nshares = 0\n"], cross(0, draws.randint(1, 4))
    paths = [path(draws) for _ in range(2 if draws.random() < 0.8 else 3)]
    return shares, head, paths, "".join(cross(place, draws.randint(0, 2)) for place in range(len(paths)))


def carried(scenario: str, controller: str, seeds: range) -> tuple[float, float]:
    """Mbit/s after ten seconds, and the share of the time that the first link was busy, both in the mean."""
    settings = {"transport.congestion_control": controller}
    outcomes = [tresse.run(scenario, settings, seed=seed) for seed in seeds]
    throughput = statistics.mean(outcome.throughput_mbps for outcome in outcomes)
    return throughput, statistics.mean(outcome.paths[0].utilisation for outcome in outcomes)


def main() -> None:
    """Prints a line a setup, and what comes of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--controller", default="cubic")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="one path where paths share, with other seeds")
    parser.add_argument("--alike", action="store_true", help="paths like the first one where they do not share")
    parser.add_argument("--measure", type=float, default=30)
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    others = range(seeds.stop, seeds.stop + options.seeds)
    idle = 0
    parts: dict[bool, list[float]] = {True: [], False: []}
    for number in range(options.first, options.first + options.count):
        shares, head, paths, crossing = setup(number, options.measure)
        if options.alike and not shares:
            paths = paths[:1] * len(paths)
        one, all_paths = head + paths[0] + crossing, head + "".join(paths) + crossing
        if shares and options.alone:
            took, _ = carried(one, options.controller, others)
        else:
            took, _ = carried(all_paths, options.controller, seeds)
        reference, busy = carried(one if shares else all_paths, "cubic", seeds)
        idle += shares and busy < BUSY and took / reference > MOST
        parts[shares].append(took / reference)
        kind = "one flow's part" if shares else "uncoupled"
        print(f"{number:6} {took:8.2f} of {reference:8.2f} Mbit/s: {took / reference:.3f} of {kind}", flush=True)
    for shares, kind in ((True, "sharing"), (False, "disjoint")):
        of = parts[shares]
        missed = sum(part > MOST if shares else part < LEAST for part in of)
        spread = f"{min(of):.3f} to {max(of):.3f}, mean {statistics.mean(of):.3f}"
        idly = f", {idle} of them at no bottleneck" if shares else ""
        print(f"{kind}: {spread}; {missed} of {len(of)} miss the aim{idly}")


if __name__ == "__main__":
    main()
