"""The node's own commands about places: addresses, names, first messages, and whole messages.

This module also has the lines that places write: pieces as they arrive, or whole messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, TypeAlias, assert_never

from msgspec import Meta, Struct

from linnet.api.items import EndedView, HeartbeatView, SubscribedView, text_of
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, from_text, person_text, topic_text
from linnet.machine.commands import Command, Commas
from linnet.places.address import PlaceAddress
from linnet.places.channel.packet import Modifier
from linnet.places.commands import (
    LARGEST_NUMBER,
    MAX_METHODS,
    WATCHER_CHARS,
    AtDoor,
    Cohosts,
    Contacts,
    Entered,
    Keepers,
    Keywords,
    Modifiers,
    Number,
    Patience,
    PlaceIs,
    PlaceObject,
    Turned,
    Watching,
    Words,
)
from linnet.places.deed import Policy
from linnet.places.fragment_writer import NYM
from linnet.places.items import Body, Changed, Knocked, Lost, PlaceItem, Said, TakenBack

INLINE_BYTES = 1024 * 1024
"""The most bytes of a body in a line, unless another size is requested."""
Largest = Annotated[int, Meta(ge=0, le=16 * INLINE_BYTES)]


class OpenPlace(Command["PlaceReport"], frozen=True, gc=False):
    """Found a place and open its door; answered when it is durable here."""

    policy: Policy = Policy.PUBLIC
    """Who may enter, and which past messages are open to them."""
    name: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    cohosts: Cohosts = ()
    """The people who may speak while the host is away, in order of rank."""
    keepers: Keepers = ()
    """Relays that keep the messages."""
    modifiers: Modifiers = ()
    """The modifiers of its first message, apart from its name."""


class ExaminePlace(Command["PlaceReport"], frozen=True, gc=False):
    """Return the state of a place of this node, and the address by which others enter it."""

    place: TopicId


class PlaceReport(Struct, frozen=True):
    """A place, and the address by which others enter it."""

    place: PlaceIs
    address: PlaceAddress


class AskToEnter(Command[Entered | AtDoor | Turned], frozen=True, gc=False):
    """Enter a place, or return to it; answered when we are in, or turned away."""

    where: Annotated[str, Meta(min_length=1, max_length=16_384)]
    """An address `la1…`, a name such as `music.alice`, or the place's id `lt1…`."""
    contacts: Contacts = ()
    """Contacts to ask, besides those that an address names."""
    text: Words = ""
    """A message for the host at the door."""
    patience: Patience = 20.0
    waits: bool = True
    """Whether to wait for the decision of a host that decides who enters; otherwise it is answered at
    once."""
    modifiers: Modifiers = ()
    """Variables of the message for the host."""
    body: bytes = b""
    """The message for the host as bytes, instead of a text."""


class ListenToPlace(Command[Watching], frozen=True, gc=False):
    """Read the messages of a place, one by one."""

    subscription: int
    place: TopicId
    since: Number | None = None
    """The first message wanted. Absent: new messages only."""
    name: Annotated[str, Meta(min_length=1, max_length=WATCHER_CHARS)] | None = None
    """Makes it durable: it resumes after the last message that was consumed."""
    methods: Annotated[tuple[Keywords, ...], Commas, Meta(min_length=1, max_length=MAX_METHODS)] | None = None
    """Lets several listeners share the place: each message goes to the most specific method that covers its
    own. Absent: everything."""
    objects: Keywords | None = None
    """Also report changes of objects whose names begin with this; empty: of all."""
    largest: Largest = INLINE_BYTES
    """The most bytes of a body in a line; longer ones are fetched by the message's number."""


class ReadPlaceHistory(Command[Watching], frozen=True, gc=False):
    """Read past messages in order; messages that are not here are requested from others."""

    subscription: int
    place: TopicId
    first: Number | None = None
    """The number of the first message. Absent: the first that is open to this node."""
    last: Number | None = None
    """The number of the last message. Absent: the newest."""
    largest: Largest = INLINE_BYTES
    """The most bytes of a body in a line; longer ones are fetched by the message's number."""


class ReadBody(Command[Watching], frozen=True, gc=False):
    """Read the body of one message piece by piece, from a byte on, however long it is."""

    subscription: int
    place: TopicId
    message: Number
    """The number of the message."""
    offset: Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)] = 0
    """The first byte; a reader that was interrupted resumes here."""


_NYM_HEX = re.compile(rb"[0-9a-f]{64}")


class VariableView(Struct, frozen=True, omit_defaults=True):
    """A change of a variable."""

    operator: Annotated[str, Meta(pattern="^[:=+-]$", description="`:` for this message only, `=`, `+`, `-`")]
    name: str
    value: bytes = b""
    text: str | None = None
    """The value, if it is UTF-8; in requests, it can be given instead of `value`."""


class ObjectView(Struct, frozen=True, omit_defaults=True):
    """An object of a place."""

    name: str
    value: bytes
    text: str | None = None
    """The value, if it is UTF-8."""


class SaidView(Struct, frozen=True, tag="said", omit_defaults=True):
    """A message begins."""

    place: str
    message: int
    author: str
    """The person whose device signed it."""
    method: str
    variables: tuple[VariableView, ...] = ()
    nym: str | None = None
    """The sender of a request, at the host; absent: it was said to all."""
    historic: bool = False


class PieceView(Struct, frozen=True, tag="piece", omit_defaults=True):
    """Bytes of the body of a message."""

    place: str
    message: int
    offset: int
    data: bytes
    last: bool = False
    nym: str | None = None
    """As in the line in which the message began."""


class MessageView(Struct, frozen=True, tag="message", omit_defaults=True):
    """A message, or a request of a guest, that has arrived whole."""

    message: int
    method: str
    author: str
    """The person whose device signed it."""
    size: int
    """Bytes of its body."""
    variables: tuple[VariableView, ...] = ()
    body: bytes | None = None
    """Absent: it is longer than requested."""
    text: str | None = None
    """The body, if it is UTF-8."""
    nym: str | None = None
    """The sender of a request, at the host; absent: it was said to all."""
    historic: bool = False


class KnockedView(Struct, frozen=True, tag="knocked", omit_defaults=True):
    """A person waits at the door."""

    place: str
    person: str
    method: str
    variables: tuple[VariableView, ...] = ()
    text: str = ""
    body: bytes | None = None
    """The message at the door, if it is not UTF-8."""


class ChangedView(Struct, frozen=True, tag="changed", omit_defaults=True):
    """An object has a new value."""

    place: str
    message: int
    name: str
    value: bytes | None = None
    """Absent: the object was removed."""
    text: str | None = None
    """The value, if it is UTF-8."""


class LostView(Struct, frozen=True, tag="lost"):
    """Messages that nobody could provide."""

    place: str
    first: int
    last: int
    reason: str


class TakenBackView(Struct, frozen=True, tag="taken_back"):
    """Messages that were handed over do not count; their sender says them again, under new numbers."""

    place: str
    messages: tuple[int, ...]


PlaceItemView: TypeAlias = (
    SaidView
    | PieceView
    | MessageView
    | KnockedView
    | ChangedView
    | LostView
    | TakenBackView
    | EndedView
    | SubscribedView
    | HeartbeatView
)


def place_item_view(item: PlaceItem | Ended) -> PlaceItemView:
    """Return an item of a place that is watched piece by piece as a line."""
    match item:
        case Said():
            return SaidView(
                topic_text(item.place),
                item.message,
                person_text(item.author),
                item.method,
                _variable_views(item.modifiers),
                None if item.nym is None else person_text(item.nym),
                item.historic,
            )
        case Body():
            nym = None if item.nym is None else person_text(item.nym)
            return PieceView(topic_text(item.place), item.message, item.offset, item.data, item.last, nym)
        case Knocked(place, nym, method, modifiers, raw):
            text = text_of(raw)
            told = (text, None) if text is not None else (raw.decode("utf-8", "replace"), raw)
            return KnockedView(topic_text(place), person_text(nym), method, _variable_views(modifiers), *told)
        case Changed(place, message, name, value):
            text = None if value is None else text_of(value)
            return ChangedView(topic_text(place), message, name, value, text)
        case Lost(place, first, last, reason):
            return LostView(topic_text(place), first, last, reason.value)
        case TakenBack(place, messages):
            return TakenBackView(topic_text(place), messages)
        case Ended(why):
            return EndedView(None if why is None else why.value)
        case _:
            assert_never(item)


def place_item_of(view: PlaceItemView) -> PlaceItem | Ended | None:
    """Return the item of a line; None for whole messages and for lines that only keep the connection."""
    match view:
        case SaidView():
            author, modifiers = _person(view.author), _modifiers_of(view.variables)
            nym = None if view.nym is None else _person(view.nym)
            place = _place(view.place)
            return Said(place, view.message, nym, author, view.method, modifiers, view.historic)
        case PieceView():
            nym = None if view.nym is None else _person(view.nym)
            return Body(_place(view.place), view.message, nym, view.offset, view.data, view.last)
        case KnockedView(place, person, method, variables, text, body):
            raw = text.encode() if body is None else body
            return Knocked(_place(place), _person(person), method, _modifiers_of(variables), raw)
        case ChangedView(place, message, name, value):
            return Changed(_place(place), message, name, value)
        case LostView(place, first, last, reason):
            return Lost(_place(place), first, last, Reason(reason))
        case TakenBackView(place, messages):
            return TakenBack(_place(place), messages)
        case EndedView(why):
            return Ended(None if why is None else Reason(why))
        case MessageView() | SubscribedView() | HeartbeatView():
            return None
        case _:
            assert_never(view)


def message_view(said: Said, size: int, body: bytes | None) -> MessageView:
    """Return a message that has arrived whole as a line; with its body, if that is not too long."""
    return MessageView(
        said.message,
        said.method,
        person_text(said.author),
        size,
        _variable_views(said.modifiers),
        body,
        None if body is None else text_of(body),
        None if said.nym is None else person_text(said.nym),
        said.historic,
    )


def variable_view(modifier: Modifier) -> VariableView:
    """Return a modifier as a line; the hexadecimal person in a notice becomes a person id."""
    text = text_of(modifier.value)
    if modifier.name == NYM and _NYM_HEX.fullmatch(modifier.value):
        text = person_text(AuthorId(bytes.fromhex(modifier.value.decode())))
    return VariableView(modifier.operator, modifier.name, modifier.value, text)


def modifier_of(view: VariableView) -> Modifier:
    """Return the modifier of a line; its text is used if it has no value."""
    return Modifier(view.operator, view.name, view.value or (view.text or "").encode())


def object_view(found: PlaceObject) -> ObjectView:
    """Return an object of a place as a line."""
    return ObjectView(found.name, found.value, text_of(found.value))


def object_of(view: ObjectView) -> PlaceObject:
    """Return the object of a line."""
    return PlaceObject(view.name, view.value)


def _variable_views(modifiers: Iterable[Modifier]) -> tuple[VariableView, ...]:
    return tuple(map(variable_view, modifiers))


def _modifiers_of(views: Iterable[VariableView]) -> tuple[Modifier, ...]:
    return tuple(map(modifier_of, views))


def _place(text: str) -> TopicId:
    return TopicId(from_text(Sort.TOPIC, text))


def _person(text: str) -> AuthorId:
    return AuthorId(from_text(Sort.PERSON, text))
