"""What the application asks of content, what is answered, and what it is handed."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, EventId, PeerId
from linnet.core.reasons import Reason


class Via(StrEnum):
    """By which way subscribers and events come together."""

    SCOUT = "scout"
    """By rendezvous: nobody has to know of anybody (ScoutSubs)."""
    FAST = "fast"
    """In groups that a publisher serves, over two links at most (FastDelivery)."""
    AUTO = "auto"
    """Subscribing: by both. Publishing: in a group of ours that carries it, otherwise by rendezvous."""


class GroupAt(Struct, frozen=True, array_like=True):
    """A group that need not be advertised: where its publisher is, and its predicate."""

    publisher: Contact
    group: str


class SubscribeContent(Struct, frozen=True, gc=False):
    """Hand over what this predicate accepts. Answered by `Standing`, at once, or `Declined`.

    With a name it is kept: it goes on while nobody reads it, and after a restart.
    """

    subscription: int
    predicate: str
    name: str | None = None
    via: Via = Via.SCOUT
    at: GroupAt | None = None
    """The one group to be in; None: all that carry it. Not by `scout`."""


class UnsubscribeContent(Struct, frozen=True, gc=False):
    """No more of it. Answered by `Ended` or `Declined`."""

    subscription: int


class ForgetContent(Struct, frozen=True, gc=False):
    """End a kept subscription for good, with all that waits in it. Answered by `Ended` or `Declined`."""

    name: str


class ListContent(Struct, frozen=True, gc=False):
    """Tell how content stands at this node. Answered by `ContentIs`."""


class PublishContent(Struct, frozen=True, gc=False):
    """Say this, with these attributes. Answered by `Outcome` or `Declined`.

    That is when all who live have answered. Those who say nothing are waited for `confirm` seconds; they are
    named if that was in vain, and what comes of it later is in the trace.
    """

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
    """Whether a kept one of this name was there before."""


class Ended(Struct, frozen=True, gc=False):
    """It is gone."""


class Fate(Struct, frozen=True, gc=False):
    """What became of an event at the rendezvous of one attribute."""

    attribute: str
    delivered: int
    """At so many nodes an application was handed it, as far as they said so. Each node counts once, at the
    rendezvous from which it came first: the sum over all fates is the number of nodes."""
    missed: int
    """Branches that did not answer, and are given up."""
    reason: Reason | None
    """Why it did not get there, or nothing is known."""
    again: int = 0
    """Nodes that want it from here too, and are counted elsewhere."""
    matches: int = 0
    """Subscriptions that were handed it, at these nodes: one may have several."""
    settled: bool = True
    """Whether this is the end of it; otherwise those in `silent` may still answer."""
    silent: tuple[PeerId, ...] = ()
    """Nodes that have not answered yet, for themselves or for those below them."""
    more_silent: int = 0
    """How many there are beside those."""


class Outcome(Struct, frozen=True, gc=False):
    """What became of an event, at each rendezvous. Without acknowledgements nothing is known but its id."""

    event: EventId
    fates: tuple[Fate, ...]


class SubscriptionIs(Struct, frozen=True, gc=False):
    """A subscription of this node, as it stands."""

    name: str | None
    """None: it ends with its reader."""
    predicate: str
    attribute: str
    """The attribute to whose rendezvous it goes; empty if it goes to groups alone."""
    read: bool
    """Whether somebody reads it now."""
    waiting: int
    """Matches that were not handled yet."""
    lost: int
    """Matches that were not taken, since too many waited."""
    via: Via = Via.SCOUT
    at: GroupAt | None = None
    groups: int | None = None
    """Groups that have taken it; None: it is not for groups."""


class ContentIs(Struct, frozen=True, gc=False):
    """How content stands at this node."""

    subscriptions: tuple[SubscriptionIs, ...]
    rendezvous: tuple[str, ...]
    """The attributes of which it is the rendezvous."""
    routes: int
    """Pairs of a neighbour and an attribute for which it carries filters."""
    settled: bool
    """Whether all subscriptions stand and all events have arrived, as far as it knows."""


ContentResult: TypeAlias = Standing | Ended | Outcome | ContentIs


class Match(Struct, frozen=True, gc=False):
    """An event that a subscription accepts."""

    event: EventId
    author: AuthorId
    attributes: str
    time: int
    body: bytes
    hops: int
    number: int = 0
    """Counts what one subscription is handed, from 1; after a crash an event has the same number again."""


class Overflow(Struct, frozen=True, gc=False):
    """So many matches were not taken here, since too many waited to be read."""

    number: int
    count: int
    reason: Reason


ContentItem: TypeAlias = Match | Overflow
"""What a subscription is handed."""


class InGroups(Struct, frozen=True, gc=False):
    """In which groups a subscription by `fast` or `auto` is: told when they were looked for, and when that
    changes. It is not counted among what is handled."""

    joined: int
    """Groups that have taken it."""
    refused: int
    """Groups that have not."""
    unanswered: int
    """Boards that were asked and said nothing: there may be more groups."""
    look_again: float
    """Seconds after which they are looked for again."""
