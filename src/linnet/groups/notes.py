"""What a step of the agreement tells its caller, beside the new state."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups.ids import Device, MemberId


class Lack(StrEnum):
    """What an operation waits for."""

    WELCOME = "welcome"
    """We are not in the group: give it again once we have joined."""
    EARLIER = "earlier"
    """An earlier operation of the same member."""
    ACKED = "acked"
    """The operation that it acknowledges."""
    MEMBER = "member"
    """The addition of its sender."""
    VOUCHER = "voucher"
    """All have long seen its sender's removal: it counts once a present member has acknowledged it."""


class Joined(Struct, frozen=True):
    """We are in the group: all operations that came before are to be given again, our own ones, too."""

    member: MemberId


class Added(Struct, frozen=True):
    """A member more."""

    member: MemberId
    device: Device


class Removed(Struct, frozen=True):
    """Members fewer: those that were named, and whom they had added behind the remover's back."""

    members: tuple[MemberId, ...]


class RemovedSelf(Struct, frozen=True):
    """We are out; all secrets of the group are gone from the state."""


class Healed(Struct, frozen=True):
    """Every member has taken in the seed of this operation of ours."""

    op: EventId


class Waits(Struct, frozen=True):
    """The operation changes nothing yet; give it again after others. The state is to be kept all the same."""

    lack: Lack
    what: bytes = b""


class Desynced(Struct, frozen=True):
    """We can no longer be followed: nothing is sent any more until we are removed and added anew."""

    detail: str


class Lost(Struct, frozen=True):
    """We can no longer follow one member: its later messages cannot be read here."""

    member: MemberId
    detail: str


class Equivocation(Struct, frozen=True):
    """A member made two operations of one number; the first is kept. It should be removed."""

    member: MemberId
    first: EventId
    second: EventId


class WeakFs(Struct, frozen=True):
    """A device had no one-time prekey left: what we told it first lives as long as its other prekey."""

    device: Device


class Unreached(Struct, frozen=True):
    """A member was told nothing that it should know: it may not hold keys, or has no prekeys that fit."""

    member: MemberId
    reason: Reason


class EpochReady(Struct, frozen=True):
    """Messages of this member and epoch can be read from now on."""

    member: MemberId
    epoch: int


class Doubled(Struct, frozen=True):
    """Our own device is in the group a second time; one of the two should be removed by us."""

    member: MemberId


class Leaves(Struct, frozen=True):
    """A member asks to be removed; the remaining member of the lowest id should do it, then the next."""

    member: MemberId


class Ignored(Struct, frozen=True):
    """An authentic operation that means nothing: it is done with, for everybody alike."""

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
