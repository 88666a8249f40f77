"""The hash table over the network in ``linnet.toml``."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from linnet.core.errors import BadText
from linnet.core.ids import Contact
from linnet.node.addresses import parse_contact
from linnet.node.config_types import Problem
from linnet.overlay.kademlia.config import KademliaConfig

Address = Annotated[str, Meta(min_length=1, max_length=1024)]


class KademliaSection(KademliaConfig, frozen=True, forbid_unknown_fields=True):
    """Whether this node takes part in the hash table over the network, where names are kept, and how."""

    enabled: bool = False
    """Whether it does. It then links to nodes that it looks something up at, and keeps for anybody."""
    bootstrap: Annotated[tuple[Address, ...], Meta(max_length=64)] = ()
    """Nodes of it to begin with, `KEY@HOST:PORT` each; any two that are up will do."""


def kademlia_config(section: KademliaSection) -> KademliaConfig | None:
    """What the machine is told; None: it takes no part."""
    if not section.enabled:
        return None
    names = KademliaConfig.__struct_fields__
    return KademliaConfig(**{name: value for name, value in asdict(section).items() if name in names})


def kademlia_bootstrap(section: KademliaSection) -> tuple[Contact, ...]:
    """Whom to begin with."""
    return tuple(map(parse_contact, section.bootstrap))


def kademlia_problems(section: KademliaSection, is_edge: bool) -> list[Problem]:
    """What types alone do not see."""
    found: list[Problem] = []
    for number, address in enumerate(section.bootstrap):
        try:
            parse_contact(address)
        except BadText as error:
            found.append(Problem(("kademlia", "bootstrap", number), str(error)))
    if section.enabled and is_edge:
        what = (
            "has no meaning on the edge, where a node has links to its proxies and on local networks alone: "
            "take it or edge.proxies out"
        )
        found.append(Problem(("kademlia", "enabled"), what))
    return found
