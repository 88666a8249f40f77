"""Identifiers as the machines see them: plain bytes with a type each."""

from __future__ import annotations

from typing import Annotated, NewType

from msgspec import Meta, Struct

from linnet.core.limits import LARGEST_COUNT

PeerId = NewType("PeerId", bytes)
"""A device's Ed25519 public key: the address that is dialled, and the identity that links authenticate."""

AuthorId = NewType("AuthorId", bytes)
"""A person's Ed25519 public key, or the pseudonym that stands for it in a private topic."""

DeviceId = NewType("DeviceId", bytes)
"""The first eight bytes of the SHA-256 of a device key; names a device of an author."""

TopicId = NewType("TopicId", bytes)
"""32 bytes that name the object of a subscription, whatever the way to subscribe."""

EventId = NewType("EventId", bytes)
"""The SHA-256 of an event; see `linnet.event`."""

# The same, with the lengths that a decoder of bytes from peers insists on.
WirePeerId = Annotated[PeerId, Meta(min_length=32, max_length=32)]
WireAuthorId = Annotated[AuthorId, Meta(min_length=32, max_length=32)]
WireDeviceId = Annotated[DeviceId, Meta(min_length=8, max_length=8)]
WireTopicId = Annotated[TopicId, Meta(min_length=32, max_length=32)]
WireEventId = Annotated[EventId, Meta(min_length=32, max_length=32)]
WireSignature = Annotated[bytes, Meta(min_length=64, max_length=64)]

Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]

Hint = Annotated[str, Meta(min_length=1, max_length=128)]
"""An address at which a peer may be dialled: ``tls://host:port``, ``wss://host:port``, or as its transport
writes it."""

Hints = Annotated[tuple[Hint, ...], Meta(max_length=8)]


class Contact(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A peer and the addresses at which it may be dialled; without any, it opens the link itself."""

    peer: WirePeerId
    hints: Hints = ()
