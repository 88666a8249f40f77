"""Parts of a hot attribute: names under which events are spread over several nodes.

Part 0 has the attribute's own name. Others have a number behind a slash, which no name can have in it.
"""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason

MOST_PARTS = 16


def part_name(base: str, part: int) -> str:
    """What a part of an attribute is called on the wire."""
    return f"{base}/{part}" if part else base


def base_of(attribute: str) -> str:
    """The attribute that a part is of."""
    return attribute.partition("/")[0]


def is_part(attribute: str) -> bool:
    """Whether this is a part other than the first."""
    return "/" in attribute


def check_part(attribute: str) -> None:
    """Refuse what cannot be a part."""
    if is_part(attribute) and attribute not in {
        part_name(base_of(attribute), n) for n in range(1, MOST_PARTS)
    }:
        raise RemoteError(Reason.MALFORMED, "no part of an attribute")


def part_of(event: EventId, parts: int) -> int:
    """Which part an event goes to: by its id, which its publisher cannot choose freely."""
    return int.from_bytes(event[:4]) % parts
