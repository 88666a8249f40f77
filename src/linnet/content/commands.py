"""The commands, answers and items that content exchanges with the application."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.content.predicate import TEXT_CHARS
from linnet.core.ids import AuthorId, Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.commands import Command

NAME_BYTES = 64
"""Bytes of the name of a kept subscription, at most."""
PredicateText = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS)]
"""A predicate as text, such as ``stock/apple/price[10,20]``."""
AttributesText = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS)]
"""An event's attributes as text, such as ``stock/apple/price=12.5``."""
SubscriptionName = Annotated[str, Meta(min_length=1, max_length=NAME_BYTES)]


class Via(StrEnum):
    """The ways in which events reach subscribers."""

    SCOUT = "scout"
    """By rendezvous: publishers and subscribers need not know each other (ScoutSubs)."""
    FAST = "fast"
    """In groups that a publisher serves, over two links at most (FastDelivery)."""
    AUTO = "auto"
    """Subscribing: both ways. Publishing: in a group of ours that carries the event, else by rendezvous."""


class GroupAt(Struct, frozen=True, array_like=True):
    """A group that need not be advertised: where its publisher is, and its predicate."""

    publisher: Contact
    group: str


class SubscribeContent(Command["Standing"], frozen=True, gc=False):
    """Deliver the events that a predicate accepts.

    With a name the subscription is kept: it goes on while nobody reads it, and after a restart."""

    subscription: int
    predicate: str
    name: str | None = None
    via: Via = Via.SCOUT
    at: GroupAt | None = None
    """The one group to join; None: all groups that carry the predicate. Not allowed with `scout`."""


class UnsubscribeContent(Command["Ended"], frozen=True, gc=False):
    """End a subscription; one with a name only loses its reader."""

    subscription: int


class ForgetContent(Command["Ended"], frozen=True, gc=False):
    """End a kept subscription for good, and drop the matches that wait in it."""

    name: SubscriptionName


class ListContent(Command["ContentIs"], frozen=True, gc=False):
    """List the subscriptions to content, and what this node carries for others."""


class PublishContent(Command["Outcome"], frozen=True, gc=False):
    """Publish an event with these attributes.

    The answer comes when all nodes that are alive have answered. Silent nodes are waited for `confirm`
    seconds; the outcome names those that stay silent, and the trace has what becomes of them later."""

    attributes: str
    body: bytes
    confirm: float = 0.0


ContentCommand: TypeAlias = (
    SubscribeContent | UnsubscribeContent | ForgetContent | ListContent | PublishContent
)


class Standing(Struct, frozen=True, gc=False):
    """The subscription is kept, and goes to the rendezvous of this attribute."""

    predicate: str
    attribute: str
    resumed: bool = False
    """Whether a kept subscription of this name was there before."""


class Ended(Struct, frozen=True, gc=False):
    """The subscription or group has ended."""


class AttributeFate(Struct, frozen=True, gc=False):
    """The outcome of an event at the rendezvous of one attribute."""

    attribute: str
    delivered: int
    """Nodes that reported handing it to an application. Each counts once, at the rendezvous from which it
    came first: the sum over all fates is the number of nodes."""
    missed: int
    """Branches that did not answer, and were given up."""
    reason: Reason | None
    """Why the event did not get to the rendezvous, or why its fate is unknown."""
    again: int = 0
    """Nodes that want it from here too, and are counted at another rendezvous."""
    matches: int = 0
    """Subscriptions that were handed it, at these nodes: a node may have several."""
    settled: bool = True
    """Whether this is final; otherwise the nodes in `silent` may still answer."""
    silent: tuple[PeerId, ...] = ()
    """Nodes that have not answered yet, for themselves or for nodes below them."""
    more_silent: int = 0
    """The number of silent nodes beyond those named."""


class Outcome(Struct, frozen=True, gc=False):
    """The outcome of an event at each rendezvous. Without acknowledgements only the event's id is known."""

    event: EventId
    fates: tuple[AttributeFate, ...]


class SubscriptionIs(Struct, frozen=True, gc=False):
    """A subscription of this node, as it stands."""

    name: str | None
    """The name of a kept subscription; None: it ends with its reader."""
    predicate: str
    attribute: str
    """The attribute whose rendezvous it goes to; empty if it goes to groups alone."""
    read: bool
    """Whether it has a reader now."""
    waiting: int
    """Matches that its reader has not handled yet."""
    lost: int
    """Matches that were not taken, since too many waited."""
    via: Via = Via.SCOUT
    at: GroupAt | None = None
    groups: int | None = None
    """The number of groups that have taken it; None: it is not for groups."""


class ContentIs(Struct, frozen=True, gc=False):
    """The state of content at this node."""

    subscriptions: tuple[SubscriptionIs, ...]
    rendezvous: tuple[str, ...]
    """The attributes that this node is the rendezvous of."""
    routes: int
    """Pairs of a neighbour and an attribute for which this node keeps filters."""
    settled: bool
    """Whether all subscriptions stand and all events have arrived, as far as it knows."""


class Match(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """An event that a subscription accepts."""

    event: EventId
    author: AuthorId
    attributes: str
    time: int
    body: bytes
    hops: int
    number: int = 0
    """The number of the match within its subscription, from 1; after a crash an event keeps its number."""
    doubtful: bool = False
    """Whether its time was ahead of this node's clock by more than clocks may differ."""


class Overflow(Struct, frozen=True, gc=False):
    """So many matches are missing here: too many waited to be read, or they were damaged on our disk."""

    number: int
    count: int
    reason: Reason


ContentItem: TypeAlias = Match | Overflow
"""An item that a subscription is handed."""


class InGroups(Struct, frozen=True, gc=False):
    """The groups that a `fast` or `auto` subscription is in; told after each search and when they change.

    A reader need not acknowledge it: it does not count as a handled item."""

    joined: int
    """Groups that have taken it."""
    refused: int
    """Groups that have not."""
    unanswered: int
    """Boards that did not answer: there may be more groups."""
    look_again: float
    """Seconds until the next search for groups."""
