"""What nodes tell each other about content (tags 130 to 149)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.content.predicate import NAME_CHARS, TEXT_CHARS
from linnet.core.ids import Contact, Count, WireEventId, WirePeerId
from linnet.core.messages import BulkMessage, Message
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card

Attribute = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS + 3)]
"""A name, or a part of a hot one (`content.attribute_keys`)."""
Text = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS)]
REPLACED = 256
"""Predicates in one `Replace` at most."""
MOST_PATIENCE = 3_600_000
Hops = Annotated[int, Meta(ge=0, le=255)]
MOST_BACKUPS = 8
"""Nodes that keep the filters of one, at most."""
ROUTES = 64
"""Routes in one message at most."""
LOGGED = 512
"""Answers, and ends, of events in one message at most."""
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=MOST_BACKUPS)]


SILENT = 16
"""Nodes that are named as silent in one message at most; the others are counted."""


class SoFar(Struct, frozen=True, array_like=True, gc=False):
    """What is known of an event when only those are left who say nothing: they may still answer."""

    delivered: Count
    missed: Count
    again: Count
    matches: Count
    silent: Annotated[tuple[WirePeerId, ...], Meta(max_length=SILENT)]
    """Nodes that have not answered, for themselves or for those below them."""
    more: Count = 0
    """How many there are beside those."""


class Subscribe(Message, frozen=True, tag=130):
    """Send me what this predicate accepts; it goes on towards the rendezvous of the attribute."""

    number: Count
    attribute: Attribute
    predicate: Text
    hops: Hops
    moved: bool = False
    """Whether it was told to another before, so that what went by lately may have been missed."""
    backups: Contacts = ()
    """Who keeps the sender's filters: to be asked for its routes if it does not answer."""
    shortcut: Contact | None = None
    """Where to send instead, since the sender has but this one route; none: to the sender itself."""


class Subscribed(Message, frozen=True, tag=131):
    """It stands all the way to the rendezvous; or why not."""

    number: Count
    reason: Reason | None


class Replace(Message, frozen=True, tag=132):
    """Of all that I asked for under this attribute, only this still counts."""

    attribute: Attribute
    predicates: Annotated[tuple[Text, ...], Meta(max_length=REPLACED)]


class Publish(BulkMessage, frozen=True, tag=133):
    """An event on its way up, to the rendezvous of one of its attributes."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops


class Taken(BulkMessage, frozen=True, tag=134):
    """The rendezvous has it, or why it did not get there; goes back the way that the event came."""

    event: WireEventId
    attribute: Attribute
    reason: Reason | None
    parts: Annotated[int, Meta(ge=1, le=16)] = 1
    """In how many parts events of this attribute should go from now on."""
    so_far: SoFar | None = None
    """What became of it, if only silent ones are left; more may be said later, and `Settled` in the end."""


class Notice(BulkMessage, frozen=True, tag=135):
    """An event on its way down, along filters."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops
    patience: Annotated[int, Meta(ge=0, le=MOST_PATIENCE)] = 60_000
    """Milliseconds for which the sender waits for an answer: those below have to give up earlier."""


class Reached(BulkMessage, frozen=True, tag=136):
    """All below me have it: at so many nodes it was handed over, so many branches did not answer."""

    event: WireEventId
    attribute: Attribute
    delivered: Count
    missed: Count
    again: Count = 0
    """Nodes that had it by another attribute already, and are counted there."""
    matches: Count = 0
    """Subscriptions that were handed it."""


class Settled(BulkMessage, frozen=True, tag=137):
    """The same of everything below the rendezvous; goes back to the publisher."""

    event: WireEventId
    attribute: Attribute
    delivered: Count
    missed: Count
    again: Count = 0
    matches: Count = 0


class Claim(Message, frozen=True, tag=138):
    """I act as rendezvous of this attribute: a lookup found nobody closer."""

    attribute: Attribute


class Closer(Message, frozen=True, tag=139):
    """This one is closer to the attribute that you claim."""

    attribute: Attribute
    contact: Contact


class KeptRoute(Struct, frozen=True, array_like=True, gc=False):
    """A route of a node, as those know it who keep its filters."""

    contact: Contact
    backups: Contacts = ()
    predicates: Annotated[tuple[Text, ...], Meta(max_length=REPLACED)] = ()
    whole: bool = False
    """Whether this is all that it asks for under the attribute; otherwise more than what was told before."""


class Backup(Message, frozen=True, tag=140):
    """Keep these filters of mine, in case that I crash. Answered by `Kept`."""

    number: Count
    attribute: Attribute
    rendezvous: bool
    """Whether the sender is the rendezvous of the attribute."""
    fresh: bool
    """Whether all that was told before under this attribute no longer counts."""
    routes: Annotated[tuple[KeptRoute, ...], Meta(max_length=ROUTES)]


class Kept(Message, frozen=True, tag=141):
    """They are kept; or why not."""

    number: Count
    reason: Reason | None


class StandIn(Message, frozen=True, tag=142):
    """A node does not answer whose filters you keep: who below it wants this event? Answered by `Routes`."""

    event: WireEventId
    attribute: Attribute
    attributes: Text
    absent: WirePeerId


class Routes(Message, frozen=True, tag=143):
    """These do, by what is kept of its filters; or why nothing is known."""

    event: WireEventId
    attribute: Attribute
    absent: WirePeerId
    routes: Annotated[tuple[KeptRoute, ...], Meta(max_length=ROUTES)]
    more: bool = False
    """Whether another such message follows."""
    reason: Reason | None = None


class Held(BulkMessage, frozen=True, tag=144):
    """I have it, and wait for those below me."""

    event: WireEventId
    attribute: Attribute
    so_far: SoFar | None = None
    """What became of it, if only silent ones are left."""


class Keepers(Message, frozen=True, tag=146):
    """These keep my filters now; goes to whom I subscribe."""

    backups: Contacts


class Log(BulkMessage, frozen=True, tag=147):
    """I am the rendezvous of this event: if I am gone before it is finished, see to it."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops


class Tracked(Struct, frozen=True, array_like=True, gc=False):
    """An event, and the attribute to whose rendezvous it went."""

    event: WireEventId
    attribute: Attribute


class Answered(Struct, frozen=True, array_like=True, gc=False):
    """A route has answered for an event."""

    event: WireEventId
    attribute: Attribute
    route: WirePeerId
    delivered: Count
    missed: Count
    again: Count = 0
    matches: Count = 0


class Logged(BulkMessage, frozen=True, tag=148):
    """Of events that you track: routes that have answered, and those that are finished; forget these."""

    answers: Annotated[tuple[Answered, ...], Meta(max_length=LOGGED)]
    finished: Annotated[tuple[Tracked, ...], Meta(max_length=LOGGED)]


class Before(Message, frozen=True, tag=145):
    """This one claimed the attribute before you, and may know of subscriptions that you do not."""

    attribute: Attribute
    contact: Contact


ContentMessage: TypeAlias = (
    Subscribe
    | Subscribed
    | Replace
    | Publish
    | Taken
    | Notice
    | Reached
    | Settled
    | Claim
    | Closer
    | Backup
    | Kept
    | StandIn
    | Routes
    | Held
    | Before
    | Keepers
    | Log
    | Logged
)
