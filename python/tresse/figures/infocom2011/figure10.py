"""Figure 10: messages and a photo over 56 kbit/s, and the claims W3 and W4."""

from tresse.figures.infocom2011 import talks
from tresse.figures.infocom2011.talks import FCFS, PRIORITY, Bottleneck

FIGURE = talks.figure(
    10,
    "Figure 10: messages and a photo over 56 kbit/s, RTT 300 ms",
    Bottleneck(
        scenario="infocom2011/slow-dumbbell.toml",
        users=1,
        runs={"quick": 32, "paper": 100},
        latency_unit=("s", 1000.0),
        published_ms={FCFS: 23_000, PRIORITY: 5_000},
        reduction=(0.70, 0.85),
    ),
    (
        "W3",
        "Over 56 kbit/s with a buffer of 40 packets, the messages' mean latency falls from around 23 s to about 5 s, "
        "which is 78 % less.",
        "23 s, 5 s, 78 %",
    ),
    "W4",
)
