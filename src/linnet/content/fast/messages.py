"""What nodes tell each other about groups (tags 150 to 169). An answer has the number of its question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.content.messages import Attribute, Text
from linnet.core.ids import Contact, Count, WireEventId, WirePeerId, WireSignature, WireTopicId
from linnet.core.messages import BulkMessage, Message
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card

PREDICATES = 16
"""Predicates of one membership at most."""
POSTINGS = 32
"""Advertisements in one answer at most."""
BATCH = 32
"""Members that are entrusted in one message at most."""
RECEIPTS = 4096
MOST_CAPACITY = 4096
MOST_MILLISECONDS = 3_600_000
REGION_CHARS = 64

Region = Annotated[str, Meta(max_length=REGION_CHARS)]
Capacity = Annotated[int, Meta(ge=0, le=MOST_CAPACITY)]
WireKey = Annotated[bytes, Meta(min_length=32, max_length=32)]
Receipt = Annotated[bytes, Meta(min_length=16, max_length=16)]
After = Annotated[bytes, Meta(max_length=32)]


class Posting(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An advertisement: a publisher's signed word that it has this group, or has it no longer."""

    publisher: Contact
    card: Card
    predicate: Text
    open: bool
    issued: Count
    """Milliseconds; of two the later counts."""
    expires: Count
    """Seconds."""
    sig: WireSignature


class Enrolment(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A member's signed word what it wants of a group, and where it is: nobody else is sent anything."""

    group: WireTopicId
    member: Contact
    predicates: Annotated[tuple[Text, ...], Meta(min_length=1, max_length=PREDICATES)]
    region: Region
    capacity: Capacity
    until: Count
    """Seconds."""
    sig: WireSignature


class Post(Message, frozen=True, tag=150):
    """Keep this on your board of an attribute."""

    number: Count
    attribute: Attribute
    posting: Posting


class Posted(Message, frozen=True, tag=151):
    """It is on the board, or why not."""

    number: Count
    reason: Reason | None


class Browse(Message, frozen=True, tag=152):
    """Which groups on your board of an attribute carry all of this predicate? In the order of their ids."""

    number: Count
    attribute: Attribute
    predicate: Text
    after: After


class Browsed(Message, frozen=True, tag=153):
    """These do."""

    number: Count
    postings: Annotated[tuple[Posting, ...], Meta(max_length=POSTINGS)]
    more: bool
    reason: Reason | None


class Enrol(Message, frozen=True, tag=154):
    """I want this of your group; also to renew or change it. The key is for receipts."""

    number: Count
    group: Text
    """Its predicate."""
    enrolment: Enrolment
    key: WireKey

    def __repr__(self) -> str:
        return f"Enrol({self.number}, {self.group!r})"

    def __rich_repr__(self) -> Iterator[str]:  # type: ignore[override]
        yield repr(self)


class Enrolled(Message, frozen=True, tag=155):
    """You are a member, or why not."""

    number: Count
    reason: Reason | None


class Quit(Message, frozen=True, tag=156):
    """I am no member any more; of a publisher: nobody is, the group is closed."""

    number: Count
    group: WireTopicId


class Parted(Message, frozen=True, tag=157):
    """So it is."""

    number: Count


class Entrust(Message, frozen=True, tag=158):
    """Serve these members of my group, and those no longer."""

    number: Count
    group: WireTopicId
    added: Annotated[tuple[Enrolment, ...], Meta(max_length=BATCH)]
    gone: Annotated[tuple[WirePeerId, ...], Meta(max_length=BATCH)]


class Entrusted(Message, frozen=True, tag=159):
    """I do, or why not; then nothing changes."""

    number: Count
    reason: Reason | None


class Convey(BulkMessage, frozen=True, tag=160):
    """An event of the group that is its topic."""

    number: Count
    unit: Unverified
    card: Card
    serve: bool
    """Whether it is for those as well whom you serve for its publisher."""
    patience: Annotated[int, Meta(ge=0, le=MOST_MILLISECONDS)]
    """Milliseconds that there are for receipts of others."""


class Conveyed(BulkMessage, frozen=True, tag=161):
    """I have it, and so have these; or why not."""

    number: Count
    event: WireEventId
    receipt: Receipt | None
    fresh: bool
    """Whether it came for the first time."""
    waiting: bool
    """Whether more receipts are to come, in another answer."""
    receipts: Annotated[tuple[tuple[WirePeerId, Receipt], ...], Meta(max_length=RECEIPTS)]
    reason: Reason | None


FastMessage: TypeAlias = (
    Post
    | Posted
    | Browse
    | Browsed
    | Enrol
    | Enrolled
    | Quit
    | Parted
    | Entrust
    | Entrusted
    | Convey
    | Conveyed
)
