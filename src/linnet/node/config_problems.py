"""Finds what is wrong with a configuration, by its types and beyond them, with the place of each problem.

The description of a type and its check both come from `msgspec.inspect`, so that words, checks and values
cannot differ. Numbers without a stated bound must be above zero: they are counts, bytes and durations.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from enum import Enum

from msgspec import Struct, inspect

from linnet.core.errors import BadText, ConfigError
from linnet.identity.addresses import (
    is_loopback,
    parse_contact,
    parse_device,
    parse_hint,
    parse_http,
    parse_person,
    split_hint,
)
from linnet.node.config import NodeConfig, NodeSection
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.profile_filter import filter_faults
from linnet.rooms.config import RelayPolicy

Path = tuple[str | int, ...]
"""The place of a value: keys, and the indexes of elements in arrays of tables."""

LARGEST = 2**63 - 1
NOT_ON_EDGE = (
    "has no meaning on the edge, where a node has links to its proxies and on local networks alone: "
    "take it or edge.proxies out"
)
_SHOWN_CHARS = 60


class Problem(Struct, frozen=True):
    """A problem of a configuration, and its place."""

    path: Path
    what: str


def allowed(kind: inspect.Type) -> str:
    """Describe the values of a type in words."""
    match kind:
        case inspect.UnionType():
            return " or ".join(allowed(each) for each in kind.types if not isinstance(each, inspect.NoneType))
        case inspect.BoolType():
            return "true or false"
        case inspect.EnumType():
            return "one of " + ", ".join(f'"{value}"' for value in _values(kind.cls))
        case inspect.IntType():
            return "a whole number" + _range(kind)
        case inspect.FloatType():
            return "a number" + _range(kind)
        case inspect.StrType():
            return "text" + _length(kind.min_length, kind.max_length, "characters")
        case inspect.VarTupleType():
            if isinstance(kind.item_type, inspect.StructType):
                return "a list of tables"
            return f"a list of {allowed(kind.item_type)}, {kind.max_length} at most"
        case _:
            return "a table"


def problems(value: object, kind: inspect.Type, path: Path) -> list[Problem]:
    """Return all problems of a value of this type, each with its place; empty if it is valid."""
    match kind:
        case inspect.StructType():
            return _struct_problems(value, kind, path)
        case inspect.VarTupleType() if isinstance(value, list):
            if kind.max_length is not None and len(value) > kind.max_length:
                return [Problem(path, f"{len(value)} elements; at most {kind.max_length} are allowed")]
            return [
                problem
                for number, each in enumerate(value)
                for problem in problems(each, kind.item_type, (*path, number))
            ]
        case inspect.DictType() if isinstance(value, dict):
            return [
                problem
                for key, each in value.items()
                for problem in problems(key, kind.key_type, (*path, key))
                + problems(each, kind.value_type, (*path, key))
            ]
        case _:
            if _fits(value, kind):
                return []
            return [Problem(path, f"{_shown(value)} is wrong; allowed is {allowed(kind)}")]


def _struct_problems(value: object, kind: inspect.StructType, path: Path) -> list[Problem]:
    if not isinstance(value, dict):
        return [Problem(path, f"{_shown(value)} is wrong; allowed is a table of settings")]
    fields = {field.name: field for field in kind.fields}
    found: list[Problem] = []
    for key, each in value.items():
        if key in fields:
            found += problems(each, fields[key].type, (*path, key))
        else:
            found.append(Problem((*path, key), _unknown(key, list(fields))))
    found += [
        Problem(path, f"{name} is missing; it is {allowed(field.type)}")
        for name, field in fields.items()
        if field.required and name not in value
    ]
    return found


def _unknown(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key[:_SHOWN_CHARS], known, n=1)
    if close:
        return f"there is no such setting; did you mean {close[0]}?"
    return f"there is no such setting; here are {', '.join(known)}"


def _fits(value: object, kind: inspect.Type) -> bool:
    match kind:
        case inspect.UnionType():
            return any(_fits(value, each) for each in kind.types)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.EnumType():
            return isinstance(value, str) and value in _values(kind.cls)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _within(value, kind)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool) and _within(value, kind)
        case inspect.StrType():
            shortest = 0 if kind.min_length is None else kind.min_length
            longest = LARGEST if kind.max_length is None else kind.max_length
            return isinstance(value, str) and shortest <= len(value) <= longest
        case _:
            return False


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    if not math.isfinite(value) or abs(value) > LARGEST:
        return False
    if kind.le is not None and value > kind.le:
        return False
    return value >= kind.ge if kind.ge is not None else value > (kind.gt or 0)


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is None:
        return f" above {kind.gt or 0}"
    return f" from {kind.ge} to {kind.le}" if kind.le is not None else f" from {kind.ge} on"


def _length(shortest: int | None, longest: int | None, of: str) -> str:
    if longest is None:
        return ""
    return f" of {shortest} to {longest} {of}" if shortest else f" of at most {longest} {of}"


def _values(cls: type[Enum]) -> list[str]:
    return [str(member.value) for member in cls]


def _shown(value: object) -> str:
    match value:
        case bool():
            text = str(value).lower()
        case int():
            text = str(value) if abs(value) <= LARGEST else "so large a number"
        case str() | float():
            text = repr(value)
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def problems_of(config: NodeConfig) -> list[Problem]:
    """Return the problems that types alone do not show: addresses, repeated streams, listening too wide."""
    found: list[Problem] = []
    for number, address in enumerate(config.node.listen):
        found += _listen_problem(config.node, number, address)
    found += _addresses_problems(("node", "advertise"), parse_hint, config.node.advertise)
    found += _addresses_problems(("node", "trackers"), parse_contact, config.node.trackers)
    found += _addresses_problems(("node", "bootstrap"), parse_contact, config.node.bootstrap)
    for name, stream in config.streams.items():
        found += _addresses_problems(("streams", name, "trackers"), parse_contact, stream.trackers)
    if config.tracker.enabled and config.tracker.control is not config.overlay.control:
        found.append(
            Problem(("tracker", "control"), "differs from overlay.control; a network speaks one of them")
        )
    found += _addresses_problems(("relay", "allow"), parse_person, config.relay.allow)
    if config.relay.allow and config.relay.policy is RelayPolicy.OPEN and not config.relay.stamp_bits:
        what = 'has no meaning where relay.policy is "open" and relay.stamp_bits is 0: take one of them out'
        found.append(Problem(("relay", "allow"), what))
    found += [Problem(("trackerless", name), what) for name, what in filter_faults(config.trackerless)]
    found += [*_http_problem(config), *_edge_problems(config)]
    found += _addresses_problems(("names", "stores"), parse_contact, config.names.stores)
    found += _addresses_problems(("kademlia", "bootstrap"), parse_contact, config.kademlia.bootstrap)
    for name, is_enabled in (("kademlia", config.kademlia.enabled), ("content", config.content.enabled)):
        if is_enabled and config.edge.proxies:
            found.append(Problem((name, "enabled"), NOT_ON_EDGE))
    if config.content.enabled and not config.kademlia.enabled and not config.edge.proxies:
        what = "needs the hash table, by which nodes find each other: set kademlia.enabled = true"
        found.append(Problem(("content", "enabled"), what))
    seen: dict[str, None] = {}
    for number, rule in enumerate(config.storage):
        if rule.stream in seen:
            found.append(Problem(("storage", number, "stream"), f"{rule.stream!r} is stored twice; keep one"))
        seen[rule.stream] = None
    return found


def check(config: NodeConfig) -> None:
    """Raise `ConfigError` with all problems; a configuration from a file was checked already."""
    found = problems_of(config)
    if found:
        raise ConfigError("\n".join(f"{path_text(problem.path)}: {problem.what}" for problem in found))


def check_start(config: NodeConfig) -> None:
    """Check the configuration of a node that starts, with settings that the command line may complete."""
    check(config)
    if config.relay.http and not config.relay.enabled:
        raise ConfigError(
            "relay.http: has no meaning where relay.enabled is false; set that to true, or start with: "
            "linnet up --role relay"
        )


def path_text(path: Path) -> str:
    """Return a path as users write it: ``streams."a b".degree``, ``storage[2].quota``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if part.isidentifier() and part.isascii() else f'"{part}"'
            text += f".{shown}" if text else shown
    return text


def _listen_problem(node: NodeSection, number: int, address: str) -> list[Problem]:
    path: Path = ("node", "listen", number)
    found = _address_problem(path, lambda text: parse_hint(text, any_port=True), address)
    if found:
        return found
    host = split_hint(address)[0]
    if not is_loopback(host) and not node.listen_wide:
        wider = f"{address!r} can be reached from other machines; set listen_wide = true if that is meant, "
        return [Problem(path, wider + "or listen at 127.0.0.1")]
    if host in ("0.0.0.0", "::") and not node.advertise:  # noqa: S104 - compared, not bound
        return [
            Problem(path, f"{address!r} is every address of this machine: name in advertise the one to dial")
        ]
    return []


def _edge_problems(config: NodeConfig) -> list[Problem]:
    """Return the problems of the edge: roles that it excludes, and a proxy's clients given in two ways."""
    found = _addresses_problems(("edge", "proxies"), parse_contact, config.edge.proxies)
    found += _addresses_problems(("proxy", "allow"), parse_device, config.proxy.allow)
    if config.proxy.allow and config.proxy.open:
        found.append(
            Problem(("proxy", "allow"), "has no meaning where proxy.open is true: take one of them out")
        )
    if not config.edge.proxies:
        return found
    others: dict[Path, bool] = {
        ("node", "listen"): config.node.listen not in ((), NodeSection().listen),
        ("node", "advertise"): bool(config.node.advertise),
        ("node", "trackers"): bool(config.node.trackers),
        ("node", "bootstrap"): bool(config.node.bootstrap),
        ("node", "overlay"): config.node.overlay is not Overlay.TRACKER,
        ("trackerless", "enabled"): config.trackerless.enabled,
        ("tracker", "enabled"): config.tracker.enabled,
        ("relay", "enabled"): config.relay.enabled,
        ("proxy", "enabled"): config.proxy.enabled,
        ("storage",): bool(config.storage),
    }
    return [*found, *(Problem(path, NOT_ON_EDGE) for path, is_set in others.items() if is_set)]


def _http_problem(config: NodeConfig) -> list[Problem]:
    path: Path = ("relay", "http")
    if not config.relay.http:
        return []
    found = _address_problem(path, parse_http, config.relay.http)
    if found:
        return found
    if not is_loopback(parse_http(config.relay.http).host) and not config.node.listen_wide:
        wider = (
            f"{config.relay.http!r} can be reached from other machines; set node.listen_wide = true if that "
        )
        return [Problem(path, wider + "is meant, or serve it at 127.0.0.1")]
    return []


def _addresses_problems(
    path: Path, parse: Callable[[str], object], addresses: Sequence[str]
) -> list[Problem]:
    return [
        problem
        for number, address in enumerate(addresses)
        for problem in _address_problem((*path, number), parse, address)
    ]


def _address_problem(path: Path, parse: Callable[[str], object], text: str) -> list[Problem]:
    try:
        parse(text)
    except BadText as error:
        return [Problem(path, str(error))]
    return []
