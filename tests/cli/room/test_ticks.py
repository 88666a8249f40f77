from __future__ import annotations

import pytest

from linnet.cli.room import ticks
from linnet.cli.room.names import Names
from linnet.node.room_types import EventFatesView, MemberFateView
from linnet.rooms.results import Fate

NAMES = Names()


def fates(*kinds: str) -> tuple[MemberFateView, ...]:
    return tuple(
        MemberFateView(f"p{number}", "", Fate(kind), 5.0 if kind == "delivered" else None, (), None)
        for number, kind in enumerate(kinds)
    )


def event(*kinds: str) -> EventFatesView:
    return EventFatesView("le1" + "e" * 56, "message", 0, fates(*kinds))


@pytest.mark.parametrize(
    ("kinds", "mark"),
    [
        ((), ticks.PENDING),
        (("pending", "pending"), ticks.PENDING),
        (("at_relay", "pending"), ticks.AT_RELAY),
        (("delivered", "at_relay"), ticks.SOME),
        (("delivered", "delivered"), ticks.ALL),
        (("delivered", "unknown"), ticks.ALL),
        (("unknown",), ticks.PENDING),
        (("delivered", "expired"), ticks.LOST),
        (("refused", "pending"), ticks.LOST),
    ],
)
def test_one_mark_for_all_members(kinds: tuple[str, ...], mark: str) -> None:
    assert ticks.tick(fates(*kinds)) == mark


def test_when_nothing_more_can_be_learned() -> None:
    assert ticks.is_settled(fates("delivered", "expired", "refused", "unknown"))
    assert not ticks.is_settled(fates("delivered", "at_relay"))
    assert not ticks.is_settled(())


def test_where_an_event_is_in_words() -> None:
    assert ticks.summary((), NAMES) == "nobody else is in the room"
    assert ticks.summary(fates("delivered", "delivered"), NAMES) == "arrived at all p0…, p1…"
    assert ticks.summary(fates("delivered", "at_relay"), NAMES) == "arrived at p0…; at a relay: p1…"
    assert ticks.summary(fates(*["pending"] * 6), NAMES) == "pending: all p0…, p1…, p2…, p3… and 2 more"


def test_member_by_fate() -> None:
    rows = ticks.count_rows([event("delivered", "pending"), event("delivered", "at_relay")], NAMES)
    assert len(ticks.COUNT_COLUMNS) == len(rows[0])
    assert rows[0][:4] == ("p0…", 2, "", "")
    assert rows[1][:4] == ("p1…", "", 1, 1)
    assert rows[0][-1] is not None
    assert rows[1][-1] is None


def test_one_event_member_by_member() -> None:
    rows = ticks.fate_rows(event("delivered", "refused"), NAMES)
    assert [row[:2] for row in rows] == [("p0…", "arrived"), ("p1…", "refused")]
    assert len(ticks.FATE_COLUMNS) == len(rows[0])
    (row,) = ticks.event_rows([event("delivered")], NAMES)
    assert (row[0], row[-1]) == (ticks.ALL, "arrived at p0…")
    assert len(ticks.EVENT_COLUMNS) == len(row)
