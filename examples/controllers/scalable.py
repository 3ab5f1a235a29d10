"""Scalable TCP (Kelly 2003): a window grows by a share of itself and loses a share of itself.

So the time between losses does not depend on how large it is. For long and fast paths, where one packet more for each
window takes minutes to make good a loss. Loses, in fairness, where a path is shared: who has more gets more. A window
too small for that grows as RFC 9260 says. The configuration is the percentage that a loss takes away, 12.5 unless
given. The same as scalable.rs and scalable.c.
"""

from tresse.schedulers import Ack, Situation


class Scalable:
    """Every path by itself, with nothing to remember."""

    def __init__(self, config: str) -> None:
        percent = float(config) if config else 12.5
        if not 0 < percent < 100:
            raise ValueError(f'"{config}" is no percentage between 0 and 100, such as 12.5')
        self.keeps = 1 - percent / 100

    def on_ack(self, situation: Situation, ack: Ack) -> tuple[int, int] | None:
        """Grow if the window may, and was used to the full."""
        window = situation.window
        if not ack.may_grow or not ack.fully_used:
            return None
        if window.cwnd <= window.ssthresh:
            return window.cwnd + min(ack.bytes, window.packet), window.ssthresh
        return window.cwnd + max(ack.bytes // 100, window.packet * ack.bytes // window.cwnd), window.ssthresh

    def on_loss(self, situation: Situation, _ack: Ack) -> tuple[int, int]:
        """Keep most of the window, and four packets at least."""
        window = situation.window
        left = max(int(window.cwnd * self.keeps), 4 * window.packet)
        return left, left
