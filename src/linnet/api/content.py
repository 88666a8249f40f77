"""The node's own commands about content, and the lines that content subscriptions write."""

from __future__ import annotations

from typing import Annotated, TypeAlias, assert_never

from msgspec import Meta, Struct

from linnet.api.items import EndedView, HeartbeatView, SubscribedView, text_of
from linnet.content.commands import (
    AttributeFate,
    AttributesText,
    ContentItem,
    InGroups,
    Match,
    Overflow,
    PredicateText,
    Standing,
    SubscriptionName,
    Via,
)
from linnet.core.ids import AuthorId, Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, event_text, from_text, person_text
from linnet.machine.commands import Command


class SayContent(Command["ContentSaid"], frozen=True, gc=False):
    """Publish an event with attributes; answered when all live nodes have answered."""

    attributes: AttributesText
    """The attributes of the event."""
    text: str | None = None
    """The body as text; or give a body, or neither."""
    body: bytes | None = None
    via: Via = Via.SCOUT
    """By rendezvous nodes, in a group of ours that carries it, or by `auto` in the group if there is one."""
    confirm: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """Seconds to wait for nodes that are silent."""


class ContentSaid(Struct, frozen=True):
    """The outcome of publishing an event."""

    event: EventId
    delivered: int
    """Nodes where it was delivered to an application, each once whatever its subscriptions."""
    missed: int
    """Branches, or members of the group, that did not answer and were given up."""
    fates: tuple[AttributeFate, ...]
    """The outcome at each rendezvous node; empty if the network does not acknowledge."""
    group: str | None = None
    """The predicate of our group in which it was published; `delivered` counts receipts then."""
    wanted: int | None = None
    """Members of the group that want it."""
    taken_back: int = 0
    """Members that we served directly after all, since the one that was to serve them did not."""
    matches: int | None = None
    """Subscriptions to which it was delivered; not known in a group."""
    settled: bool = True
    """Whether this outcome is final; otherwise silent nodes may still answer."""
    silent: tuple[PeerId, ...] = ()
    """Nodes that have not answered so far."""
    more_silent: int = 0
    """The number of further silent nodes."""


class ReadContent(Command[Standing], frozen=True, gc=False):
    """Subscribe to events that a predicate accepts."""

    subscription: int
    predicate: PredicateText
    """The predicate of the events to receive."""
    name: SubscriptionName | None = None
    """Keeps the subscription: it continues while nobody reads it, and over restarts."""
    via: Via = Via.SCOUT
    """By rendezvous nodes from anybody, from groups that publishers serve, or both."""
    at: Contact | None = None
    """A publisher whose group to join, even if it is not advertised; not by `scout`."""
    group: PredicateText | None = None
    """The predicate of that group; if absent, the one of the subscription."""


class MatchView(Struct, frozen=True, tag="match"):
    """An event that the subscription accepts."""

    number: int
    """Its number in this subscription; after a crash an event has the same number again."""
    event: str
    author: str
    attributes: str
    time: float
    hops: int
    body: bytes
    text: str | None
    """The body, if it is UTF-8."""
    doubtful: bool = False
    """Whether its time was ahead of this node's clock by more than five minutes."""


class OverflowView(Struct, frozen=True, tag="overflow"):
    """The number of matches that were dropped, since too many waited to be read."""

    number: int
    count: int
    reason: str


class InGroupsView(Struct, frozen=True, tag="in_groups"):
    """How many groups a subscription by `fast` or `auto` is in; it is not an item to be consumed."""

    joined: int
    """Groups that have accepted it."""
    refused: int
    """Groups that have refused it."""
    unanswered: int
    """Boards that did not answer: there may be more groups."""
    look_again: float
    """Seconds until the next search for groups."""


ContentItemView: TypeAlias = (
    MatchView | OverflowView | EndedView | SubscribedView | HeartbeatView | InGroupsView
)


def content_item_view(item: ContentItem | InGroups | Ended) -> ContentItemView:
    """Return an item of a content subscription as a line."""
    match item:
        case Match():
            return MatchView(
                item.number,
                event_text(item.event),
                person_text(item.author),
                item.attributes,
                item.time / 1000,
                item.hops,
                item.body,
                text_of(item.body),
                item.doubtful,
            )
        case Overflow(number, count, reason):
            return OverflowView(number, count, reason.value)
        case InGroups():
            return InGroupsView(item.joined, item.refused, item.unanswered, item.look_again)
        case Ended(why):
            return EndedView(None if why is None else why.value)
        case _:
            assert_never(item)


def content_item_of(view: ContentItemView) -> ContentItem | InGroups | Ended | None:
    """Return the item of a line; None for lines that only keep the connection."""
    match view:
        case MatchView():
            return Match(
                EventId(from_text(Sort.EVENT, view.event)),
                AuthorId(from_text(Sort.PERSON, view.author)),
                view.attributes,
                round(view.time * 1000),
                view.body,
                view.hops,
                view.number,
                view.doubtful,
            )
        case OverflowView(number, count, reason):
            return Overflow(number, count, Reason(reason))
        case InGroupsView():
            return InGroups(view.joined, view.refused, view.unanswered, view.look_again)
        case EndedView(why):
            return Ended(None if why is None else Reason(why))
        case SubscribedView() | HeartbeatView():
            return None
        case _:
            assert_never(view)
