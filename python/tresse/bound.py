"""Upper bound of every schedule: the throughput that a buffer allows over given paths.

A byte occupies the buffer for at least one round-trip time of the path that carries it. With rates r_i the
buffer therefore holds at least the sum of r_i × RTT_i, and no path carries more than its own rate. The largest
sum of r_i under both conditions fills the shortest round-trip times first. Acknowledgements are taken to come back
on the path of their data; over a faster path they would free the buffer earlier.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundPath:
    """One path without queueing."""

    payload_mbps: float
    """User data that it can carry, in Mbit/s."""
    rtt_ms: float
    """Both ways' propagation delay and one packet's transmission time."""

    @classmethod
    def of(cls, rate_mbps: float, delay_ms: float, packet_bytes: int, payload_bytes: int) -> "BoundPath":
        """Path of a link of `rate_mbps` with `delay_ms` each way and packets of one size."""
        transmission_ms = packet_bytes * 8 / (rate_mbps * 1000)
        return cls(rate_mbps * payload_bytes / packet_bytes, 2 * delay_ms + transmission_ms)


def throughput_bound(paths: Iterable[BoundPath], buffer_bytes: int) -> float:
    """Largest throughput in Mbit/s of user data over `paths` with a buffer of `buffer_bytes`."""
    left_kbit = buffer_bytes * 8 / 1000
    total = 0.0
    for path in sorted(paths, key=lambda path: path.rtt_ms):
        rate = min(path.payload_mbps, left_kbit / path.rtt_ms)
        total += rate
        left_kbit -= rate * path.rtt_ms
    return total
