from __future__ import annotations

import pytest
from tests.cli.village import Tea

from linnet.cli.room import ledger
from linnet.cli.room.ledger import show_ledger, watch_ledger
from linnet.cli.room.words import Names
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.receipts import Fate
from linnet.identity.text import person_text
from linnet.rooms.commands import EventFates, LedgerIs, MemberFate

NAMES = Names()


PEOPLE = [AuthorId(bytes([number]) * 32) for number in range(6)]


P = [person_text(person)[:9] + "…" for person in PEOPLE]


def fates(*kinds: str) -> tuple[MemberFate, ...]:
    return tuple(
        MemberFate(PEOPLE[number], Fate(kind), 5.0 if kind == "delivered" else None, (), None)
        for number, kind in enumerate(kinds)
    )


def event(*kinds: str) -> EventFates:
    return EventFates(EventId(b"e" * 32), "message", 0, fates(*kinds))


@pytest.mark.parametrize(
    ("kinds", "mark"),
    [
        ((), ledger.PENDING),
        (("pending", "pending"), ledger.PENDING),
        (("at_relay", "pending"), ledger.AT_RELAY),
        (("delivered", "at_relay"), ledger.SOME),
        (("delivered", "delivered"), ledger.ALL),
        (("delivered", "unknown"), ledger.ALL),
        (("unknown",), ledger.PENDING),
        (("delivered", "expired"), ledger.LOST),
        (("refused", "pending"), ledger.LOST),
    ],
)
def test_one_mark_for_all_members(kinds: tuple[str, ...], mark: str) -> None:
    assert ledger.tick(fates(*kinds)) == mark


def test_when_nothing_more_can_be_learned() -> None:
    assert ledger.is_settled(fates("delivered", "expired", "refused", "unknown"))
    assert not ledger.is_settled(fates("delivered", "at_relay"))
    assert not ledger.is_settled(())


def test_where_an_event_is_in_words() -> None:
    assert ledger.summary((), NAMES) == "nobody else is in the room"
    assert ledger.summary(fates("delivered", "delivered"), NAMES) == f"arrived at all {P[0]}, {P[1]}"
    assert ledger.summary(fates("delivered", "at_relay"), NAMES) == f"arrived at {P[0]}; at a relay: {P[1]}"
    assert (
        ledger.summary(fates(*["pending"] * 6), NAMES) == "pending: all " + ", ".join(P[:4]) + " and 2 more"
    )


def test_member_by_fate() -> None:
    rows = ledger.count_rows([event("delivered", "pending"), event("delivered", "at_relay")], NAMES)
    assert len(ledger.COUNT_COLUMNS) == len(rows[0])
    assert rows[0][:4] == (P[0], 2, "", "")
    assert rows[1][:4] == (P[1], "", 1, 1)
    assert rows[0][-1] is not None
    assert rows[1][-1] is None


def test_a_refusal_is_told_with_its_reason() -> None:
    refused = MemberFate(PEOPLE[0], Fate.REFUSED, 5.0, (), Reason.SOFT_FAILED)
    assert ledger.summary((refused,), NAMES) == f"refused: {P[0]} (soft_failed)"


def test_one_event_member_by_member() -> None:
    rows = ledger.fate_rows(event("delivered", "refused"), NAMES)
    assert [row[:2] for row in rows] == [(P[0], "arrived"), (P[1], "refused")]
    assert len(ledger.FATE_COLUMNS) == len(rows[0])
    (row,) = ledger.event_rows([event("delivered")], NAMES)
    assert (row[0], row[-1]) == (ledger.ALL, f"arrived at {P[0]}")
    assert len(ledger.EVENT_COLUMNS) == len(row)


ROOM = TopicId(bytes(32))


def test_members_by_fate_and_one_event(tea: Tea) -> None:
    tea.another("post")
    event = tea.ada.json("room", "send", "post", "hello")["ids"][0]
    said = tea.ada.ok("room", "ledger", "post", event, "--watch")
    assert said.rstrip().endswith("arrived at bea")
    table = tea.ada.ok("room", "ledger", "post")
    assert "✓✓" in table
    assert "arrived at all" in table
    assert any(line.split()[:2] == ["bea", "1"] for line in table.splitlines())
    (only,) = tea.ada.json("room", "ledger", "post", event[:20])["events"]
    assert [each["person"] for each in only["members"]] == [tea.people["bea"]]


def test_nothing_said_yet(capsys: pytest.CaptureFixture[str]) -> None:
    show_ledger(LedgerIs(ROOM, ()), Names(), False)
    assert capsys.readouterr().out == "you have said nothing here yet\n"


def test_watching_shows_changes_until_all_has_arrived() -> None:
    def reply(fate: Fate) -> LedgerIs:
        fates = (MemberFate(AuthorId(bytes(32)), fate, None, (), None),)
        return LedgerIs(ROOM, (EventFates(EventId(bytes(32)), "message", 0, fates),))

    looks = iter([reply(Fate.PENDING), reply(Fate.PENDING), reply(Fate.AT_RELAY), reply(Fate.DELIVERED)])
    shown: list[LedgerIs] = []
    watch_ledger(lambda: next(looks), shown.append, 0.001)
    assert shown == [reply(Fate.PENDING), reply(Fate.AT_RELAY), reply(Fate.DELIVERED)]
