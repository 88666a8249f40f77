from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from linnet.api.items import HeartbeatView, ItemView, SubscribedView, item_of, item_view
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended, Item, Missed, StorageDiffers, StorageTold, Unreadable
from linnet.event.event import Event, Tail

TOPIC, ANN, DEVICE = TopicId(b"t" * 32), AuthorId(b"a" * 32), DeviceId(b"d" * 8)
NODE = PeerId(b"n" * 32)
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
        replace(EVENT, doubtful=True),
        Unreadable(EVENT, Reason.KEY_MISSING),
        Missed(TOPIC, ANN, DEVICE, 4, 7, Reason.GAP_UNFILLED),
        StorageDiffers(TOPIC, ANN, DEVICE, 50, (StorageTold(NODE, 12), StorageTold(NODE, None)), 3),
        StorageDiffers(TOPIC, ANN, DEVICE, None, (StorageTold(NODE, 10**9),)),
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


def test_bytes_travel_as_base64_and_lines_name_their_type() -> None:
    raw = msgspec.json.encode(item_view(EVENT))
    told = msgspec.json.decode(raw)
    assert (told["type"], told["body"], told["device"]) == ("event", "/yBib2R5", DEVICE.hex())
    assert "text" not in told
    assert "doubtful" not in told, "the usual is not said"
    assert (
        msgspec.json.decode(msgspec.json.encode(item_view(replace(EVENT, doubtful=True))))["doubtful"] is True
    )
    assert msgspec.json.decode(raw, type=ItemView) == item_view(EVENT)
    assert msgspec.json.decode(b'{"type": "heartbeat"}', type=ItemView) == HeartbeatView()
