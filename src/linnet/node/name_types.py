"""What the control API is asked and says about names. Passwords do not show where requests are printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from linnet.names.address import ADDRESS_CHARS
from linnet.names.derivation import PASSWORD_BYTES
from linnet.names.records import CONTACTS

Label = Annotated[str, Meta(min_length=1, max_length=256)]
AddressText = Annotated[str, Meta(min_length=1, max_length=ADDRESS_CHARS)]
PasswordText = Annotated[str, Meta(min_length=1, max_length=PASSWORD_BYTES)]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
ContactText = Annotated[str, Meta(min_length=1, max_length=2048)]


class _Unshown(Struct, frozen=True):
    """A request that may hold a password: nothing of it shows where it is printed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> Iterator[str]:  # type: ignore[override]
        yield "…"


class PublishNameRequest(_Unshown, frozen=True):
    """Say something under a label of the node's zone."""

    label: Label
    place: Id | None = None
    """A place, `lt1…`."""
    contacts: Annotated[tuple[ContactText, ...], Meta(max_length=CONTACTS)] = ()
    """Peers at which it can be entered, `KEY@HOST:PORT`; none: this node."""
    zone: Id | None = None
    """A person, `lp1…`, whose zone goes on from here."""
    lifetime: Annotated[float, Meta(ge=0)] | None = None
    """Seconds; none: as configured; 0: remove it."""
    renew: bool = True
    """Whether it is signed again in time while the node runs."""
    password: PasswordText | None = None


class RemoveNameRequest(_Unshown, frozen=True):
    """Take back what the zone says under a label."""

    label: Label
    password: PasswordText | None = None


class ResolveNameRequest(_Unshown, frozen=True):
    """Where does an address lead? The password is that of its first label."""

    address: AddressText
    password: PasswordText | None = None


class NameReply(Struct, frozen=True):
    """It is written down, and was handed to these devices."""

    label: str
    version: int
    expires: int
    """Unix time."""
    removed: bool
    handed: tuple[str, ...]


class StepView(Struct, frozen=True):
    """One step of the path of trust."""

    via: str
    """"petname", "key", "own", "delegation" or "place"."""
    name: str
    says: str | None
    """The person whose word it is, `lp1…`; null: the user."""
    leads_to: str
    """A person, `lp1…`, or in the last step a place, `lt1…`."""
    expires: int | None
    device: str | None
    """The device that signed: the first 16 hex digits of the hash of its key."""


class ResolveNameReply(Struct, frozen=True):
    """Where an address leads; or how far it came, and why no further."""

    address: str
    place: str | None
    contacts: tuple[str, ...]
    path: tuple[StepView, ...]
    expires: int | None
    """The Unix time at which the first of the steps ends."""
    fault: str | None = None
    """Null, or "unknown", "unanswered", "expired", "removed", "forged", "replayed", "looping", "too_deep",
    "not_a_zone"."""
    label: str | None = None
    """The label at which it failed."""
    zone: str | None = None
    """The zone in which it failed, `lp1…`."""
    detail: str = ""


class ToldView(Struct, frozen=True):
    """A device that was handed a record, and why it does not keep it, if it does not."""

    device: str
    refusal: str | None


class NameView(Struct, frozen=True):
    """One label of the zone."""

    label: str
    protected: bool
    place: str | None
    contacts: tuple[str, ...]
    zone: str | None
    version: int
    expires: int
    renew: bool
    removed: bool
    told: tuple[ToldView, ...]


class NamesReply(Struct, frozen=True):
    """What the zone says, as far as this device wrote it."""

    zone: str
    names: tuple[NameView, ...]


class NamesFileReply(Struct, frozen=True):
    """The zone's own records, to be carried."""

    records: int
    data: bytes
    """Base64."""


class TakeInNamesRequest(Struct, frozen=True):
    """A file of records."""

    data: bytes
    """Base64."""


class TakenInReply(Struct, frozen=True):
    """What became of the records of a file."""

    kept: int
    refused: tuple[str, ...]
    """Why each that is not kept is not."""


class PetnameRequest(Struct, frozen=True):
    """Know a person by this name."""

    name: Label
    person: Id


class RemovePetnameRequest(Struct, frozen=True):
    """Know nobody by this name any more."""

    name: Label


class PetnameView(Struct, frozen=True):
    """Whom the user calls so."""

    name: str
    person: str


class PetnamesReply(Struct, frozen=True):
    """Whom the user knows by which name."""

    petnames: tuple[PetnameView, ...]
