"""What is wrong with a configuration that its types do not see, each with the place where it stands."""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.errors import BadText, ConfigError
from linnet.node.addresses import (
    is_loopback,
    parse_contact,
    parse_device,
    parse_hint,
    parse_http,
    parse_person,
    split_hint,
)
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.config_types import Problem
from linnet.node.content_section import content_problems
from linnet.node.kademlia_section import (
    kademlia_problems,
)
from linnet.node.names_section import names_problems
from linnet.node.toml_lines import Path
from linnet.overlay.config import Overlay
from linnet.overlay.trackerless.plausible import filter_faults
from linnet.rooms.config import RelayPolicy


def problems_of(config: NodeConfig) -> list[Problem]:
    """What types alone do not see: addresses, repeated streams, listening wider than was said."""
    found: list[Problem] = []
    for number, address in enumerate(config.node.listen):
        found += _listen_problem(config.node, number, address)
    for number, address in enumerate(config.node.advertise):
        found += _address_problem(("node", "advertise", number), parse_hint, address)
    for number, address in enumerate(config.node.trackers):
        found += _address_problem(("node", "trackers", number), parse_contact, address)
    for number, address in enumerate(config.node.bootstrap):
        found += _address_problem(("node", "bootstrap", number), parse_contact, address)
    for name, stream in config.streams.items():
        for number, address in enumerate(stream.trackers):
            found += _address_problem(("streams", name, "trackers", number), parse_contact, address)
    if config.tracker.enabled and config.tracker.control is not config.overlay.control:
        found.append(
            Problem(("tracker", "control"), "differs from overlay.control; a network speaks one of them")
        )
    for number, person in enumerate(config.relay.allow):
        found += _address_problem(("relay", "allow", number), parse_person, person)
    if config.relay.allow and config.relay.policy is RelayPolicy.OPEN:
        found.append(
            Problem(("relay", "allow"), 'has no meaning where relay.policy is "open": take one of them out')
        )
    found += [Problem(("trackerless", name), what) for name, what in filter_faults(config.trackerless)]
    found += [*_http_problem(config), *_edge_problems(config), *names_problems(config.names)]
    is_edge = bool(config.edge.proxies)
    found += kademlia_problems(config.kademlia, is_edge)
    found += content_problems(config.content, config.kademlia.enabled, is_edge)
    seen: dict[str, None] = {}
    for number, rule in enumerate(config.storage):
        if rule.stream in seen:
            found.append(Problem(("storage", number, "stream"), f"{rule.stream!r} is stored twice; keep one"))
        seen[rule.stream] = None
    return found


def check(config: NodeConfig) -> None:
    """Raise `ConfigError` with all that is wrong; a configuration from a file was checked already."""
    found = problems_of(config)
    if found:
        raise ConfigError("\n".join(f"{path_text(problem.path)}: {problem.what}" for problem in found))


def check_start(config: NodeConfig) -> None:
    """The same of a node that starts: what a file leaves to the command line has to be decided by then."""
    check(config)
    if config.relay.http and not config.relay.enabled:
        raise ConfigError(
            "relay.http: has no meaning where relay.enabled is false; set that to true, or start with: "
            "linnet up --role relay"
        )


def path_text(path: Path) -> str:
    """A path as people write it: ``streams."a b".degree``, ``storage[2].quota``."""
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
    """A node on the edge has no other role; whom a proxy serves is said once."""
    found: list[Problem] = []
    for number, address in enumerate(config.edge.proxies):
        found += _address_problem(("edge", "proxies", number), parse_contact, address)
    for number, device in enumerate(config.proxy.allow):
        found += _address_problem(("proxy", "allow", number), parse_device, device)
    if config.proxy.allow and config.proxy.open:
        found.append(
            Problem(("proxy", "allow"), "has no meaning where proxy.open is true: take one of them out")
        )
    if not config.edge.proxies:
        return found
    told = (
        "has no meaning on the edge, where a node has links to its proxies and on local networks alone: "
        "take it or edge.proxies out"
    )
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
    return [*found, *(Problem(path, told) for path, is_set in others.items() if is_set)]


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


def _address_problem(path: Path, parse: Callable[[str], object], text: str) -> list[Problem]:
    try:
        parse(text)
    except BadText as error:
        return [Problem(path, str(error))]
    return []
