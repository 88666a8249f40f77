from __future__ import annotations

import pytest

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended, Item, Missed, Unreadable
from linnet.event.event import Event, Tail
from linnet.node.attached_items import item_of, published_of
from linnet.node.control_types import HeartbeatView, SubscribedView
from linnet.node.control_views import item_view, publish_view
from linnet.streams.commands import Fate, Published

TOPIC, ANN, DEVICE = TopicId(b"t" * 32), AuthorId(b"a" * 32), DeviceId(b"d" * 8)
EVENT = Event(
    EventId(b"e" * 32),
    TOPIC,
    ANN,
    DEVICE,
    3,
    EventId(b"p" * 32),
    Tail(None, None, None, None, "message", None, 1_000, None, b"\xff body"),
)


@pytest.mark.parametrize(
    "item",
    [
        EVENT,
        Unreadable(EVENT, Reason.KEY_MISSING),
        Missed(TOPIC, ANN, DEVICE, 4, 7, Reason.GAP_UNFILLED),
        CaughtUp(12.5, True, Reason.NO_STORAGE),
        CaughtUp(None, False, None),
        Ended(None),
        Ended(Reason.SHUTDOWN),
    ],
)
def test_what_was_told_is_what_was_handed_over(item: Item) -> None:
    assert item_of(item_view(item)) == item


def test_what_keeps_the_connection_is_no_item() -> None:
    assert (item_of(HeartbeatView()), item_of(SubscribedView(1, True))) == (None, None)


def test_an_outcome_is_the_same_here_and_there() -> None:
    fates = (Fate(PeerId(b"s" * 32), True, 5.0), Fate(PeerId(b"r" * 32), False, None))
    ids = (EventId(b"1" * 32), EventId(b"2" * 32))
    outcome = Published(TOPIC, 4, ids, 0, fates, Reason.UNREACHABLE_INBOUND, Reason.TIMEOUT)
    assert published_of(publish_view("s", outcome)) == outcome
