"""What the user asks about names, and what is answered. No password is in it, only what was made of one."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.names.derivation import Stretched


class PublishName(Struct, frozen=True, gc=False):
    """Say under a label of our zone where a place is, or whose zone it leads to, or both.

    Answered by `Published` or `Declined`. Without a lifetime: what the configuration says; 0: remove.
    """

    label: str
    place: TopicId | None = None
    contacts: tuple[Contact, ...] = ()
    zone: AuthorId | None = None
    lifetime: float | None = None
    renew: bool = True
    """Whether it is signed again in time, for as long as this node runs."""
    stretched: Stretched | None = None
    """With a password: that, stretched for this label of our zone."""


class RemoveName(Struct, frozen=True, gc=False):
    """Take back what our zone says under a label. Answered by `Published` or `Declined`."""

    label: str
    stretched: Stretched | None = None


class ResolveName(Struct, frozen=True, gc=False):
    """Where does this address lead? Answered by `Resolved`, `NotResolved`, `WantsPassword` or `Declined`.

    A password is that of the first label. It can be stretched only when the zone of that label is known.
    """

    address: str
    protected: bool = False
    """Whether there is a password."""
    stretched: Stretched | None = None


class ListNames(Struct, frozen=True, gc=False):
    """What does our zone say, as far as this device wrote it? Answered by `NamesAre`."""


class SetPetname(Struct, frozen=True, gc=False):
    """Know somebody by this name. Answered by `PetnamesAre` or `Declined`."""

    name: str
    zone: AuthorId


class RemovePetname(Struct, frozen=True, gc=False):
    """Know nobody by this name any more. Answered by `PetnamesAre` or `Declined`."""

    name: str


class ListPetnames(Struct, frozen=True, gc=False):
    """Whom do we know by which name? Answered by `PetnamesAre`."""


class ExportNames(Struct, frozen=True, gc=False):
    """Our own records as a file, sealed as stores see them. Answered by `NamesFile`."""


class TakeInNames(Struct, frozen=True, gc=False):
    """Keep the records of such a file, as a store does. Answered by `TakenIn` or `Declined`."""

    data: bytes


NamesCommand: TypeAlias = (
    PublishName
    | RemoveName
    | ResolveName
    | ListNames
    | SetPetname
    | RemovePetname
    | ListPetnames
    | ExportNames
    | TakeInNames
)


class Fault(StrEnum):
    """Why an address leads nowhere."""

    UNKNOWN = "unknown"
    """Nobody who was asked has such a record; or it has a password."""
    UNANSWERED = "unanswered"
    """Nobody answered, so nothing is known."""
    EXPIRED = "expired"
    REMOVED = "removed"
    FORGED = "forged"
    """There are records, and the zone signed none of them."""
    REPLAYED = "replayed"
    """What we have seen before has ended, and there are only records older than that."""
    LOOPING = "looping"
    TOO_DEEP = "too_deep"
    NOT_A_ZONE = "not_a_zone"
    """The label leads to a place, and something should follow it."""


class Via(StrEnum):
    """What a step of the path of trust rests on."""

    PETNAME = "petname"
    """The user gave the name."""
    KEY = "key"
    """The user gave the key."""
    OWN = "own"
    """It is our own zone."""
    DELEGATION = "delegation"
    PLACE = "place"


class Step(Struct, frozen=True, gc=False):
    """One step of the path of trust: by whose word what leads where."""

    via: Via
    name: str
    """The petname, the label, or nothing."""
    says: AuthorId | None
    """The zone that says so; None: the user."""
    leads_to: bytes
    """A zone's key, or in the last step a place."""
    expires: int | None
    """The second until which this step can be relied on; None: as long as the user wants."""
    device: DeviceId | None = None
    """The device that signed."""


class Resolved(Struct, frozen=True, gc=False):
    """A place, where to enter it, and why that is believed."""

    address: str
    place: TopicId
    contacts: tuple[Contact, ...]
    path: tuple[Step, ...]
    expires: int
    """The earliest end of all steps."""


class NotResolved(Struct, frozen=True, gc=False):
    """How far it went, at which label it failed, and why."""

    address: str
    fault: Fault
    label: str
    zone: AuthorId | None
    path: tuple[Step, ...]
    detail: str


class WantsPassword(Struct, frozen=True, gc=False):
    """The address leads so far; ask again with the password stretched for this label of this zone."""

    address: str
    zone: AuthorId
    label: str


class Published(Struct, frozen=True, gc=False):
    """It is written down here, and was handed to these peers; `NamesAre` tells who keeps it."""

    label: str
    version: int
    expires: int
    removed: bool
    handed: tuple[PeerId, ...]


class NameStatus(Struct, frozen=True, gc=False):
    """One label of our zone."""

    label: str
    protected: bool
    place: TopicId | None
    contacts: tuple[Contact, ...]
    zone: AuthorId | None
    version: int
    expires: int
    renew: bool
    removed: bool
    told: tuple[tuple[PeerId, Reason | None], ...]
    """Who was handed this version and answered: it is kept there, or why not."""


class NamesAre(Struct, frozen=True, gc=False):
    """All labels of our zone that this device wrote, removed ones included while that has to be said."""

    zone: AuthorId
    names: tuple[NameStatus, ...]


class PetnamesAre(Struct, frozen=True, gc=False):
    """Whom the user knows, by name. It stays on this device."""

    names: tuple[tuple[str, AuthorId], ...]


class NamesFile(Struct, frozen=True, gc=False):
    """Records that can be carried."""

    records: int
    data: bytes


class TakenIn(Struct, frozen=True, gc=False):
    """What became of the records of a file."""

    kept: int
    refused: tuple[Reason, ...]
    """Why each that is not kept is not."""


NamesResult: TypeAlias = (
    Published | Resolved | NotResolved | WantsPassword | NamesAre | PetnamesAre | NamesFile | TakenIn
)
