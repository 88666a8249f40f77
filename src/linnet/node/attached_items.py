"""What a running node tells by its control API, as the library's own types."""

from __future__ import annotations

from typing import assert_never

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended, Inserted, Item, Missed, Overdue, Unreadable
from linnet.event.event import Event, Tail
from linnet.identity.text import Sort, from_text
from linnet.node.control_types import (
    CaughtUpView,
    EndedView,
    EventView,
    HeartbeatView,
    InsertedView,
    ItemView,
    MissedView,
    OverdueView,
    PublishReply,
    SubscribedView,
    WarningView,
)
from linnet.streams.commands import Fate, Published


def item_of(view: ItemView) -> Item | None:
    """An item of a subscription; None for what only keeps the connection."""
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
            )
        case CaughtUpView(begins_at, evicted, reason):
            return CaughtUp(begins_at, evicted, _reason(reason))
        case EndedView(reason):
            return Ended(_reason(reason))
        case OverdueView(event=told, people=people):
            names = tuple(AuthorId(from_text(Sort.PERSON, person)) for person in people)
            return Overdue(TopicId(b""), EventId(from_text(Sort.EVENT, told)), names)
        case InsertedView(event=event_text, before=before):
            ids = (EventId(from_text(Sort.EVENT, each)) for each in (event_text, before))
            return Inserted(TopicId(b""), *ids)
        case SubscribedView() | HeartbeatView() | WarningView():
            return None
        case _:
            assert_never(view)


def event_of(view: EventView) -> Event:
    """An event, whose signature the node has checked."""
    return Event(
        EventId(from_text(Sort.EVENT, view.id)),
        TopicId(from_text(Sort.TOPIC, view.topic)),
        AuthorId(from_text(Sort.PERSON, view.author)),
        DeviceId(bytes.fromhex(view.device)),
        view.seq,
        None if view.prev is None else EventId(from_text(Sort.EVENT, view.prev)),
        Tail(None, None, view.height, None, view.kind, view.key, view.time, None, view.body),
    )


def published_of(reply: PublishReply) -> Published:
    """The outcome of a publish."""
    return Published(
        TopicId(from_text(Sort.TOPIC, reply.topic)),
        reply.first,
        tuple(EventId(from_text(Sort.EVENT, event)) for event in reply.ids),
        reply.neighbors,
        tuple(
            Fate(PeerId(from_text(Sort.DEVICE, fate.receiver)), fate.storage, fate.delivered_at)
            for fate in reply.fates
        ),
        _reason(reply.unsent),
        _reason(reply.unconfirmed),
    )


def _reason(text: str | None) -> Reason | None:
    return None if text is None else Reason(text)
