from __future__ import annotations

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.machine.outbox import Outbox
from linnet.places.items import Body, Changed, DeliveryWindow

PLACE = TopicId(bytes(32))
SMALL = Changed(PLACE, 1, "_a", b"")


def body(size: int) -> Body:
    return Body(PLACE, 1, None, 0, bytes(size), False)


def test_there_is_room_for_so_many_items_and_so_many_bytes() -> None:
    window = DeliveryWindow(7, 3, 100, Outbox())
    window.hand([SMALL, SMALL])
    assert window.has_room
    window.hand([SMALL])
    assert not window.has_room
    window.take_handled(3)
    window.hand([body(99)])
    assert window.has_room, "one of any size may go while a byte is free"
    window.hand([body(500)])
    assert not window.has_room
    window.take_handled(1)
    assert not window.has_room
    window.take_handled(5)
    assert window.has_room


def test_what_is_handed_over_goes_at_once_with_the_end_behind_it() -> None:
    out = Outbox()
    window = DeliveryWindow(7, 3, 100, out)
    window.flush()
    assert out.take() == []
    window.hand([SMALL], 4)
    window.hand([body(1)], 5)
    assert list(window.messages) == [4, 5]
    window.end(Reason.SHUTDOWN)
    window.end(None)
    window.flush()
    assert out.take() == [AfterCommit((Deliver(7, (SMALL, body(1), Ended(Reason.SHUTDOWN))),))]
    assert not window.has_room
    window.flush()
    assert out.take() == []


def test_what_is_in_no_store_waits_for_no_commit() -> None:
    out = Outbox()
    window = DeliveryWindow(7, 3, 100, out)
    window.hand([SMALL])
    window.flush(promised=False)
    assert out.take() == [Deliver(7, (SMALL,))]
