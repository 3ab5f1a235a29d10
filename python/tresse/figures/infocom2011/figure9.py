"""Figure 9: messages and a photo over 10 Mbit/s, and the claims W1 and W2."""

from tresse.figures.infocom2011 import talks
from tresse.figures.infocom2011.talks import Bottleneck

FIGURE = talks.figure(
    9,
    "Figure 9: messages and a photo over 10 Mbit/s, RTT 300 ms",
    Bottleneck(
        scenario="infocom2011/dumbbell.toml",
        users=10,
        runs={"quick": 10, "paper": 10},
        latency_unit=("ms", 1.0),
        published_ms={},
        reduction=(0.20, 0.40),
    ),
    (
        "W1",
        "Over 10 Mbit/s with a buffer of one bandwidth-delay product, priority instead of first come, first served "
        "cuts the messages' mean latency by nearly 30 %.",
        "nearly 30 %",
    ),
    "W2",
)
