"""Hosts as network namespaces of Linux, and links between them.

`tools/links.py` measures on them. What a host runs is a process of this machine, so both ends share its processors.
"""

import os
import shlex
import subprocess
from collections.abc import Sequence
from functools import cache
from types import TracebackType


class UnavailableError(Exception):
    """The system does not let namespaces be made, or lacks a command; the text says which."""


def run(command: str, *, check: bool = True) -> str:
    """Runs a command and answers what it printed."""
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UnavailableError(f"there is no command {error.filename}") from error
    if check and done.returncode != 0:
        raise UnavailableError(f"{command}: {done.stderr.strip() or done.returncode}")
    return done.stdout


@cache
def first() -> tuple[str, ...]:
    """Command prefix that gives a process real-time priority, where the system allows that."""
    command = ("chrt", "-r", "10")
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return command if allowed else ()


class Hosts:
    """Namespaces that are removed in the end, with all that runs in them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = {name: f"tresse-links-{name}-{os.getpid()}" for name in names}
        self.running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "Hosts":
        for namespace in self.names.values():
            run(f"ip netns add {namespace}")
            run(f"ip -n {namespace} link set lo up")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        for namespace in self.names.values():
            run(f"ip netns del {namespace}", check=False)

    def ip(self, host: str, arguments: str) -> str:
        """Runs `ip` on a host."""
        return run(f"ip -n {self.names[host]} {arguments}")

    def on(self, host: str, command: str) -> str:
        """Runs a command on a host and waits for it."""
        return run(f"ip netns exec {self.names[host]} {command}")

    def start(self, host: str, command: Sequence[str]) -> subprocess.Popen[str]:
        """Starts a command on a host."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[host], *first(), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def link(self, number: int, mbps: float, *, route: bool = True) -> None:
        """An uplink of `near` to `far`: its default route has a metric of its own, as DHCP leaves it."""
        self.uplink(number, "far")
        self.ip("far", f"addr add 10.78.{number}.1/32 dev lo")
        for host, interface in (("near", f"up{number}"), ("far", f"down{number}")):
            self.on(host, f"tc qdisc add dev {interface} root {shape(mbps)}")
        if route:
            self.default_route(number)

    def bottleneck(self, mbps: float) -> None:
        """Two uplinks of `near` to a router, `middle`, from which one link of this rate leads to `far`."""
        self.wire(("middle", "out", "10.79.0.1"), ("far", "in", "10.79.0.2"))
        self.ip("far", "route add default via 10.79.0.1")
        self.on("middle", "sysctl -qw net.ipv4.ip_forward=1")
        self.on("middle", f"tc qdisc add dev out root {shape(mbps)}")
        for number in (1, 2):
            self.uplink(number, "middle")
            self.default_route(number)
            self.ip("far", f"addr add 10.78.{number}.1/32 dev lo")
            self.ip("middle", f"route add 10.78.{number}.1 via 10.79.0.2")

    def uplink(self, number: int, to: str) -> None:
        """A wire from `near` to that host."""
        self.wire(("near", f"up{number}", f"10.77.{number}.2"), (to, f"down{number}", f"10.77.{number}.1"))

    def default_route(self, number: int) -> None:
        """A default route of `near` by that uplink."""
        self.ip("near", f"route add default via 10.77.{number}.1 metric {number}00")

    def wire(self, one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
        """A pair of interfaces that are up: of each the host, the interface and its address."""
        self.ip(one[0], f"link add {one[1]} type veth peer name {other[1]} netns {self.names[other[0]]}")
        for host, interface, address in (one, other):
            self.ip(host, f"addr add {address}/24 dev {interface}")
            self.ip(host, f"link set {interface} up")


def shape(mbps: float) -> str:
    """Queueing discipline of a link of this rate, with 50 ms of queue."""
    return f"tbf rate {mbps}mbit burst 32kbit latency 50ms"
