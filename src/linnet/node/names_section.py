"""Names in ``linnet.toml``: who keeps our records, and within which limits we keep those of others."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from linnet.core.errors import BadText
from linnet.names.config import STORES, NamesConfig, NamesLimits
from linnet.node.addresses import parse_contact
from linnet.node.config_types import Problem

Address = Annotated[str, Meta(min_length=1, max_length=1024)]


class NamesSection(NamesLimits, frozen=True, forbid_unknown_fields=True):
    """What our zone says is kept where, and what this node keeps for others."""

    stores: Annotated[tuple[Address, ...], Meta(max_length=STORES)] = ()
    """Nodes that keep our records while we are away and that are asked first, `KEY@HOST:PORT` each: relays or
    friends. Links to them are held. Empty: whoever there is a link to anyway."""


def names_config(section: NamesSection) -> NamesConfig:
    """What the machine is told."""
    limits = {name: value for name, value in asdict(section).items() if name in NamesLimits.__struct_fields__}
    return NamesConfig(**limits, stores=tuple(map(parse_contact, section.stores)))


def names_problems(section: NamesSection) -> list[Problem]:
    """What types alone do not see."""
    found: list[Problem] = []
    for number, address in enumerate(section.stores):
        try:
            parse_contact(address)
        except BadText as error:
            found.append(Problem(("names", "stores", number), str(error)))
    return found
