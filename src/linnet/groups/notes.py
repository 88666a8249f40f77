"""The notes that a step of the agreement gives its caller, beside the new state."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device, MemberId


class Lack(StrEnum):
    """The reason why an operation waits."""

    WELCOME = "welcome"
    """We are not in the group: hand in the operation again once we have joined."""
    EARLIER = "earlier"
    """An earlier operation of the same member is missing."""
    ACKED = "acked"
    """The operation that it acknowledges is missing."""
    MEMBER = "member"
    """The addition of its sender is missing."""
    VOUCHER = "voucher"
    """All have long seen its sender's removal: it counts once a present member has acknowledged it."""


class Joined(Struct, frozen=True):
    """We are in the group: hand in all earlier operations again, our own ones, too."""

    member: MemberId


class Added(Struct, frozen=True):
    """A member was added."""

    member: MemberId
    device: Device


class Removed(Struct, frozen=True):
    """Members were removed: the targets, and members that they had added without the remover's knowledge."""

    members: tuple[MemberId, ...]


class RemovedSelf(Struct, frozen=True):
    """We were removed; all secrets of the group are gone from the state."""


class Healed(Struct, frozen=True):
    """Every member has taken in the seed of this operation of ours."""

    op: EventId


class Waits(Struct, frozen=True):
    """The operation changes nothing yet: hand it in again after others. Keep the state all the same."""

    lack: Lack
    what: bytes = b""


class Desynced(Struct, frozen=True):
    """We can no longer be followed: nothing more is sent until we are removed and added anew."""

    detail: str


class Lost(Struct, frozen=True):
    """We can no longer follow one member: its later messages cannot be read here."""

    member: MemberId
    detail: str


class Equivocation(Struct, frozen=True):
    """A member made two operations of one number; the first is kept. The member should be removed."""

    member: MemberId
    first: EventId
    second: EventId


class WeakFs(Struct, frozen=True):
    """A device had no one-time prekey left: our first message to it can be opened while its `spk` lives."""

    device: Device


class Unreached(Struct, frozen=True):
    """A member was not told something that it should know: it may not hold keys, or lacks fitting prekeys."""

    member: MemberId
    reason: Reason


class EpochReady(Struct, frozen=True):
    """Messages of this member and epoch can be read from now on."""

    member: MemberId
    epoch: int


class Doubled(Struct, frozen=True):
    """Our own device is in the group a second time; we should remove one of the two."""

    member: MemberId


class Leaves(Struct, frozen=True):
    """A member asks to be removed; the remaining member of the lowest id should do it, then the next."""

    member: MemberId


class Ignored(Struct, frozen=True):
    """An authentic operation without effect: all members ignore it alike."""

    reason: Reason
    detail: str = ""


Note: TypeAlias = (
    Joined
    | Added
    | Removed
    | RemovedSelf
    | Healed
    | Waits
    | Desynced
    | Lost
    | Equivocation
    | WeakFs
    | Unreached
    | EpochReady
    | Doubled
    | Leaves
    | Ignored
)
