"""Upper bound of the throughput of any schedule over given paths with a given buffer.

A byte occupies the buffer for at least one round-trip time of the path that carries it. With rates r_i the buffer
therefore holds at least the sum of r_i × RTT_i, and no path carries more than its own rate. The largest sum of r_i
under both conditions uses the paths with the shortest round-trip times first. Acknowledgements are assumed to return on
the path of their data; on a faster path they would free the buffer earlier.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundPath:
    """A path without a queue."""

    payload_mbps: float
    """User data that the path can carry, in Mbit/s."""
    rtt_ms: float
    """Propagation delay of both directions and the transmission time of one packet."""

    @classmethod
    def of(cls, rate_mbps: float, delay_ms: float, packet_bytes: int, payload_bytes: int) -> "BoundPath":
        """Return the path over a link of `rate_mbps` with `delay_ms` in each direction and packets of one size."""
        transmission_ms = packet_bytes * 8 / (rate_mbps * 1000)
        return cls(rate_mbps * payload_bytes / packet_bytes, 2 * delay_ms + transmission_ms)


def throughput_bound(paths: Iterable[BoundPath], buffer_bytes: int) -> float:
    """Return the largest throughput in Mbit/s of user data over `paths` with a buffer of `buffer_bytes`."""
    left_kbit = buffer_bytes * 8 / 1000
    total = 0.0
    for path in sorted(paths, key=lambda path: path.rtt_ms):
        rate = min(path.payload_mbps, left_kbit / path.rtt_ms)
        total += rate
        left_kbit -= rate * path.rtt_ms
    return total
