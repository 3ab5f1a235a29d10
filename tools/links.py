"""Rates of `tresse` over two and more links in network namespaces, compared with the expected rates.

Links are pairs of virtual Ethernet interfaces that `tc tbf` bounds, or, where they have a delay, the paths of
`tresse emulate`. One table is printed, a row for each case. What cannot run here is a row that says why, and counts as
skipped; what misses its bound is measured once more, as other work on the machine can be the cause. The exit code is 1
only where a case ran and missed its bound twice. Needs root, and is started by `make links`.
"""

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netns import Hosts, UnavailableError, run

ROOT = Path(__file__).resolve().parent.parent
PAYLOAD = 1444 / 1514
"""User data of a full packet, as a share of what `tc tbf` counts: its Ethernet frame."""
MPTCP = 262
"""IPPROTO_MPTCP."""
FOLLOWED_S = 5.0
"""In which a changed address has to be in use."""
OMITTED_S = 2.0
"""The beginning of a measurement, which does not count."""
FOUND_S = 10.0
"""In which paths that share a bottleneck should be found."""
COST = 8.0
"""Processor seconds that a gigabyte over two links of 100 Mbit/s may cost both sides together."""
FAIR = 1.2
"""What several paths through one bottleneck may carry, relative to one path."""


@dataclass
class Row:
    """Result of a case."""

    case: str
    wanted: str
    measured: str
    verdict: str


class Bench:
    """The command, and how long each measurement takes."""

    def __init__(self, tresse: str, seconds: float) -> None:
        self.tresse = tresse
        self.seconds = seconds

    def measure(self, hosts: Hosts, listen: str, call: str, *, host: str = "far", near: str = "near") -> dict[str, Any]:
        """The client's result for data that it sent, and, under `said`, the lines on its standard error."""
        serve = f"perf server --listen {listen} --once --quiet --insecure"
        server = hosts.start(host, [self.tresse, *serve.split()])
        assert server.stderr is not None
        time.sleep(0.5)
        client = hosts.start(near, [self.tresse, *f"perf client {call} --json --insecure".split()])
        out, said = client.communicate(timeout=self.seconds + 60)
        server.kill()
        if client.returncode != 0:
            raise RuntimeError(said.strip())
        document: dict[str, Any] = json.loads(out)
        return document["out"] | {"said": said, "events": document.get("events", [])}

    def timed(self) -> str:
        """Options of a measurement that does not count its beginning."""
        return f"--duration {self.seconds}s --omit {OMITTED_S:.0f}s"


def at_least(case: str, mbps: float, wanted: float) -> Row:
    """A row about a throughput."""
    verdict = "met" if mbps >= wanted else "MISSED"
    return Row(case, f"at least {wanted:.1f} Mbit/s", f"{mbps:.1f} Mbit/s", verdict)


def unlike_metrics(bench: Bench) -> list[Row]:
    """Two links of 50 Mbit/s, beside the MPTCP of the kernel over the same."""
    with Hosts(["near", "far"]) as hosts:
        hosts.link(1, 50)
        hosts.link(2, 50)
        out = bench.measure(hosts, "lo", f"--to 10.78.1.1,10.78.2.1 {bench.timed()}")
        row = at_least("50 + 50 Mbit/s, default routes of metric 100 and 200", out["throughput_mbps"], 90)
        return [row, kernel_mptcp(hosts, bench.seconds)]


def kernel_mptcp(hosts: Hosts, seconds: float) -> Row:
    """The MPTCP of the kernel, over the links that the hosts have."""
    case = "the same over MPTCP of this kernel, for comparison"
    try:
        for host in ("near", "far"):
            hosts.on(host, "sysctl -qw net.mptcp.enabled=1")
            hosts.on(host, "ip mptcp limits set subflow 2 add_addr_accepted 2")
        hosts.on("near", "ip mptcp endpoint add 10.77.2.2 dev up2 subflow")
        # The kernel chooses the interface by its routing rules: an MPTCP host needs one for each address.
        hosts.ip("near", "route add default via 10.77.2.1 dev up2 table 1002")
        hosts.ip("near", "rule add from 10.77.2.2 table 1002")
        flow = kernel_flow(hosts, "mptcp", seconds, OMITTED_S)
        return Row(case, "-", f"{flow.mbps():.1f} Mbit/s", "measured")
    except UnavailableError as reason:
        return Row(case, "-", str(reason), "skipped")


@dataclass
class Flow:
    """A transfer of the kernel, from `near` to `far`."""

    server: subprocess.Popen[str]
    client: subprocess.Popen[str]

    def mbps(self) -> float:
        """Waits for its end. The omitted seconds do not count."""
        _, said = self.client.communicate(timeout=300)
        if self.client.returncode != 0:
            raise UnavailableError(said.strip().splitlines()[-1])
        return float(self.server.communicate(timeout=30)[0])


def kernel_flow(hosts: Hosts, protocol: str, seconds: float, omitted: float) -> Flow:
    """A transfer by "tcp" (with CUBIC) or "mptcp", of which the first seconds do not count."""
    script = [sys.executable, str(Path(__file__).resolve()), "--side", protocol]
    server = hosts.start("far", [*script, "server", str(omitted)])
    time.sleep(0.5)
    return Flow(server, hosts.start("near", [*script, "client", str(seconds)]))


def side(protocol: str, role: str, seconds: float) -> None:
    """One side of a transfer of the kernel.

    The client sends for `seconds`; the server omits as many and prints the Mbit/s of the rest.
    """
    link = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP if protocol == "mptcp" else socket.IPPROTO_TCP)
    if role == "client":
        if protocol == "tcp":
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        link.connect(("10.78.1.1", 9000))
        end, block = time.monotonic() + seconds, bytes(1 << 16)
        while time.monotonic() < end:
            link.sendall(block)
        link.close()
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    link.bind(("10.78.1.1", 9000))
    link.listen(1)
    peer, _ = link.accept()
    count, since, counted = 0, time.monotonic() + seconds, 0
    while got := len(peer.recv(1 << 18)):
        count += got
        if time.monotonic() < since:
            counted = count
    print((count - counted) * 8e-6 / (time.monotonic() - since))


def one_bottleneck(bench: Bench) -> list[Row]:
    """Two paths that share a link of 20 Mbit/s with a TCP flow of the kernel."""
    one, _ = beside_tcp(bench, "10.78.1.1", "")
    two, tcp = beside_tcp(bench, "10.78.1.1,10.78.2.1", "")
    uncoupled, victim = beside_tcp(bench, "10.78.1.1,10.78.2.1", "--set congestion_control=cubic")
    case = "two paths through one link of 20 Mbit/s, beside a TCP flow of the kernel (CUBIC)"
    return [
        Row(
            case,
            f"at most {FAIR} of one path's {one:.1f} Mbit/s",
            f"{two:.1f} Mbit/s, TCP {tcp:.1f}",
            "met" if two <= FAIR * one else "MISSED",
        ),
        Row("the same with uncoupled paths", "-", f"{uncoupled:.1f} Mbit/s, TCP {victim:.1f}", "measured"),
    ]


def beside_tcp(bench: Bench, peer: str, options: str) -> tuple[float, float]:
    """Mbit/s of an association, and of the TCP flow beside it, once the shared bottleneck should have been found."""
    with Hosts(["near", "middle", "far"]) as hosts:
        hosts.bottleneck(20)
        flow = kernel_flow(hosts, "tcp", FOUND_S + bench.seconds, FOUND_S)
        timed = f"--duration {bench.seconds}s --omit {FOUND_S:.0f}s"
        out = bench.measure(hosts, peer, f"--to {peer} {timed} {options}")
        return out["throughput_mbps"], flow.mbps()


def two_fast_links(bench: Bench) -> list[Row]:
    """Two links of 100 Mbit/s: processor time of both sides."""
    before = processor_seconds()
    with Hosts(["near", "far"]) as hosts:
        hosts.link(1, 100)
        hosts.link(2, 100)
        out = bench.measure(hosts, "lo", f"--to 10.78.1.1,10.78.2.1 --duration {bench.seconds}s")
    gigabytes = out["throughput_mbps"] * bench.seconds / 8e3
    cost = (processor_seconds() - before) / gigabytes
    case = "100 + 100 Mbit/s, processor time of both sides"
    measured = f"{cost:.1f} s/GB at {out['throughput_mbps']:.1f} Mbit/s"
    return [Row(case, f"at most {COST:.0f} s/GB", measured, "met" if cost <= COST else "MISSED")]


def processor_seconds() -> float:
    """Processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def no_route(bench: Bench) -> list[Row]:
    """The second link has no route to the peer."""
    with Hosts(["near", "far"]) as hosts:
        hosts.link(1, 50)
        hosts.link(2, 50, route=False)
        said = bench.measure(hosts, "lo", "--from up1,up2 --to 10.78.1.1,10.78.2.1 --bytes 1MB")["said"]
    line = next((line for line in said.splitlines() if "mend it with" in line), "")
    named = "up2" in line and "ip rule add from 10.77.2.2" in line
    case = "50 + 50 Mbit/s, the second without a route"
    return [Row(case, "its interface and the rule are named", line or "nothing is said", "met" if named else "MISSED")]


def three_links(bench: Bench) -> list[Row]:
    """Links of 100, 10 and 1 Mbit/s."""
    rates = (100, 10, 1)
    with Hosts(["near", "far"]) as hosts:
        for number, rate in enumerate(rates, 1):
            hosts.link(number, rate)
        out = bench.measure(hosts, "lo", f"--to 10.78.1.1,10.78.2.1,10.78.3.1 {bench.timed()}")
    return [at_least("100 + 10 + 1 Mbit/s", out["throughput_mbps"], 0.97 * PAYLOAD * sum(rates))]


EMULATED = """
settle = "0s"
measure = "600s"
[[path]]
rate = "300Mbit/s"
delay = "10ms"
queue = "500 packets"
[[path]]
rate = "300Mbit/s"
delay = "10ms"
queue = "500 packets"
"""
LATE_MS = 1.0
"""By how much 99 of 100 packets may be late."""


def emulated(bench: Bench) -> list[Row]:
    """Two paths of 300 Mbit/s of `tresse emulate`, which is one thread: how late packets leave."""
    with Hosts(["near"]) as hosts, tempfile.TemporaryDirectory() as directory:
        scenario = Path(directory) / "paths.toml"
        scenario.write_text(EMULATED)
        # Its own priority, and not the one that is given to the measured programs.
        emulate = f"chrt -o 0 {bench.tresse} emulate {scenario} --json --duration {bench.seconds + 4}s"
        emulator = hosts.start("near", emulate.split())
        time.sleep(0.5)
        call = f"--from 127.0.1.1,127.0.1.2 --to 127.0.2.1,127.0.2.2 --port 9900 {bench.timed()}"
        out = bench.measure(hosts, "127.0.2.1,127.0.2.2", call, host="near")
        document = json.loads(emulator.communicate(timeout=bench.seconds + 60)[0])
    late = {key: document["late"][f"{key}_ms"] for key in ("p50", "p99", "p999", "max")}
    measured = ", ".join(f"{value:.2f} ms ({key})" for key, value in late.items())
    load = f"{out['throughput_mbps']:.0f} Mbit/s of user data, load average {os.getloadavg()[0]:.1f}"
    verdict = "met" if late["p99"] < LATE_MS else "MISSED"
    case = "300 + 300 Mbit/s, emulated: packets leave late"
    return [Row(case, f"below {LATE_MS:.0f} ms (p99)", f"{measured}; {load}", verdict)]


DELAYED = """
settle = "0s"
measure = "600s"
[[path]]
rate = "30Mbit/s"
delay = "15ms"
[[path]]
rate = "20Mbit/s"
delay = "35ms"
"""


def unlike_delays(bench: Bench) -> list[Row]:
    """30 Mbit/s at 15 ms and 20 at 35 ms, one way: paths of `tresse emulate`, as `tc netem` is not everywhere."""
    with Hosts(["near"]) as hosts, tempfile.TemporaryDirectory() as directory:
        scenario = Path(directory) / "paths.toml"
        scenario.write_text(DELAYED)
        hosts.start("near", [bench.tresse, "emulate", str(scenario), "--quiet"])
        time.sleep(0.5)
        call = f"--from 127.0.1.1,127.0.1.2 --to 127.0.2.1,127.0.2.2 --port 9900 {bench.timed()}"
        out = bench.measure(hosts, "127.0.2.1,127.0.2.2", call, host="near")
    return [at_least("30 Mbit/s at 15 ms + 20 Mbit/s at 35 ms (tresse emulate)", out["throughput_mbps"], 48)]


PAPER = ROOT / "scenarios" / "pfldnet2010" / "two-paths.toml"
POINTS = (("10ms", "fixed:0,1", "66258B"), ("25ms", "fixed:0,1", "132517B"), ("50ms", "any", "132517B"))
"""Points of figure 4 of the first paper: delay of the second path, stream map, both buffers (64 and 128 KiB of data).
Left out are those where packets and SACKs lock in phase (docs/verdicts.md): real clocks do not keep step."""
LIKE = 0.05
"""How far a real run may be from a simulated one."""


def paper_points(bench: Bench) -> list[Row]:
    """Points of the first paper, simulated, and by real processes over the emulator."""
    return [paper_point(bench, *point) for point in POINTS]


def paper_point(bench: Bench, delay: str, streams: str, buffer: str) -> Row:
    """One of them."""
    buffers = {"send_buffer": buffer, "receive_buffer": buffer}
    transport = [f"--set transport.{name}={value}" for name, value in (buffers | {"stream_map": streams}).items()]
    simulated = json.loads(
        run(f"{bench.tresse} sim {PAPER} --json --set path.1.delay={delay} --set measure=60s {' '.join(transport)}")
    )
    # Packets within UDP are 8 bytes longer, which the emulator does not count; stream 0 has the control messages.
    own = buffers | {"stream_map": streams.replace(":", ":0,"), "mtu": "1508B"}
    settings = "--preset pfldnet2010 " + " ".join(f"--set {name}={value}" for name, value in own.items())
    with Hosts(["near"]) as hosts:
        hosts.start("near", f"{bench.tresse} emulate {PAPER} --quiet --set path.1.delay={delay}".split())
        time.sleep(0.5)
        call = "--from 127.0.1.1,127.0.1.2 --to 127.0.2.1,127.0.2.2 --port 9900 --streams 2 --message-size 1452B"
        listen = f"127.0.2.1,127.0.2.2 {settings}"
        out = bench.measure(hosts, listen, f"{call} {settings} {bench.timed()}", host="near")
    expected, got = simulated["throughput_mbps"], out["throughput_mbps"]
    verdict = "met" if abs(got / expected - 1) <= LIKE else "MISSED"
    case = f"first paper, {streams}, {delay}, {buffer}: simulated, and over the emulator"
    return Row(case, f"{expected:.2f} Mbit/s, within {LIKE:.0%}", f"{got:.2f} Mbit/s", verdict)


def replaced_address(bench: Bench) -> list[Row]:
    """The address of a link is replaced in mid-transfer, as by a new lease."""
    with Hosts(["near", "far"]) as hosts:
        hosts.link(1, 8)
        hosts.link(2, 8)
        serve = "perf server --listen lo --once --json --insecure"
        server = hosts.start("far", [bench.tresse, *serve.split()])
        time.sleep(0.5)
        call = "perf client --to 10.78.1.1,10.78.2.1 --bytes 20MB --json --insecure"
        client = hosts.start("near", [bench.tresse, *call.split()])
        time.sleep(4)
        hosts.ip("near", "addr del 10.77.1.2/24 dev up1")
        hosts.ip("near", "addr add 10.77.1.3/24 dev up1")
        hosts.ip("near", "route add default via 10.77.1.1 metric 100")
        changed = time.monotonic()
        follow = sent_from(hosts, "10.77.1.3", changed)
        out, said = client.communicate(timeout=120)
        if client.returncode != 0:
            raise RuntimeError(said.strip())
        served, _ = server.communicate(timeout=30)
    whole = json.loads(out)["out"]["bytes"] == json.loads(served)["in"]["bytes"] == 20_000_000
    measured = f"after {follow:.1f} s, {'nothing' if whole else 'something'} lost"
    verdict = "met" if whole and follow <= FOLLOWED_S else "MISSED"
    case = "8 + 8 Mbit/s, an address is replaced in mid-transfer"
    return [Row(case, f"in use within {FOLLOWED_S:.0f} s, nothing lost", measured, verdict)]


def sent_from(hosts: Hosts, address: str, since: float) -> float:
    """Seconds until the first full packets come to the peer from an address that is new."""
    counter = f"{address.replace('.', '_')}"
    hosts.on("far", "nft add table ip seen")
    hosts.on("far", "nft add chain ip seen in '{ type filter hook input priority 0 ; }'")
    hosts.on("far", f"nft add counter ip seen c{counter}")
    hosts.on("far", f"nft add rule ip seen in ip saddr {address} ip length > 1000 counter name c{counter}")
    while time.monotonic() - since < 30:
        listed = hosts.on("far", f"nft -j list counter ip seen c{counter}")
        if any(one["counter"]["packets"] > 1 for one in json.loads(listed)["nftables"] if "counter" in one):
            break
        time.sleep(0.05)
    return time.monotonic() - since


def usrsctp(bench: Bench) -> list[Row]:
    """CMT of usrsctp over the same links, for comparison."""
    case = "50 + 50 Mbit/s over CMT of usrsctp, for comparison"
    with Hosts(["near", "far"]) as hosts, tempfile.TemporaryDirectory() as directory:
        program = str(Path(directory) / "cmt_usrsctp")
        source = ROOT / "tools" / "cmt_usrsctp.c"
        if not Path("/usr/include/usrsctp.h").exists():
            raise UnavailableError("libusrsctp-dev is not installed")
        run(f"cc -O2 -o {program} {source} -lusrsctp -lpthread")
        hosts.link(1, 50)
        hosts.link(2, 50)
        # It chooses interfaces by the destination alone, so the peer has an address on each link.
        peers = "10.77.1.1,10.77.2.1"
        server = hosts.start("far", [program, "server", peers])
        time.sleep(0.5)
        client = hosts.start("near", [program, "client", peers, str(bench.seconds + 2)])
        client.communicate(timeout=bench.seconds + 30)
        out, said = server.communicate(timeout=30)
        if server.returncode != 0:
            raise UnavailableError(said.strip() or f"it ended with {server.returncode}")
    return [Row(case, "-", f"{float(out):.1f} Mbit/s", "measured")]


CASES: tuple[Callable[[Bench], list[Row]], ...] = (
    unlike_metrics,
    usrsctp,
    one_bottleneck,
    no_route,
    three_links,
    two_fast_links,
    unlike_delays,
    paper_points,
    replaced_address,
    emulated,
)


def rows_of(case: Callable[[Bench], list[Row]], bench: Bench) -> list[Row]:
    """The rows of a case; one that cannot run is skipped, and one that breaks off missed."""
    name = (case.__doc__ or case.__name__).partition("\n")[0].rstrip(".")
    try:
        return case(bench)
    except UnavailableError as reason:
        return [Row(name, "-", str(reason), "skipped")]
    except (RuntimeError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return [Row(name, "-", str(error), "MISSED")]


def main() -> int:
    """Runs the cases and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tresse", default=str(ROOT / "target" / "release" / "tresse"), help="the command")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--side", nargs=3, metavar=("PROTOCOL", "ROLE", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        protocol, role, seconds = args.side
        side(protocol, role, float(seconds))
        return 0
    bench = Bench(args.tresse, args.seconds)
    cases = [case for case in CASES if args.only in case.__name__]
    rows = []
    if os.geteuid() == 0:
        for case in cases:
            found = rows_of(case, bench)
            if any(row.verdict == "MISSED" for row in found):
                found = rows_of(case, bench)
                for row in found:
                    row.measured += " (second try)"
            rows += found
            print(f"{rows[-1].case}: {rows[-1].measured}", file=sys.stderr, flush=True)
    else:
        rows = [Row(case.__name__, "-", "network namespaces need root", "skipped") for case in cases]
    print("| case | wanted | measured | verdict |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.case} | {row.wanted} | {row.measured} | {row.verdict} |")
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("met", "MISSED", "skipped")}
    print(f"\n{count['met']} met, {count['MISSED']} missed, {count['skipped']} skipped")
    return 1 if count["MISSED"] else 0


if __name__ == "__main__":
    sys.exit(main())
