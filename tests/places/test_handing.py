from __future__ import annotations

from linnet.core.effects import Deliver
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.places.handing import Handing
from linnet.places.items import Body, Changed

PLACE = TopicId(bytes(32))
SMALL = Changed(PLACE, 1, "_a", b"")


def body(size: int) -> Body:
    return Body(PLACE, 1, None, 0, bytes(size), False)


def test_there_is_room_for_so_many_items_and_so_many_bytes() -> None:
    handing = Handing(7, 3, 100)
    handing.hand([SMALL, SMALL])
    assert handing.has_room
    handing.hand([SMALL])
    assert not handing.has_room
    handing.handled(3)
    handing.hand([body(99)])
    assert handing.has_room, "one of any size may go while a byte is free"
    handing.hand([body(500)])
    assert not handing.has_room
    handing.handled(1)
    assert not handing.has_room
    handing.handled(5)
    assert handing.has_room


def test_what_is_handed_over_goes_at_once_with_the_end_behind_it() -> None:
    handing = Handing(7, 3, 100)
    assert handing.flush() == []
    handing.hand([SMALL], 4)
    handing.hand([body(1)], 5)
    assert list(handing.messages) == [4, 5]
    handing.end(Reason.SHUTDOWN)
    handing.end(None)
    assert handing.flush() == [Deliver(7, (SMALL, body(1), Ended(Reason.SHUTDOWN)))]
    assert not handing.has_room
    assert handing.flush() == []
