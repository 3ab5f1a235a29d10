"""How the five retransmission policies rank, and the claims R2 to R6: judges of runs at one rate."""

import math

from tresse.claims import Judgement, Measure, Verdict
from tresse.figures.globecom2005 import transfers
from tresse.figures.globecom2005.transfers import ASAP, LOSS_BASED, POLICIES, SAME, SSTHRESH, policy_text
from tresse.metrics import Mean, mean
from tresse.tables import TIMEOUT_ROWS, Tables

BUFFER_KIB = 64
BUFFERS_KIB = (16, 32, 64, 128, 256)
LOW_LOSS, HIGH_LOSS = 2, 10
"""Loss of path 2 in percent, where only two are compared."""
TOGETHER = 0.10
"""The three policies based on loss count as equal within this share of their mean."""


def mean_of(tables: Tables, column: str, policy: str, loss: int, buffer_kib: int = BUFFER_KIB) -> Mean:
    """Mean of a column over the transfers with one policy, loss and buffer."""
    return transfers.mean_of(tables, column, policy=policy, loss_percent=loss, buffer_kib=buffer_kib)


def row_of(tables: Tables, policy: str, n: int) -> Mean:
    """How often the timer of a path expired for the `n`-th time in a row."""
    return mean_of(tables, f"timeouts_in_row_{n}", policy, HIGH_LOSS)


def _in_a_row(tables: Tables, policy: str) -> Mean:
    """Expirations that followed another one of the same path, nothing sent there acknowledged in between."""
    found = transfers.rows(tables, policy=policy, loss_percent=HIGH_LOSS, buffer_kib=BUFFER_KIB)
    columns = [f"timeouts_in_row_{n}" for n in range(2, TIMEOUT_ROWS + 1)]
    return mean(found[columns].sum(axis=1))


def _together(times: dict[str, Mean]) -> bool:
    values = [times[policy].value for policy in LOSS_BASED]
    return max(values) - min(values) <= TOGETHER * sum(values) / len(values)


def judge_r2(tables: Tables) -> Judgement:
    """SAME takes longest, then ASAP, then the three based on loss together; the gap grows with the loss."""
    high = {policy: mean_of(tables, "completed_s", policy, HIGH_LOSS) for policy in POLICIES}
    low = {policy: mean_of(tables, "completed_s", policy, LOW_LOSS) for policy in POLICIES}
    best = min(high[policy].value for policy in LOSS_BASED)
    gaps = [times[SAME].value - min(times[p].value for p in LOSS_BASED) for times in (low, high)]
    ordered = high[SAME].value > high[ASAP].value > max(high[policy].value for policy in LOSS_BASED)
    measures = tuple(Measure(f"{policy_text(p)}, {HIGH_LOSS} %", high[p], "s", 1) for p in POLICIES)
    finding = (
        f"at {HIGH_LOSS} % RTX-SAME takes {high[SAME].value / best:.2f} times, RTX-ASAP {high[ASAP].value / best:.2f} "
        f"times as long as the best; RTX-SAME is behind by {gaps[0]:.1f} s at {LOW_LOSS} % and {gaps[1]:.1f} s at "
        f"{HIGH_LOSS} %"
    )
    good = ordered and _together(high) and gaps[1] > gaps[0]
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, finding, measures)


def _judge_worst_to_best(tables: Tables, column: str, unit: str, digits: int, asap_between: bool) -> Judgement:
    found = {policy: mean_of(tables, column, policy, HIGH_LOSS) for policy in POLICIES}
    measures = tuple(Measure(f"{policy_text(p)}, {HIGH_LOSS} %", found[p], unit, digits) for p in POLICIES)
    most = max(found[policy].value for policy in LOSS_BASED)
    good = found[SAME].value > max(found[policy].value for policy in POLICIES if policy != SAME)
    if asap_between:
        good = good and found[ASAP].value > most
    order = " > ".join(policy_text(p) for p in sorted(POLICIES, key=lambda p: -found[p].value))
    return Judgement(Verdict.REPRODUCED if good else Verdict.MISSED, f"at {HIGH_LOSS} %: {order}", measures)


def judge_r3(tables: Tables) -> Judgement:
    """SAME has the most timeouts, then ASAP."""
    return _judge_worst_to_best(tables, "timeouts", "timeouts", 1, asap_between=True)


def judge_r4(tables: Tables) -> Judgement:
    """A TSN takes longest with SAME."""
    return _judge_worst_to_best(tables, "tsn_ms", "ms", 1, asap_between=False)


def judge_r5(tables: Tables) -> Judgement:
    """The policies based on loss have about half of the timeouts in a row that SAME has."""
    found = {policy: _in_a_row(tables, policy) for policy in POLICIES}
    share = max(found[policy].value for policy in LOSS_BASED) / found[SAME].value if found[SAME].value else math.inf
    measures = tuple(Measure(f"{policy_text(p)}", found[p], "a transfer", 2) for p in POLICIES)
    finding = f"the policies based on loss have at most {share:.2f} of RTX-SAME's expirations in a row"
    return Judgement(Verdict.REPRODUCED if share <= 0.55 else Verdict.MISSED, finding, measures)


def judge_r6(tables: Tables) -> Judgement:
    """The ranking is the same with every receive buffer."""
    times = {b: {p: mean_of(tables, "completed_s", p, HIGH_LOSS, b) for p in POLICIES} for b in BUFFERS_KIB}
    degrade = all(times[BUFFERS_KIB[0]][p].value > times[BUFFERS_KIB[-1]][p].value for p in POLICIES)
    same = all(_ranks_as_published(by_policy) for by_policy in times.values())
    measures = tuple(
        Measure(f"{policy_text(p)}, {b} KiB", times[b][p], "s", 1) for b in (16, 256) for p in (SAME, ASAP, SSTHRESH)
    )
    finding = "; ".join(f"{buffer} KiB: {_ranking_text(by_policy)}" for buffer, by_policy in times.items())
    return Judgement(Verdict.REPRODUCED if degrade and same else Verdict.MISSED, finding, measures)


def _ranks_as_published(times: dict[str, Mean]) -> bool:
    """SAME is the slowest, and ASAP is faster than none of the rest by more than chance."""
    slowest = max(times, key=lambda policy: times[policy].value)
    return slowest == SAME and all(times[ASAP].high >= times[policy].low for policy in LOSS_BASED)


def _ranking_text(times: dict[str, Mean]) -> str:
    rest = max(LOSS_BASED, key=lambda policy: times[policy].value)
    relation = ">" if times[ASAP].low > times[rest].high else "≈" if times[ASAP].high >= times[rest].low else "<"
    slower = ">" if times[SAME].value > max(times[ASAP].value, times[rest].value) else "<"
    return f"SAME {slower} ASAP {relation} the rest"


JUDGES = {"R2": judge_r2, "R3": judge_r3, "R4": judge_r4, "R5": judge_r5, "R6": judge_r6}
"""By claim."""
