"""Scenarios as typed, immutable objects that read and write the TOML of docs/scenarios.md.

Fields have the names, units and meanings of that page's keys: sizes, rates and times are text with a unit. A field that
is None is left out of the TOML, so the simulator's default applies.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import tomli_w
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.strategies import configure_union_passthrough

from tresse import _native

Probability = str | float
"""A share from 0 to 1, or text such as "1%"."""

Setting = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """Random Early Detection (`[path.red]`)."""

    weight: Probability | None = None
    min_threshold: int | None = None
    max_threshold: int | None = None
    max_probability: Probability | None = None
    idle_rate: float | None = None
    ecn: bool | None = None
    uniform_drops: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoDel:
    """Controlled delay (`[path.codel]`, RFC 8289)."""

    target: str | None = None
    interval: str | None = None
    ecn: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GilbertElliott:
    """Losses in bursts (`[path.gilbert_elliott]`)."""

    p: Probability
    r: Probability
    good_loss: Probability | None = None
    bad_loss: Probability | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a link at the virtual time `at` (`[[path.change]]`)."""

    at: str
    rate: str | None = None
    delay: str | None = None
    loss: Probability | None = None
    mtu: str | None = None
    outage: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of a path. In `Path.reverse`, a field that is None has the value of the forward direction."""

    rate: str | None = None
    delay: str | None = None
    queue: str | None = None
    discipline: str | None = None
    loss: Probability | None = None
    bit_error_rate: Probability | None = None
    bit_errors_spare: str | None = None
    duplicate: Probability | None = None
    jitter: str | None = None
    reorder: Probability | None = None
    reorder_delay: str | None = None
    mtu: str | None = None
    red: Red | None = None
    codel: CoDel | None = None
    gilbert_elliott: GilbertElliott | None = None
    changes: tuple[Change, ...] | None = None
    """Changes; None to use those of the forward direction, empty for none."""


@dataclass(frozen=True, kw_only=True)
class Path(Link):
    """A path: its forward link, and the differences of the reverse one (`[[path]]`)."""

    joins: str | None = None
    leaves: str | None = None
    shares: int | None = None
    """Index of the path whose links this path uses."""
    reverse: Link | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sporadic:
    """A stream with a message now and then (`[[traffic.sporadic]]`)."""

    stream: int
    gap: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Traffic of the sender (`[traffic]`)."""

    streams: int | None = None
    message_size: str | None = None
    ordered: bool | None = None
    refill: str | None = None
    read: str | None = None
    volume: str | None = None
    start: str | None = None
    stop: str | None = None
    sporadic: tuple[Sporadic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross:
    """TCP traffic that crosses a path (`[[cross]]`)."""

    kind: str
    path: int | None = None
    reverse: bool | None = None
    flows: int | None = None
    users: int | None = None
    think: str | None = None
    request: str | None = None
    response: str | None = None
    response_shape: float | None = None
    start: str | None = None
    stop: str | None = None
    initial_window: int | None = None
    rto_min: str | None = None
    receive_window: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Links between hosts and routers of paths with cross traffic (`[access]`)."""

    rate: str | None = None
    delay: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Processor time of hosts (`[host]`)."""

    packet_time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Additional records of a run (`[record]`)."""

    recovery: bool | None = None
    interval: str | None = None


@dataclass(frozen=True, slots=True)
class Transport:
    """Settings of the transport by the names of docs/switches.md, such as `experiment.min_ssthresh`.

    Raises `ValueError` for an unknown name; values are checked with the scenario.
    """

    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        for name in self.settings:
            if name not in _setting_names():
                raise ValueError(f'no setting of the transport is called "{name}"; docs/switches.md lists them')


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One run: the paths between two hosts, their transport, the traffic, and the duration."""

    paths: tuple[Path, ...]
    name: str | None = None
    seed: int | str | None = None
    preset: str | None = None
    settle: str | None = None
    measure: str | None = None
    start_jitter: str | None = None
    framing: str | None = None
    loss_oracle: bool | None = None
    traffic: Traffic | None = None
    transport: Transport | None = None
    sender: Transport | None = None
    receiver: Transport | None = None
    cross: tuple[Cross, ...] = ()
    access: Access | None = None
    host: Host | None = None
    record: Record | None = None

    @classmethod
    def from_toml(cls, text: str, name: str = "scenario") -> Self:
        """Read TOML as the simulator does; errors call the scenario `name`.

        Raises `ScenarioError` with the key and the accepted values.
        """
        scenario: Self = _converter().structure(json.loads(_native.document(text, name=name)), cls)
        return scenario

    def to_toml(self) -> str:
        """Write TOML that `from_toml`, `tresse sim` and `tresse.run` read."""
        document = _converter().unstructure(self)
        if self.seed is not None:
            # TOML has no integers above 2^63 - 1; the simulator reads a text too.
            document["seed"] = str(self.seed)
        return tomli_w.dumps(document)

    def check(self) -> None:
        """Raise `ScenarioError` if the simulator would refuse the scenario."""
        _native.resolve(self.to_toml(), {}, name=self.name or "scenario")


RENAMED: Mapping[type, Mapping[str, str]] = {
    Link: {"changes": "change"},
    Path: {"changes": "change"},
    Scenario: {"paths": "path"},
}
"""Fields whose key in the TOML has another name: arrays of tables have singular names there."""


def _truth(value: object, _: object) -> bool:
    """Return the value of a boolean or of its text, which the simulator accepts too."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[str(value)]


def _in_tables(settings: Mapping[str, Setting]) -> dict[str, Any]:
    """Return settings in the form of TOML: `group.name` as `name` in the table `group`."""
    table: dict[str, Any] = {}
    for full_name, value in settings.items():
        *groups, name = full_name.split(".")
        inner = table
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[name] = value
    return table


def _by_full_names(table: Mapping[str, Any]) -> dict[str, Setting]:
    """Return settings by their full names, from the tables of a TOML document."""
    settings: dict[str, Setting] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            settings |= {f"{name}.{inner}": single for inner, single in _by_full_names(value).items()}
        else:
            settings[name] = value
    return settings


@cache
def _setting_names() -> frozenset[str]:
    return frozenset(name for name, *_ in _native.switches())


@cache
def _converter() -> Converter:
    made = Converter(omit_if_default=True, forbid_extra_keys=True)
    made.register_structure_hook(bool, _truth)
    made.register_unstructure_hook(Transport, lambda transport: _in_tables(transport.settings))
    made.register_structure_hook(Transport, lambda table, _: Transport(_by_full_names(table)))
    configure_union_passthrough(Setting | None, made)
    for cls, names in RENAMED.items():
        keys: dict[str, Any] = {attribute: override(rename=key) for attribute, key in names.items()}
        made.register_structure_hook(cls, make_dict_structure_fn(cls, made, _cattrs_forbid_extra_keys=True, **keys))
        made.register_unstructure_hook(cls, make_dict_unstructure_fn(cls, made, _cattrs_omit_if_default=True, **keys))
    return made
