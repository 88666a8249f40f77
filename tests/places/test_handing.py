from __future__ import annotations

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.machine.outbox import Outbox
from linnet.places.delivery_window import Handing
from linnet.places.items import Body, Changed

PLACE = TopicId(bytes(32))
SMALL = Changed(PLACE, 1, "_a", b"")


def body(size: int) -> Body:
    return Body(PLACE, 1, None, 0, bytes(size), False)


def test_there_is_room_for_so_many_items_and_so_many_bytes() -> None:
    handing = Handing(7, 3, 100, Outbox())
    handing.hand([SMALL, SMALL])
    assert handing.has_room
    handing.hand([SMALL])
    assert not handing.has_room
    handing.take_handled(3)
    handing.hand([body(99)])
    assert handing.has_room, "one of any size may go while a byte is free"
    handing.hand([body(500)])
    assert not handing.has_room
    handing.take_handled(1)
    assert not handing.has_room
    handing.take_handled(5)
    assert handing.has_room


def test_what_is_handed_over_goes_at_once_with_the_end_behind_it() -> None:
    out = Outbox()
    handing = Handing(7, 3, 100, out)
    handing.flush()
    assert out.take() == []
    handing.hand([SMALL], 4)
    handing.hand([body(1)], 5)
    assert list(handing.messages) == [4, 5]
    handing.end(Reason.SHUTDOWN)
    handing.end(None)
    handing.flush()
    assert out.take() == [AfterCommit((Deliver(7, (SMALL, body(1), Ended(Reason.SHUTDOWN))),))]
    assert not handing.has_room
    handing.flush()
    assert out.take() == []


def test_what_is_in_no_store_waits_for_no_commit() -> None:
    out = Outbox()
    handing = Handing(7, 3, 100, out)
    handing.hand([SMALL])
    handing.flush(promised=False)
    assert out.take() == [Deliver(7, (SMALL,))]
