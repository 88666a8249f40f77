"""The messages that nodes exchange about content (tags 130 to 149)."""

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
"""An attribute's name, or the name of a part of a hot one (`content.attribute_keys`)."""
Text = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS)]
REPLACED = 256
"""Predicates in one `Replace`, at most."""
MOST_PATIENCE = 3_600_000
Hops = Annotated[int, Meta(ge=0, le=255)]
MOST_BACKUPS = 8
"""Nodes that keep the filters of one node, at most."""
ROUTES = 64
"""Routes in one message, at most."""
LOGGED = 512
"""Events with answers, and finished events, in one message, at most each."""
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=MOST_BACKUPS)]


SILENT = 16
"""Nodes that are named as silent in one message, at most; the others are counted."""


class SoFar(Struct, frozen=True, array_like=True, gc=False):
    """The preliminary outcome of an event when only silent nodes are left: they may still answer."""

    delivered: Count
    missed: Count
    again: Count
    matches: Count
    silent: Annotated[tuple[WirePeerId, ...], Meta(max_length=SILENT)]
    """Nodes that have not answered, for themselves or for nodes below them."""
    more: Count = 0
    """The number of silent nodes beyond those named."""


class Subscribe(Message, frozen=True, tag=130):
    """Send me the events that this predicate accepts; passed on towards the rendezvous of the attribute."""

    number: Count
    attribute: Attribute
    predicate: Text
    hops: Hops
    moved: bool = False
    """Whether it was sent to another node before, so that recent events may have been missed."""
    backups: Contacts = ()
    """The keepers of the sender's filters: to be asked for its routes if it does not answer."""
    shortcut: Contact | None = None
    """The node to send to instead, since it is the sender's only route; None: the sender itself."""


class Verdict(Message, frozen=True):
    """Base of answers that only confirm a request, or give the reason why it failed."""

    number: Count
    """The number of the request."""
    reason: Reason | None


class Subscribed(Verdict, frozen=True, tag=131):
    """The subscription stands all the way to the rendezvous; or the reason why not."""


class Replace(Message, frozen=True, tag=132):
    """Of all that I asked for under this attribute, only these predicates still count."""

    attribute: Attribute
    predicates: Annotated[tuple[Text, ...], Meta(max_length=REPLACED)]


class Publish(BulkMessage, frozen=True, tag=133):
    """An event on its way up, to the rendezvous of one of its attributes."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops


class Taken(BulkMessage, frozen=True, tag=134):
    """The rendezvous has the event, or the reason why it did not get there; sent back the way it came."""

    event: WireEventId
    attribute: Attribute
    reason: Reason | None
    parts: Annotated[int, Meta(ge=1, le=16)] = 1
    """In how many parts the events of this attribute should go from now on."""
    so_far: SoFar | None = None
    """The preliminary outcome if only silent nodes are left; more may follow, and `Settled` in the end."""


class Notice(BulkMessage, frozen=True, tag=135):
    """An event on its way down, along filters."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops
    patience: Annotated[int, Meta(ge=0, le=MOST_PATIENCE)] = 60_000
    """Milliseconds for which the sender waits for an answer: nodes further down have to give up earlier."""


class Arrival(BulkMessage, frozen=True):
    """Base of acknowledgements: how many nodes were handed an event, and how many branches did not answer."""

    event: WireEventId
    attribute: Attribute
    delivered: Count
    missed: Count
    again: Count = 0
    """Nodes that had it by another attribute already, and are counted there."""
    matches: Count = 0
    """Subscriptions that were handed it."""


class Reached(Arrival, frozen=True, tag=136):
    """All nodes below me have answered for the event."""


class Settled(Arrival, frozen=True, tag=137):
    """All nodes below the rendezvous have answered; sent back to the publisher."""


class Claim(Message, frozen=True, tag=138):
    """I act as rendezvous of this attribute: a lookup found nobody closer."""

    attribute: Attribute


class Closer(Message, frozen=True, tag=139):
    """This node is closer to the attribute that you claim."""

    attribute: Attribute
    contact: Contact


class KeptRoute(Struct, frozen=True, array_like=True, gc=False):
    """A route of a node, as the keepers of its filters know it."""

    contact: Contact
    backups: Contacts = ()
    predicates: Annotated[tuple[Text, ...], Meta(max_length=REPLACED)] = ()
    whole: bool = False
    """Whether these are all its predicates under the attribute; otherwise they add to earlier ones."""


class Backup(Message, frozen=True, tag=140):
    """Keep these filters of mine, in case I crash. Answered by `Kept`."""

    number: Count
    attribute: Attribute
    rendezvous: bool
    """Whether the sender is the rendezvous of the attribute."""
    fresh: bool
    """Whether all filters that were sent before under this attribute no longer count."""
    routes: Annotated[tuple[KeptRoute, ...], Meta(max_length=ROUTES)]


class Kept(Verdict, frozen=True, tag=141):
    """I keep the filters; or the reason why not."""


class StandIn(Message, frozen=True, tag=142):
    """I miss a node whose filters you keep: which of its routes want this event? Answered by `Routes`."""

    event: WireEventId
    attribute: Attribute
    attributes: Text
    absent: WirePeerId


class Routes(Message, frozen=True, tag=143):
    """The routes that want the event, by the filters kept; or the reason why they are unknown."""

    event: WireEventId
    attribute: Attribute
    absent: WirePeerId
    routes: Annotated[tuple[KeptRoute, ...], Meta(max_length=ROUTES)]
    more: bool = False
    """Whether another such message follows."""
    reason: Reason | None = None


class Held(BulkMessage, frozen=True, tag=144):
    """I have the event, and wait for the nodes below me."""

    event: WireEventId
    attribute: Attribute
    so_far: SoFar | None = None
    """The preliminary outcome, if only silent nodes are left."""


class Keepers(Message, frozen=True, tag=146):
    """These nodes keep my filters now; sent to the next hop that I subscribe at."""

    backups: Contacts


class Log(BulkMessage, frozen=True, tag=147):
    """I am the rendezvous of this event: take over if I am gone before it is finished."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops


class Tracked(Struct, frozen=True, array_like=True, gc=False):
    """An event, and the attribute whose rendezvous it went to."""

    event: WireEventId
    attribute: Attribute


class Answered(Struct, frozen=True, array_like=True, gc=False):
    """A route's answer for an event."""

    event: WireEventId
    attribute: Attribute
    route: WirePeerId
    delivered: Count
    missed: Count
    again: Count = 0
    matches: Count = 0


class Logged(BulkMessage, frozen=True, tag=148):
    """News of events that you track: routes that have answered, and finished events, to be forgotten."""

    answers: Annotated[tuple[Answered, ...], Meta(max_length=LOGGED)]
    finished: Annotated[tuple[Tracked, ...], Meta(max_length=LOGGED)]


class Before(Message, frozen=True, tag=145):
    """This node claimed the attribute before you, and may know of subscriptions that you do not."""

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
