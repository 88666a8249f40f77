"""The description of one protocol: all that it adds to a node, in one place.

The codec, `Hello`, the parts of a node and the control API all read it. The protocols that ship are listed in
`linnet.peer.messages`; a program gives others to its node (docs/design/add-a-protocol.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, Literal, Never, TypeVar, Union

from msgspec import Struct

from linnet.core.messages import Message
from linnet.machine.commands import Command
from linnet.machine.part import Part
from linnet.wire.codec import Codec

S_contra = TypeVar("S_contra", contravariant=True)
FIRST_FREE_TAG = 1000
"""The least tag of messages of protocols that a program adds; Linnet's own tags are smaller."""


class Offer(Struct, frozen=True):
    """A command that the control API offers."""

    method: Literal["GET", "POST"]
    path: str
    """The path; it has in braces the fields of the command that stand in it."""
    command: type[Command[object]]
    is_subscription: bool = False
    """Whether it opens a subscription, which hands over items of `linnet.delivery.items`."""


class Protocol(Struct, Generic[S_contra], frozen=True):
    """One protocol: its messages on links, the part that handles them, and its commands."""

    name: str
    messages: tuple[type[Message], ...]
    """Their tags must be different from those of all other protocols."""
    bulk: tuple[type[Message], ...] = ()
    """The large messages, which wait behind all others of a link."""
    version: int = 1
    is_optional: bool = False
    """Whether a node may lack it. `Hello` names it only if a part handles it, and that part sends nothing to
    peers that lack it. If such a peer lacks another protocol, its messages are dropped with a record."""
    make: Callable[[S_contra], Part] | None = None
    """Makes the part from what the node offers. None: the part is one of those that ship."""
    offers: tuple[Offer, ...] = ()
    """The commands that the control API offers beyond those that ship."""


class Vocabulary(Codec[Message]):
    """All messages that a node knows, by the descriptions of its protocols, and the codec for them."""

    def __init__(self, protocols: Iterable[Protocol[Never]]) -> None:
        """Raise `ValueError` if two protocols share a name, or two messages a tag."""
        every = tuple(protocols)
        self.protocol_of: dict[type, str] = {kind: each.name for each in every for kind in each.messages}
        """The protocol of each type of message."""
        self.versions = {each.name: each.version for each in every}
        """The versions in the `Hello` of a node that takes part in all protocols."""
        self.optional = {each.name: each.messages for each in every if each.is_optional}
        """The messages of each protocol that a node may lack."""
        self.bulk = tuple(kind for each in every for kind in each.bulk)
        """Messages that wait in the data lane of a link; all others go before them."""
        _check_unique("the name", [each.name for each in every])
        _check_unique("the tag", [kind.__struct_config__.tag for each in every for kind in each.messages])
        super().__init__(Union[tuple(self.protocol_of)])  # noqa: UP007 - made at run time


def _check_unique(what: str, values: list[object]) -> None:
    [(value, count)] = Counter(values).most_common(1)
    if count > 1:
        raise ValueError(f"two protocols, or two of their messages, have {what} {value!r}")
