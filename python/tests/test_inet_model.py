"""Figure 4 of PFLDNeT 2010 by the stack and by a model of the rules of the papers' simulator, at equal settings.

Below full throughput the order of packets and SACKs locks in: a transfer keeps for its whole length what its first
second gave it, and a rule that moves one packet can change it by a quarter. So equal settings include the rules that no
setting of the stack changes (`STACK`). Then both send the same packets at the same times.
"""

import json
from dataclasses import dataclass, replace
from functools import cache

import pytest
from inet_model import MESSAGE, PACKET, Model, Rules, Setup

import tresse
from tresse import _native, scenarios
from tresse.figures.buffers import CHUNK_BYTES
from tresse.figures.pfldnet2010 import delays
from tresse.figures.pfldnet2010.delays import CURVES, FIXED, FULL_MBPS, ROUND_ROBIN, Curve

TOLERANCE = 0.03
SETTLE_S, MEASURE_S = 4, 4
"""As much as it takes: what has locked in by then stays."""
LONG_S = 20
"""Where packets are not the same, messages that a hole holds back come in bulk at other times."""
FRAMING = 7
"""PPP, as in the simulator."""
SEED = 1
TEXT = scenarios.read(delays.SCENARIO)
SIGMAS_KIB = (64, 96, 128, 160, 192, 224, 256, 288, 320)

STACK = Rules(
    # Reading that opens the window by a quarter of the buffer is told at once.
    window_updates="quarter",
    # What is next in its stream cannot be reneged on.
    nr_sack="in_sequence",
    # Silly window avoidance of the receiver: RFC 1122 section 4.2.3.3 with one packet.
    least_announced=PACKET,
    # RFC 9260 section 6.7, but for data that overtakes data because it takes another path.
    gaps_may_wait="while_concurrent",
    # A message is taken as a whole or not at all.
    send_buffer="holds",
    # Packets are asked for when the application has had its turn.
    send_at="end_of_refill",
    # RFC 9260 section 1.3: the DATA chunk, with its header.
    unit=CHUNK_BYTES,
    booked=CHUNK_BYTES,
    initial_window=3 * CHUNK_BYTES,
)
"""The rules of the stack, and of the simulator where a setting of the stack makes them its own."""

SETTINGS = {
    "transport.path_scheduler": "in_order",
    "transport.experiment.peer_window_test": "sack",
    "transport.max_burst": "4",
    "transport.delayed_ack": "true",
    "transport.sack_path": "first_data",
    "transport.stream_scheduler": "round_robin",
    "transport.nr_sack": "delivered",
    "transport.buffer_split": "both",
    "transport.experiment.split_counts": "queued",
    "transport.experiment.split_overbooking": "false",
    "traffic.read": "after_sack",
}
"""The settings that make them so."""


@dataclass(frozen=True)
class Alternative:
    """One of the settings with another value, and that rule of the model."""

    rules: Rules
    setting: tuple[str, str]


ALTERNATIVES = {
    "paths in turn": Alternative(replace(STACK, path_order="turns"), ("transport.path_scheduler", "round_robin")),
    "window at each packet": Alternative(
        replace(STACK, peer_window="each_packet", least_window=CHUNK_BYTES),
        ("transport.experiment.peer_window_test", "packet"),
    ),
    "no limit of bursts": Alternative(replace(STACK, burst=0), ("transport.max_burst", "0")),
    "no DAC": Alternative(replace(STACK, delayed_ack=False), ("transport.delayed_ack", "false")),
    "SACKs to the last packet's path": Alternative(
        replace(STACK, sack_path="last_data"), ("transport.sack_path", "last_data")
    ),
    "SACKs in turn": Alternative(replace(STACK, sack_path="round_robin"), ("transport.sack_path", "round_robin")),
    "reading before the SACK": Alternative(replace(STACK, sack_before_read=False), ("traffic.read", "before_sack")),
}

NON_RENEGABLE_WHEN_READ = {
    (50, FIXED): {128},
    (50, ROUND_ROBIN): {160},
    (75, ROUND_ROBIN): {256},
    (75, FIXED): {96},
}
"""Where the simulator's own rules come to something else because its NR-SACK waits until the application has read.

By delay of path B and mapping, in KiB. The stack reports a message as non-renegable when it is the next of its stream.
"""
SEVERAL_RULES = {(75, FIXED): {128, 160}}
"""Where they do because of several of the rules in `STACK`, none of which is enough by itself."""


def overrides(curve: Curve, sigma_kib: int, settings: dict[str, str], measure_s: int = MEASURE_S) -> dict[str, str]:
    return {
        **delays.point(curve, sigma_kib).overrides,
        **settings,
        "start_jitter": "0s",
        "framing": f"{FRAMING}B",
        "settle": f"{SETTLE_S}s",
        "measure": f"{measure_s}s",
    }


def setup(curve: Curve, sigma_kib: int, rules: Rules) -> Setup:
    return Setup(
        # Of user data; in the units of the stack as the figures have it.
        sigma=sigma_kib * delays.KIB * rules.booked // MESSAGE,
        fixed=curve.mapping == FIXED,
        delays_ms=(delays.DELAY_A_MS, curve.delay_b_ms),
        framing=FRAMING,
        first_stream=first_stream(),
    )


@cache
def first_stream() -> int:
    """The stream that the application begins with, which the seed decides."""
    trace = _native.trace(TEXT, overrides(Curve(10, FIXED), 64, {}) | {"settle": "1s", "measure": "1s"}, SEED)
    events = (json.loads(line) for line in trace.splitlines())
    return next(int(event["path"]) for event in events if event.get("e") == "sent")


def by_stack(curve: Curve, sigma_kib: int, settings: dict[str, str], measure_s: int = MEASURE_S) -> float:
    return tresse.run(TEXT, overrides(curve, sigma_kib, settings, measure_s), SEED).throughput_mbps


def by_model(curve: Curve, sigma_kib: int, rules: Rules, measure_s: int = MEASURE_S) -> float:
    return Model(setup(curve, sigma_kib, rules), rules).throughput_mbps(SETTLE_S, measure_s)


def differ(stack: float, model: float) -> bool:
    return abs(stack / model - 1) > TOLERANCE


def first_difference(curve: Curve, sigma_kib: int, rules: Rules, settings: dict[str, str]) -> str:
    """The first packet that one of them sends and the other does not: where to look for the rule."""
    model = Model(setup(curve, sigma_kib, rules), rules)
    model.throughput_mbps(0, SETTLE_S)
    of_model = [(at - model.sent[0][0], path, tsn + 1) for at, path, tsn in model.sent]
    events = map(json.loads, _native.trace(TEXT, overrides(curve, sigma_kib, settings), SEED).splitlines())
    sent = [event for event in events if event.get("e") == "sent"]
    of_stack = [(round((one["t"] - sent[0]["t"]) * 1e9), one["path"], one["tsn"]) for one in sent]
    for ours, theirs in zip(of_stack, of_model, strict=False):
        # The trace has microseconds and a little more.
        if abs(ours[0] - theirs[0]) > 1000 or ours[1:] != theirs[1:]:
            return f"packet {ours[2]}: (ns, path, TSN) is {ours} in the stack, {theirs} in the model"
    return "the same packets"


def disagreements(curve: Curve, sigmas: tuple[int, ...], rules: Rules, settings: dict[str, str]) -> list[str]:
    found = []
    for sigma in sigmas:
        stack, model = by_stack(curve, sigma, settings), by_model(curve, sigma, rules)
        if differ(stack, model):
            where = first_difference(curve, sigma, rules, settings)
            found.append(f"{curve.text}, {sigma} KiB: {stack:.2f} Mbit/s, model {model:.2f}; {where}")
    return found


def sigmas_of(curve: Curve) -> tuple[int, ...]:
    """On like paths every sigma is enough."""
    return SIGMAS_KIB if curve.delay_b_ms > delays.DELAY_A_MS else (64, 320)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.text)
def test_stack_and_model_agree_on_figure_4(curve: Curve) -> None:
    assert disagreements(curve, sigmas_of(curve), STACK, SETTINGS) == []


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_stack_and_model_agree_on_the_alternatives(name: str) -> None:
    alternative = ALTERNATIVES[name]
    settings = SETTINGS | dict([alternative.setting])
    assert [
        line
        for curve in CURVES
        if curve.delay_b_ms > delays.DELAY_A_MS
        for line in disagreements(curve, (128, 224), alternative.rules, settings)
    ] == []


def test_the_model_is_full_where_the_paper_says() -> None:
    """By the simulator's own rules, on the paper's steps."""
    enough = {(10, FIXED): 64, (10, ROUND_ROBIN): 64, (75, FIXED): 224, (75, ROUND_ROBIN): 288}
    for (delay, mapping), sigma in enough.items():
        curve = Curve(delay, mapping)
        full = {at for at in sigmas_of(curve) if by_model(curve, at, Rules()) >= FULL_MBPS}
        assert full == {at for at in sigmas_of(curve) if at >= sigma}, curve.text


def test_where_rules_that_no_setting_changes_make_a_difference() -> None:
    after_reading, several = {}, {}
    for curve in CURVES:
        found = {at: by_stack(curve, at, SETTINGS, LONG_S) for at in sigmas_of(curve)}
        other = {at: rate for at, rate in found.items() if differ(rate, by_model(curve, at, Rules(), LONG_S))}
        one = replace(STACK, nr_sack="read")
        alone = {at for at, rate in other.items() if differ(rate, by_model(curve, at, one, LONG_S))}
        assert all(rate < FULL_MBPS for rate in other.values()), "nothing that is full depends on them"
        after_reading[curve.delay_b_ms, curve.mapping] = alone
        several[curve.delay_b_ms, curve.mapping] = other.keys() - alone
    assert {curve: sigmas for curve, sigmas in after_reading.items() if sigmas} == NON_RENEGABLE_WHEN_READ
    assert {curve: sigmas for curve, sigmas in several.items() if sigmas} == SEVERAL_RULES
