"""What the application asks of content, what is answered, and what it is handed."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason


class SubscribeContent(Struct, frozen=True, gc=False):
    """Hand over what this predicate accepts. Answered by `Standing`, at once, or `Declined`."""

    subscription: int
    predicate: str


class UnsubscribeContent(Struct, frozen=True, gc=False):
    """No more of it. Answered by `Ended` or `Declined`."""

    subscription: int


class PublishContent(Struct, frozen=True, gc=False):
    """Say this, with these attributes. Answered by `Outcome`, when all is known, or `Declined`."""

    attributes: str
    body: bytes


ContentCommand: TypeAlias = SubscribeContent | UnsubscribeContent | PublishContent


class Standing(Struct, frozen=True, gc=False):
    """The subscription is kept, and goes to the rendezvous of this attribute."""

    predicate: str
    attribute: str


class Ended(Struct, frozen=True, gc=False):
    """It is gone."""


class Fate(Struct, frozen=True, gc=False):
    """What became of an event at the rendezvous of one attribute."""

    attribute: str
    delivered: int
    """At so many nodes an application was handed it, as far as they said so."""
    missed: int
    """Branches that did not answer."""
    reason: Reason | None
    """Why it did not get there, or nothing is known."""


class Outcome(Struct, frozen=True, gc=False):
    """What became of an event, at each rendezvous. Without acknowledgements nothing is known but its id."""

    event: EventId
    fates: tuple[Fate, ...]


ContentResult: TypeAlias = Standing | Ended | Outcome


class Match(Struct, frozen=True, gc=False):
    """An event that a subscription accepts."""

    event: EventId
    author: AuthorId
    attributes: str
    time: int
    body: bytes
    hops: int
