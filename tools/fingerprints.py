"""Check that a change which only moves or renames code changes no packet.

Runs a fixed set of short simulations and compares the digest of each one's packets with `tools/fingerprints.txt`: every
scenario under every preset, and every choice of every setting over two unlike lossy paths with little buffer. Behaviour
that changes on purpose changes lines of that file (`--write`), and its commit says why.

Run it with the lab's interpreter: `make fingerprints`.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import tresse
from tresse import _native

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tools" / "fingerprints.txt"
SCENARIOS = sorted(path.relative_to(ROOT / "scenarios") for path in (ROOT / "scenarios").rglob("*.toml"))
PRESETS = ("cmt", "adaptive", "rfc9260", "pfldnet2010", "globecom2005", "globecom2010")
BRIEF = {"settle": "500ms", "measure": "7500ms"}

HARD = Path("pfldnet2010/two-paths.toml")
"""With `LOSSY`, where settings are varied: reordering, losses both ways, damage, buffers that fill."""
LOSSY = {
    "preset": "cmt",
    "path.0.loss": "1%",
    "path.1.delay": "50ms",
    "path.1.loss": "3%",
    "path.1.bit_error_rate": "0.000001",
    "transport.send_buffer": "96KiB",
    "transport.receive_buffer": "64KiB",
    "transport.rto_min": "200ms",
}
NAMED = {
    "path_scheduler": [
        "round_robin",
        "lowest_rtt",
        "most_room",
        "in_order",
        "ecf",
        "blest",
        "otias",
        "daps",
        "stms",
        "redundant",
    ],
    "stream_scheduler": [
        "first_come",
        "round_robin",
        "round_robin_packet",
        "priority",
        "fair_bandwidth",
        "weighted_fair",
    ],
    "congestion_control": ["rfc9260", "cubic", "cmt_rp_v1", "cmt_rp_v2", "lia", "olia", "balia"],
    "stream_map": ["any", "adaptive", "fixed:0,1"],
}
"""Settings whose values are names of policies."""
NUMBERS = {
    "max_burst": "4",
    "initial_window": "30KiB",
    "experiment.min_ssthresh": "2",
    "sack_frequency": "1",
    "sack_delay": "20ms",
    "mtu": "1280B",
    "experiment.rescheduling_threshold": "25",
    "nr_sack_blocks": "8",
    "partial_delivery_point": "1000B",
    "heartbeat_interval": "200ms",
    "potentially_failed_max_retrans": "2",
    "potentially_failed_window": "4",
    "sack_path_probes": "100ms",
}
"""Settings that are numbers, with one other value."""

Run = tuple[str, str, dict[str, str]]
"""Name, scenario, overrides."""


def runs() -> Iterator[Run]:
    """All simulations, each with a name of its own."""
    for path in SCENARIOS:
        for preset in PRESETS:
            yield f"{path} preset={preset}", str(path), {**BRIEF, "preset": preset}
    for setting, value in settings():
        for preset in ("cmt", "adaptive", "pfldnet2010"):
            overrides = {**BRIEF, **LOSSY, "preset": preset, f"transport.{setting}": value}
            yield f"lossy preset={preset} {setting}={value}", str(HARD), overrides


def settings() -> Iterator[tuple[str, str]]:
    """Every value of every setting that has few, and one other value of some that are numbers."""
    for name, default, accepted, _ in _native.switches():
        if name in NAMED:
            yield from ((name, value) for value in NAMED[name])
        elif name in NUMBERS:
            yield name, NUMBERS[name]
        elif accepted == "true or false":
            yield name, "false" if default == "true" else "true"
        elif accepted.startswith("one of "):
            # Disjoint paths are paired in one way only.
            values = [] if name == "path_pairs" else accepted.removeprefix("one of ").split(", ")
            yield from ((name, value) for value in values if value != default)


def digest(run: Run) -> tuple[str, str]:
    """Name and digest of one simulation; of one that is refused, what it is told."""
    name, scenario, overrides = run
    text = (ROOT / "scenarios" / scenario).read_text()
    try:
        # Not by `tresse.run`, which warns of settings without effect: here each is set in turn.
        return name, json.loads(_native.run(text, overrides, 1))["run"]["trace_hash"]
    except tresse.ScenarioError as error:
        return name, f"refused: {error}"


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the digests of this tree")
    arguments = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        found = dict(pool.map(digest, runs(), chunksize=8))
    if arguments.write:
        KEPT.write_text("".join(f"{found[name]}  {name}\n" for name in found))
        print(f"{len(found)} digests written to {KEPT.name}")
        return 0
    kept = {name: value for value, name in (line.split("  ", 1) for line in KEPT.read_text().splitlines())}
    changed = [name for name in kept | found if kept.get(name) != found.get(name)]
    for name in changed:
        print(f"{name}: {kept.get(name, 'not there')} before, {found.get(name, 'not there')} now")
    print(f"{len(found)} simulations, {len(changed)} differ from {KEPT.name}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
