"""Places as the control API tells them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from linnet.core.ids import AuthorId, TopicId
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, to_text
from linnet.node.addresses import contact_text
from linnet.node.control_types import EndedView
from linnet.node.control_views import device_text
from linnet.node.place_items import Handed
from linnet.node.place_messages import Heard, Message
from linnet.node.place_types import (
    AnnouncedReply,
    ChangedView,
    DeedView,
    GuestsReply,
    GuestView,
    KnockedView,
    LostView,
    MessageView,
    ObjectsReply,
    ObjectView,
    PieceView,
    PlaceItemView,
    PlaceReceiptsReply,
    PlaceView,
    ReceiptView,
    TakenBackView,
    TalkedReply,
    VariableView,
)
from linnet.places.channel.packet import Modifier
from linnet.places.commands import Announced, GuestsAre, ObjectsAre, PlaceIs, ReceiptsAre, Talked
from linnet.places.fragment_writer import NYM
from linnet.places.items import Body, Changed, Knocked, Lost, Said, TakenBack


def place_text(place: TopicId) -> str:
    """A place's id as people type it."""
    return to_text(Sort.TOPIC, place)


def person_text(person: AuthorId) -> str:
    """A person's id as people type it."""
    return to_text(Sort.PERSON, person)


def place_view(status: PlaceIs, name: str | None) -> PlaceView:
    """A place as it stands."""
    deed = status.deed
    return PlaceView(
        place_text(deed.place),
        name,
        status.role,
        DeedView(
            deed.version,
            deed.policy,
            person_text(deed.host),
            tuple(map(person_text, deed.cohosts)),
            tuple(map(contact_text, deed.keepers)),
        ),
        None if status.voice is None else device_text(status.voice),
        status.term,
        status.message,
        status.fragment,
        status.missing,
        status.generation,
        status.guests,
        tuple(map(device_text, status.upstreams)),
        tuple(map(device_text, status.downstreams)),
        status.variables,
        status.state,
        status.state_hash.hex(),
    )


def announced_view(announced: Announced) -> AnnouncedReply:
    """What became of an announcement."""
    return AnnouncedReply(place_text(announced.place), announced.message, announced.fragment, announced.size)


def talked_view(talked: Talked) -> TalkedReply:
    """What became of a request."""
    return TalkedReply(place_text(talked.place), talked.request, device_text(talked.voice))


def objects_view(objects: ObjectsAre) -> ObjectsReply:
    """Objects of a place."""
    views = tuple(ObjectView(name, value, text_of(value)) for name, value in objects.objects)
    return ObjectsReply(place_text(objects.place), objects.state, views)


def receipts_view(told: ReceiptsAre) -> PlaceReceiptsReply:
    """Which guests have a message."""
    receipts = tuple(ReceiptView(person_text(each.nym), each.state, each.at_ms) for each in told.receipts)
    return PlaceReceiptsReply(place_text(told.place), told.message, receipts)


def guests_view(told: GuestsAre) -> GuestsReply:
    """Guests, and who waits."""
    guests = tuple(GuestView(person_text(each.nym), each.since, each.upto) for each in told.guests)
    said = tuple(each.decode("utf-8", "replace") for each in told.said)
    return GuestsReply(place_text(told.place), guests, tuple(map(person_text, told.waiting)), said)


def heard_view(heard: Heard) -> PlaceItemView:
    """What is heard in a place."""
    match heard:
        case Message():
            return MessageView(
                heard.number,
                heard.method,
                person_text(heard.author),
                heard.size,
                variable_views(heard.modifiers),
                heard.body,
                None if heard.body is None else text_of(heard.body),
                None if heard.nym is None else person_text(heard.nym),
                heard.historic,
            )
        case Knocked(_, nym, method, modifiers, text):
            words = text.decode("utf-8", "replace")
            return KnockedView(person_text(nym), method, variable_views(modifiers), words)
        case Changed(_, message, name, value):
            return ChangedView(message, name, value, None if value is None else text_of(value))
        case Lost(_, first, last, reason):
            return LostView(first, last, reason.value)
        case TakenBack(_, messages):
            return TakenBackView(messages)
        case Ended(reason):
            return EndedView(None if reason is None else reason.value)


def piece_view(item: Handed) -> PlaceItemView:
    """A piece of one body, or why there is none."""
    match item:
        case Said():
            return PieceView(0, b"")
        case Body(offset=offset, data=data):
            return PieceView(offset, data)
        case _:
            return heard_view(item)


def variable_views(modifiers: Iterable[Modifier]) -> tuple[VariableView, ...]:
    """Variables of a message."""
    return tuple(
        VariableView(each.operator, each.name, each.value, _nym_text(each) or text_of(each.value))
        for each in modifiers
    )


def _nym_text(modifier: Modifier) -> str | None:
    """Of whom a notice tells, as people are called everywhere else: it travels in hexadecimal."""
    if modifier.name != NYM or not re.fullmatch(rb"[0-9a-f]{64}", modifier.value):
        return None
    return person_text(AuthorId(bytes.fromhex(modifier.value.decode())))


def text_of(value: bytes) -> str | None:
    """The bytes as text, if they are UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
