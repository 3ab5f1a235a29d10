"""The path that lost least lately, and of paths that are alike in that the faster one.

For links whose losses come and go, radio above all: what is lost on one path blocks what arrived on the others. Loses
where a path has to be tried to find out that it is clean again. The configuration is the difference in percent that
counts as none, 1 unless given. The same policy as cleanest.rs.
"""

import math

from tresse.schedulers import Offer, Path


class Cleanest:
    """Paths in steps of so much loss."""

    def __init__(self, config: str) -> None:
        percent = float(config) if config else 1.0
        if not 0 < percent <= 100:
            raise ValueError(f'"{config}" is no percentage above 0, such as 0.5')
        self.step = percent / 100

    def pick(self, _now: float, offer: Offer) -> int | None:
        """The best of those that are open."""
        best = min(offer.open(), key=self.badness, default=None)
        return best.id if best else None

    def badness(self, path: Path) -> tuple[int, float, int]:
        """How dirty it is, in steps; then how slow."""
        return (
            int(path.loss / self.step),
            math.inf if path.srtt is None else path.srtt,
            path.id,
        )
