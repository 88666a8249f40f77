"""What the control API is asked about our own devices and what it answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from linnet.identity.keys import SIGNATURE_BYTES

DeviceName = Annotated[
    str, Meta(pattern="^[0-9a-f]{16}$", max_length=16, description="how events name a device, hexadecimal")
]


class Outcome(StrEnum):
    """What became of a revocation in one room."""

    REVOKED = "revoked"
    ALREADY = "already"
    REFUSED = "refused"
    SKIPPED = "skipped"
    """We are not a member there, so the room would not hear us."""


class RevokeRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The person's signed word that a device is theirs no longer."""

    device: DeviceName
    at: Annotated[int, Meta(ge=0, le=2**40, description="Unix time in seconds")]
    signature: Annotated[bytes, Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]


class DeviceView(Struct, frozen=True):
    """A device of ours."""

    id: str
    """How events name it."""
    device: str | None
    """Its key, `ld1…`; None if no card of it is kept here."""
    label: str
    this: bool
    online: bool
    """Whether it is linked to this node in a room."""
    not_before: int | None
    not_after: int | None
    revoked: bool
    """Whether this node takes nothing of it in streams any more."""
    revoked_in: tuple[str, ...]
    """Rooms in which it is revoked."""


class DevicesReply(Struct, frozen=True):
    """The devices of the person, as far as this node has met them."""

    person: str
    rooms: tuple[str, ...]
    """Rooms of which this node is a member."""
    devices: tuple[DeviceView, ...]


class RoomOutcomeView(Struct, frozen=True):
    """What became of a revocation in one room."""

    room: str
    name: str | None
    outcome: Outcome
    event: str | None
    neighbors: int
    relays: tuple[str, ...]
    reason: str | None
    detail: str


class RevokeReply(Struct, frozen=True):
    """The device is out of use in streams; what became of it in each room."""

    device: str
    rooms: tuple[RoomOutcomeView, ...]
