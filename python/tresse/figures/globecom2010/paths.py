"""The two paths of section V: the quantity that each panel varies, the length of runs, and the bound.

Path 1 keeps 100 Mbit/s, 1 ms and no errors; the rate, the bit error rate or the delay of path 2 is varied. The text
states the ends of the axes; we selected the points between them.
"""

from dataclasses import dataclass

from tresse.bound import BoundPath, throughput_bound
from tresse.figures.buffers import holding
from tresse.sweep import Profile

SOURCE = (
    "T. Dreibholz, M. Becke, E. P. Rathgeb, M. Tüxen: "
    "On the Use of Concurrent Multipath Transfer over Asymmetric Paths. IEEE GLOBECOM 2010"
)
SCENARIO = "globecom2010/two-paths.toml"

PROFILES = {
    "quick": Profile("quick", runs=4, overrides={"settle": "9s", "measure": "15s"}),
    "paper": Profile("paper", runs=64, overrides={"measure": "60s"}),
}
"""Profiles; in the paper runs settle for 19 s and measure 60 s, with 64 runs for each point."""
RUNS_OF_DIFFERENCES = 8
"""Least runs of a point whose claim is a difference without a size; with fewer, the interval exceeds the difference."""

PACKET_BYTES, PAYLOAD_BYTES = 1500, 1452
RATE_MBPS, DELAY_MS = 100.0, 1.0


@dataclass(frozen=True)
class Buffers:
    """User data that fits in the send buffer and in the receive buffer."""

    send_bytes: int
    receive_bytes: int

    @property
    def smaller_bytes(self) -> int:
        """Size of the smaller buffer, which limits a transfer."""
        return min(self.send_bytes, self.receive_bytes)

    @property
    def overrides(self) -> dict[str, str]:
        """Settings of the buffers for the scenario."""
        return {
            "transport.send_buffer": holding(self.send_bytes),
            "transport.receive_buffer": holding(self.receive_bytes),
        }


@dataclass(frozen=True)
class Panel:
    """One quantity of path 2 that a plot varies."""

    name: str
    """Value in the column `panel` of the tables; the column `value` has the quantity."""
    label: str
    values: tuple[float, ...]
    key: str
    """Key in the scenario, without "path.1."."""
    unit: str
    buffers: Buffers
    """Buffers of unordered transfers."""

    def overrides(self, value: float) -> dict[str, str]:
        """Return the overrides of the scenario for this value."""
        return {f"path.1.{self.key}": f"{value:g}{self.unit}"}

    def text(self, value: float) -> str:
        """Print as "10 Mbit/s"."""
        return f"{value:g} {self.unit}".rstrip()

    def bound_mbps(self, value: float, buffers: Buffers) -> float:
        """Return the throughput that no schedule can exceed with the smaller buffer, without damaged packets."""
        rate = value if self is RATE else RATE_MBPS
        delay = value if self is DELAY else DELAY_MS
        intact = (1 - value) ** (8 * PACKET_BYTES) if self is ERRORS else 1.0
        first = BoundPath.of(RATE_MBPS, DELAY_MS, PACKET_BYTES, PAYLOAD_BYTES)
        second = BoundPath.of(rate, delay, PACKET_BYTES, PAYLOAD_BYTES)
        lossy = BoundPath(second.payload_mbps * intact, second.rtt_ms)
        return throughput_bound([first, lossy], buffers.smaller_bytes)


_SMALL, _LARGE = Buffers(250_000, 125_000), Buffers(2_500_000, 1_250_000)
ORDERED_BUFFERS = Buffers(2_500_000, 2_500_000)
"""Buffers of ordered transfers, for all panels."""

RATE = Panel(
    "rate_mbps",
    "rate of path 2 [Mbit/s]",
    (0.5, 1, 2, 5, 10, 20, 50, 80, 100),
    "rate",
    "Mbit/s",
    _SMALL,
)
ERRORS = Panel(
    "bit_error_rate",
    "bit error rate of path 2",
    (0, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6),
    "bit_error_rate",
    "",
    _SMALL,
)
DELAY = Panel("delay_ms", "delay of path 2, one way [ms]", (1, 5, 10, 25, 50, 100), "delay", "ms", _LARGE)
PANELS = (RATE, ERRORS, DELAY)
