"""The lines that subscriptions write: events in one flat shape, and notices between them.

These shapes are written by hand: in machines, an event is nested and lazy, while lines are public.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import (
    CaughtUp,
    CutOff,
    Ended,
    Forked,
    Inserted,
    Item,
    Missed,
    Overdue,
    RelayFaulty,
    StorageDiffers,
    StorageTold,
    Unreadable,
)
from linnet.event.event import Event, Tail
from linnet.identity.text import Sort, device_text, event_text, from_text, person_text, topic_text


class Alarm(StrEnum):
    """The kind of a warning about a person."""

    SAME_NAME = "same_name"
    """A person uses a name by which another person was known before."""
    VERIFIED_NAME = "verified_name"
    """The same, and the other person was verified."""
    OWN_NAME = "own_name"
    """The same, and the other person is ourselves."""
    NEW_DEVICE = "new_device"
    """A verified person has a device that was not there at the time."""
    OWN_DEVICE = "own_device"
    """The same for ourselves."""


class EventView(Struct, frozen=True, tag="event", omit_defaults=True):
    """An event whose signature was checked."""

    id: str
    topic: str
    author: str
    device: str
    """The short name of the author's device, hexadecimal."""
    kind: str
    time: int
    """The author's clock, milliseconds; advisory."""
    body: bytes
    seq: int | None = None
    prev: str | None = None
    text: str | None = None
    """The body, if it is UTF-8."""
    key: str | None = None
    """Rooms: present if the event sets state."""
    height: int | None = None
    """Rooms: the length of the longest path to it from the room's first event."""
    label: str | None = None
    """Rooms: the label of the author's device."""
    content: dict[str, Any] | None = None
    """Rooms: the decoded body, if nodes understand its kind."""
    unreadable: str | None = None
    """Encrypted rooms, sealed streams: why it cannot be read here. Once it can be read, it is sent again,
    whole. Rooms: `redacted`, if it was redacted."""
    redacted_by: str | None = None
    """Rooms: the person who redacted it."""
    doubtful: bool = False
    """Whether its time cannot be right: it was ahead of this node's clock when the event came, or is before
    that of an event that it follows, by more than five minutes."""


class MissedView(Struct, frozen=True, tag="missed", omit_defaults=True):
    """A range of a chain that nobody could provide."""

    topic: str
    author: str
    device: str
    first: int
    last: int
    reason: str
    claimed_by: int = 0
    """The peers by whose word alone these events exist: they may be invented. Absent: the device itself shows
    that they exist, by a later event or by its word."""


class ForkedView(Struct, frozen=True, tag="forked"):
    """A device signed two different events under one number: others may have read another one."""

    topic: str
    author: str
    device: str
    number: int


class StorageToldView(Struct, frozen=True):
    """How far a storage node says that it keeps a chain; null: not at all."""

    node: str
    last: int | None


class StorageDiffersView(Struct, frozen=True, tag="storage_differs"):
    """Storage nodes differ about a chain. Everything that any of them has shown was sent."""

    topic: str
    author: str
    device: str
    last: int | None
    """The last event that any of them has shown."""
    told: tuple[StorageToldView, ...]
    others: int
    """Further chains about which they differ."""


class CutOffView(Struct, frozen=True, tag="cut_off"):
    """This node may be cut off: others claim to have events that nobody hands over; 0 events: no longer."""

    topic: str
    events: int
    claimants: int


class CaughtUpView(Struct, frozen=True, tag="caught_up"):
    """All history was handed over; the following items are live."""

    begins_at: float | None
    evicted: bool
    reason: str | None


class EndedView(Struct, frozen=True, tag="ended"):
    """The subscription has ended."""

    reason: str | None


class SubscribedView(Struct, frozen=True, tag="subscribed"):
    """The first line: the subscription is open, with its number."""

    subscription: int
    resumed: bool


class HeartbeatView(Struct, frozen=True, tag="heartbeat"):
    """Sent after a while without items: the subscription is alive."""


class InsertedView(Struct, frozen=True, tag="inserted"):
    """Rooms: the next event arrived late and belongs before one that was sent already."""

    event: str
    before: str
    """The event that belongs behind it and was sent first."""


class OverdueView(Struct, frozen=True, tag="overdue"):
    """A deadline has passed, and an event of ours is not known to have reached these people."""

    event: str
    people: tuple[str, ...]


class RelayFaultyView(Struct, frozen=True, tag="relay_faulty"):
    """Rooms: a relay is caught by its own signed statements."""

    relay: str
    reason: str
    """`withheld`: it hides an event that it had signed to have taken. `equivocation`: it signed two
    histories. Both are proved to everybody. `stale`: it shows us an older state than it signed. `lost`:
    it went on from an older state; a restored copy of its store does that too."""
    event: str | None
    """The event that is withheld."""


class WarningView(Struct, frozen=True, tag="warning", omit_defaults=True):
    """Rooms: a person may not be who they seem to be. Sent once; it is not an item to be consumed."""

    alarm: Alarm
    person: str
    """The person it is about."""
    label: str
    """The name that they use."""
    other: str | None = None
    """The person who was known by this name before."""
    device: str | None = None
    """The new device."""


ItemView: TypeAlias = (
    EventView
    | MissedView
    | ForkedView
    | StorageDiffersView
    | CutOffView
    | CaughtUpView
    | OverdueView
    | RelayFaultyView
    | InsertedView
    | EndedView
    | SubscribedView
    | HeartbeatView
    | WarningView
)


def item_view(item: Item) -> ItemView:
    """Return an item of a subscription as a line."""
    match item:
        case Event():
            return event_view(item)
        case Unreadable(event, reason, by):
            taken_back = None if by is None else person_text(by)
            return replace(event_view(event), text=None, unreadable=reason.value, redacted_by=taken_back)
        case Missed():
            return MissedView(
                topic_text(item.topic),
                person_text(item.author),
                item.device.hex(),
                item.first,
                item.last,
                item.reason.value,
                item.claimed_by,
            )
        case Forked(topic, author, device, number):
            return ForkedView(topic_text(topic), person_text(author), device.hex(), number)
        case StorageDiffers(topic, author, device, last, told, others):
            nodes = tuple(StorageToldView(device_text(each.node), each.last) for each in told)
            return StorageDiffersView(
                topic_text(topic), person_text(author), device.hex(), last, nodes, others
            )
        case CutOff(topic, events, claimants):
            return CutOffView(topic_text(topic), events, claimants)
        case CaughtUp(begins_at, evicted, reason):
            return CaughtUpView(begins_at, evicted, _reason_text(reason))
        case Inserted(_, event, before):
            return InsertedView(event_text(event), event_text(before))
        case Overdue(_, event, people):
            names = tuple(map(person_text, people))
            return OverdueView(event_text(event), names)
        case RelayFaulty(_, relay, reason, event):
            shown = None if event is None else event_text(event)
            return RelayFaultyView(device_text(relay), reason.value, shown)
        case Ended(reason):
            return EndedView(_reason_text(reason))
        case _:
            assert_never(item)


def event_view(event: Event) -> EventView:
    """Return an event as a line."""
    return EventView(
        id=event_text(event.id),
        topic=topic_text(event.topic),
        author=person_text(event.author),
        device=event.device.hex(),
        kind=event.kind,
        time=event.time,
        body=event.body,
        seq=event.seq,
        prev=None if event.prev is None else event_text(event.prev),
        text=text_of(event.body),
        key=event.tail.key,
        height=event.tail.height,
        doubtful=event.doubtful,
    )


def item_of(view: ItemView) -> Item | None:
    """Return the item of a line; None for lines that only keep the connection."""
    match view:
        case EventView():
            event = event_of(view)
            return event if view.unreadable is None else Unreadable(event, Reason(view.unreadable))
        case MissedView():
            return Missed(
                TopicId(from_text(Sort.TOPIC, view.topic)),
                AuthorId(from_text(Sort.PERSON, view.author)),
                DeviceId(bytes.fromhex(view.device)),
                view.first,
                view.last,
                Reason(view.reason),
                view.claimed_by,
            )
        case ForkedView(topic, author, device, number):
            return Forked(
                TopicId(from_text(Sort.TOPIC, topic)),
                AuthorId(from_text(Sort.PERSON, author)),
                DeviceId(bytes.fromhex(device)),
                number,
            )
        case StorageDiffersView(topic, author, device, last, told, others):
            return StorageDiffers(
                TopicId(from_text(Sort.TOPIC, topic)),
                AuthorId(from_text(Sort.PERSON, author)),
                DeviceId(bytes.fromhex(device)),
                last,
                tuple(StorageTold(PeerId(from_text(Sort.DEVICE, each.node)), each.last) for each in told),
                others,
            )
        case CutOffView(topic, events, claimants):
            return CutOff(TopicId(from_text(Sort.TOPIC, topic)), events, claimants)
        case CaughtUpView(begins_at, evicted, reason):
            return CaughtUp(begins_at, evicted, _reason(reason))
        case EndedView(reason):
            return Ended(_reason(reason))
        case OverdueView(event=told, people=people):
            names = tuple(AuthorId(from_text(Sort.PERSON, person)) for person in people)
            return Overdue(TopicId(b""), EventId(from_text(Sort.EVENT, told)), names)
        case RelayFaultyView(relay, why, shown):
            withheld = None if shown is None else EventId(from_text(Sort.EVENT, shown))
            peer = PeerId(from_text(Sort.DEVICE, relay))
            return RelayFaulty(TopicId(b""), peer, Reason(why), withheld)
        case InsertedView(event=told, before=before):
            ids = (EventId(from_text(Sort.EVENT, each)) for each in (told, before))
            return Inserted(TopicId(b""), *ids)
        case SubscribedView() | HeartbeatView() | WarningView():
            return None
        case _:
            assert_never(view)


def event_of(view: EventView) -> Event:
    """Return the event of a line; the node has checked its signature."""
    return Event(
        EventId(from_text(Sort.EVENT, view.id)),
        TopicId(from_text(Sort.TOPIC, view.topic)),
        AuthorId(from_text(Sort.PERSON, view.author)),
        DeviceId(bytes.fromhex(view.device)),
        view.seq,
        None if view.prev is None else EventId(from_text(Sort.EVENT, view.prev)),
        Tail(None, None, view.height, None, view.kind, view.key, view.time, None, view.body),
        view.doubtful,
    )


def text_of(body: bytes) -> str | None:
    """Return a body as text, if it is UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _reason_text(reason: Reason | None) -> str | None:
    return None if reason is None else reason.value


def _reason(text: str | None) -> Reason | None:
    return None if text is None else Reason(text)
