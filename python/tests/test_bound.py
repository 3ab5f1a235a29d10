"""The bound, against worked numbers."""

import pytest

from tresse.bound import BoundPath, throughput_bound

# 10 Mbit/s, 1452 of 1500 bytes: 9.68 Mbit/s of user data; a packet takes 1.2 ms.
FAST = BoundPath.of(10, 10, 1500, 1452)
SLOW = BoundPath.of(10, 75, 1500, 1452)


def test_a_path_is_its_payload_rate_and_round_trip_time() -> None:
    assert pytest.approx(9.68) == FAST.payload_mbps
    assert pytest.approx(21.2) == FAST.rtt_ms
    assert pytest.approx(151.2) == SLOW.rtt_ms


def test_a_small_buffer_serves_the_shortest_round_trip_first() -> None:
    # 8,000 bytes in 21.2 ms are 3.02 Mbit/s, all of them on the fast path.
    assert throughput_bound([SLOW, FAST], 8_000) == pytest.approx(64 / 21.2)


def test_what_the_fast_path_leaves_goes_to_the_slow_one() -> None:
    left_kbit = 100_000 * 8 / 1000 - 9.68 * 21.2
    assert throughput_bound([FAST, SLOW], 100_000) == pytest.approx(9.68 + left_kbit / 151.2)


def test_a_large_buffer_fills_both_paths_and_no_more() -> None:
    assert throughput_bound([FAST, SLOW], 10_000_000) == pytest.approx(19.36)


def test_no_buffer_carries_nothing() -> None:
    assert throughput_bound([FAST, SLOW], 0) == 0
