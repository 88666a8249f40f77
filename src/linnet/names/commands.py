"""The commands about names and their results. They hold no password, only keys stretched from one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Command
from linnet.names.derivation import Stretched

PetnameText = Annotated[str, Meta(min_length=1, max_length=256)]


class PublishName(Command["Published"], frozen=True, gc=False):
    """Publish a place, the delegation to another zone, or both, under a label of our zone.

    Without a lifetime the configured one holds; 0 removes the label.
    """

    label: str
    place: TopicId | None = None
    contacts: tuple[Contact, ...] = ()
    zone: AuthorId | None = None
    lifetime: float | None = None
    renew: bool = True
    """Whether the record is signed again before it ends, for as long as this node runs."""
    stretched: Stretched | None = None
    """The password, if there is one, stretched for this label of our zone."""


class RemoveName(Command["Published"], frozen=True, gc=False):
    """Remove the records under a label of our zone."""

    label: str
    stretched: Stretched | None = None


class ResolveName(Command["Resolved | NotResolved | WantsPassword"], frozen=True, gc=False):
    """Resolve an address to a place.

    A password is that of the first label. It can be stretched only when the zone of that label is known."""

    address: str
    protected: bool = False
    """Whether the label has a password."""
    stretched: Stretched | None = None


class ListNames(Command["NamesAre"], frozen=True, gc=False):
    """List the labels of our zone that this device wrote."""


class SetPetname(Command["PetnamesAre"], frozen=True, gc=False):
    """Give a person a petname."""

    name: PetnameText
    person: AuthorId


class RemovePetname(Command["PetnamesAre"], frozen=True, gc=False):
    """Remove a petname."""

    name: PetnameText


class ListPetnames(Command["PetnamesAre"], frozen=True, gc=False):
    """List the petnames and their people."""


class ExportNames(Command["NamesFile"], frozen=True, gc=False):
    """Export our own records as a file, sealed as stores see them."""


class TakeInNames(Command["TakenIn"], frozen=True, gc=False):
    """Store the records of an exported file, as a store does."""

    data: bytes


class Fault(StrEnum):
    """The reason why an address cannot be resolved."""

    UNKNOWN = "unknown"
    """No peer that was asked has such a record; or it has a password."""
    UNANSWERED = "unanswered"
    """No peer answered, so nothing is known."""
    EXPIRED = "expired"
    REMOVED = "removed"
    FORGED = "forged"
    """There are records, and the zone signed none of them."""
    REPLAYED = "replayed"
    """The record that we saw before has ended, and only older ones were found."""
    LOOPING = "looping"
    TOO_DEEP = "too_deep"
    NOT_A_ZONE = "not_a_zone"
    """The label leads to a place, but further labels should follow."""


class Via(StrEnum):
    """The basis of a step in the path of trust."""

    PETNAME = "petname"
    """The user assigned the petname."""
    KEY = "key"
    """The user gave the key."""
    OWN = "own"
    """The zone is our own."""
    DELEGATION = "delegation"
    PLACE = "place"


class Step(Struct, frozen=True, gc=False):
    """One step of the path of trust: a name, the zone that vouches for it, and its target."""

    via: Via
    name: str
    """The petname, the label, or nothing."""
    says: AuthorId | None
    """The zone that vouches for the step; None: the user."""
    zone: AuthorId | None
    """The zone that the step leads to; None: it leads to a place."""
    expires: int | None
    """The second until which this step can be relied on; None: as long as the user wants."""
    device: DeviceId | None = None
    """The device that signed the record."""
    place: TopicId | None = None
    """The place that the last step leads to."""


class Resolved(Struct, frozen=True, gc=False):
    """A place, contacts at which to enter it, and the path of trust to it."""

    address: str
    place: TopicId
    contacts: tuple[Contact, ...]
    path: tuple[Step, ...]
    expires: int
    """The earliest end of all steps."""


class NotResolved(Struct, frozen=True, gc=False):
    """The path that could be followed, the label at which it failed, and why."""

    address: str
    fault: Fault
    label: str
    zone: AuthorId | None
    path: tuple[Step, ...]
    detail: str


class WantsPassword(Struct, frozen=True, gc=False):
    """The next label needs a password: ask again with it, stretched for this label of this zone."""

    address: str
    zone: AuthorId
    label: str


class Published(Struct, frozen=True, gc=False):
    """The record is stored here, and was handed to these peers; `NamesAre` shows which of them keep it."""

    label: str
    version: int
    expires: int
    removed: bool
    handed: tuple[PeerId, ...]


class Told(NamedTuple):
    """The answer of a device to which a record was handed."""

    device: PeerId
    refusal: Reason | None
    """Why it does not keep the record; None if it does."""


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
    told: tuple[Told, ...]
    """The answers of the peers to which this version was handed."""


class NamesAre(Struct, frozen=True, gc=False):
    """All labels of our zone that this device wrote, and removed ones while their removal is published."""

    zone: AuthorId
    names: tuple[NameStatus, ...]


class Petname(NamedTuple):
    """A petname and the person that the user means by it."""

    name: str
    person: AuthorId


class PetnamesAre(Struct, frozen=True, gc=False):
    """All petnames of the user. They stay on this device."""

    petnames: tuple[Petname, ...]


class NamesFile(Struct, frozen=True, gc=False):
    """A file of records, to carry by hand."""

    records: int
    data: bytes


class TakenIn(Struct, frozen=True, gc=False):
    """The outcome of taking in the records of a file."""

    kept: int
    refused: tuple[Reason, ...]
    """The reason for each record that is not kept."""
