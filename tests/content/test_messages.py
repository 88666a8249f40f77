"""What was added to messages later is passed over by nodes that do not know it, and missed by none."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from linnet.content import messages
from linnet.content.messages import Answered, Held, Reached, Settled, SoFar, Taken
from linnet.core.messages import Message
from linnet.peer.messages import STANDARD

EVENT, PEER = b"e" * 32, b"p" * 32
SO_FAR = SoFar(1, 0, 2, 3, (PEER,), 4)  # type: ignore[arg-type] # ids are bytes on the wire


class OldHeld(Struct, array_like=True, tag=144):
    """As version 0.1.0 had it."""

    event: bytes
    attribute: str


class OldTaken(Struct, array_like=True, tag=134):
    """As version 0.1.0 had it."""

    event: bytes
    attribute: str
    reason: str | None
    parts: int = 1


class OldReached(Struct, array_like=True, tag=136):
    """As version 0.1.0 had it."""

    event: bytes
    attribute: str
    delivered: int
    missed: int


class OldSettled(OldReached, array_like=True, tag=137):
    """As version 0.1.0 had it."""


PAIRS = [
    (Held(EVENT, "stock", SO_FAR), OldHeld(EVENT, "stock")),  # type: ignore[arg-type]
    (Taken(EVENT, "stock", None, 2, SO_FAR), OldTaken(EVENT, "stock", None, 2)),  # type: ignore[arg-type]
    (Reached(EVENT, "stock", 3, 1, 2, 5), OldReached(EVENT, "stock", 3, 1)),  # type: ignore[arg-type]
    (Settled(EVENT, "stock", 3, 1, 2, 5), OldSettled(EVENT, "stock", 3, 1)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("new", "old"), PAIRS, ids=lambda each: type(each).__name__)
def test_a_node_of_version_0_1_0_reads_what_it_knows(new: Struct, old: Struct) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(new), type=type(old)) == old


@pytest.mark.parametrize(("new", "old"), PAIRS, ids=lambda each: type(each).__name__)
def test_what_such_a_node_says_is_read(new: Struct, old: Struct) -> None:
    read = msgspec.msgpack.decode(msgspec.msgpack.encode(old), type=type(new))
    for name in old.__struct_fields__:
        assert getattr(read, name) == getattr(old, name)
    assert all(not getattr(read, name) for name in new.__struct_fields__ if name not in old.__struct_fields__)


def test_every_message_of_content_goes_over_the_links_of_the_node() -> None:
    made = [each for each in vars(messages).values() if isinstance(each, type) and issubclass(each, Message)]
    kinds = {each for each in made if each.__module__ == messages.__name__ and each.__struct_config__.tag}
    assert kinds == {kind for kind, protocol in STANDARD.protocol_of.items() if protocol == "content"}
    assert len(kinds) > 15


def test_what_trackers_are_told_is_read_without_what_was_added() -> None:
    old = msgspec.msgpack.encode([EVENT, "stock", PEER, 4, 1])
    assert msgspec.msgpack.decode(old, type=Answered) == Answered(EVENT, "stock", PEER, 4, 1)  # type: ignore[arg-type]
