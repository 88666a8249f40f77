"""The messages of nodes about groups (tags 150 to 169). An answer has the number of its question."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.content.messages import Attribute, Text, Verdict
from linnet.core.ids import Contact, Count, WireEventId, WirePeerId, WireSignature, WireTopicId
from linnet.core.messages import BulkMessage, Message
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card

PREDICATES = 16
"""Predicates of one membership, at most."""
POSTINGS = 32
"""Advertisements in one answer, at most."""
BATCH = 32
"""Members that are handed to a deputy in one message, at most."""
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
    """An advertisement: a publisher's signed statement that it has this group, or has closed it."""

    publisher: Contact
    card: Card
    predicate: Text
    open: bool
    issued: Count
    """Milliseconds; the later of two counts."""
    expires: Count
    """Seconds."""
    sig: WireSignature


class Enrolment(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A member's signed statement of what it wants of a group, and where: only then is it sent events."""

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


class Posted(Verdict, frozen=True, tag=151):
    """The advertisement is on the board, or the reason why it is not."""


class Browse(Message, frozen=True, tag=152):
    """Which groups on your board of an attribute carry all of this predicate? In the order of their ids."""

    number: Count
    attribute: Attribute
    predicate: Text
    after: After


class Browsed(Message, frozen=True, tag=153):
    """A page of the advertisements that a `Browse` asked for."""

    number: Count
    postings: Annotated[tuple[Posting, ...], Meta(max_length=POSTINGS)]
    more: bool
    reason: Reason | None


class Enrol(Message, frozen=True, tag=154):
    """Take me as a member with these predicates, or renew or change that. The key is for receipts."""

    number: Count
    group: Text
    """The group's predicate."""
    enrolment: Enrolment
    key: WireKey

    def __repr__(self) -> str:
        return f"Enrol({self.number}, {self.group!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("", repr(self))]


class Enrolled(Verdict, frozen=True, tag=155):
    """You are a member; or the reason why not."""


class Quit(Message, frozen=True, tag=156):
    """I leave the group; from its publisher: the group is closed."""

    number: Count
    group: WireTopicId


class Parted(Message, frozen=True, tag=157):
    """The answer to `Quit`."""

    number: Count


class Entrust(Message, frozen=True, tag=158):
    """Serve these members of my group, and stop serving those."""

    number: Count
    group: WireTopicId
    added: Annotated[tuple[Enrolment, ...], Meta(max_length=BATCH)]
    gone: Annotated[tuple[WirePeerId, ...], Meta(max_length=BATCH)]


class Entrusted(Verdict, frozen=True, tag=159):
    """I serve them; or the reason why not, and then nothing changes."""


class Convey(BulkMessage, frozen=True, tag=160):
    """An event of the group that is its topic."""

    number: Count
    unit: Unverified
    card: Card
    serve: bool
    """Whether it is also for the members that the receiver serves for its publisher."""
    patience: Annotated[int, Meta(ge=0, le=MOST_MILLISECONDS)]
    """Milliseconds for gathering the receipts of others."""


class Conveyed(BulkMessage, frozen=True, tag=161):
    """I have the event, and these members gave receipts; or the reason why not."""

    number: Count
    event: WireEventId
    receipt: Receipt | None
    fresh: bool
    """Whether the event came for the first time."""
    waiting: bool
    """Whether more receipts will follow, in another answer."""
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
