"""The judge sees what is wrong: the same small room, with its evidence bent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.core.ids import EventId
from linnet.delivery.receipts import Fate
from linnet.event.event import MESSAGE
from linnet.rooms.commands import EventFates, ExamineLedger, LedgerIs, MemberFate, SendToRoom, Sent
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.rooms.oracle import Judge, Oracle
from linnet.sim.rooms.scenario import all_events
from linnet.sim.rooms.world import RoomsWorld
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Row


class Court:
    """Three peers and a relay; the third peer is away while the first speaks twice."""

    def __init__(self) -> None:
        self.trace = ColumnTrace()
        world = self.world = RoomsWorld(1, 3, 1, LinkModel(constant_latency(20)), self.trace)
        world.set_up()
        world.network.run(world.network.elapsed + 5)
        world.offline("peer2")
        self.said: list[EventId] = []
        for body in (b"one", b"two"):
            self.said += world.obtain("peer0", SendToRoom(world.room, (body,)), Sent).ids
            world.network.run(world.network.elapsed + 2)
        world.online("peer2")
        world.network.run(world.network.elapsed + 20)
        self.oracle = Oracle(all_events(world))
        self.rows = list(self.trace.rows())

    def judge(self, rows: list[Row] | None = None) -> Judge:
        return Judge(self.world, self.oracle, self.rows if rows is None else rows)

    def fates(self) -> list[tuple[EventFates, MemberFate]]:
        ledger = self.world.obtain("peer0", ExamineLedger(self.world.room, None, 100), LedgerIs)
        return [(line, fate) for line in ledger.events for fate in line.members]


@pytest.fixture
def court() -> Court:
    return Court()


def test_a_clean_room_is_clean(court: Court) -> None:
    judge = court.judge()
    pairs = list(judge.pairs())
    assert len([pair for pair in pairs if pair.event.kind == MESSAGE]) == 4
    assert all(pair.seen_at is not None for pair in pairs)
    assert (judge.unauthorised(), judge.causal_violations(), judge.endangered) == (0, 0, [])
    assert [judge.lies("peer0", *each, court.world.network.elapsed) for each in court.fates()] == [
        None for _ in court.fates()
    ]
    assert not any(judge.is_pending(*each) for each in court.fates())


def test_who_was_away_is_counted_by_the_first_return(court: Court) -> None:
    judge = court.judge()
    found = {(p.name, p.event.id): judge.first_return(p) for p in judge.pairs() if p.event.kind == MESSAGE}
    assert found == {
        (name, event): True if name == "peer2" else None
        for name in ("peer1", "peer2")
        for event in court.said
    }


def test_what_is_missing_is_found(court: Court) -> None:
    del court.world.seen["peer2"][court.said[1]]
    missing = [pair for pair in court.judge().pairs() if pair.seen_at is None]
    assert [(pair.name, pair.event.id) for pair in missing] == [("peer2", court.said[1])]
    assert court.judge().first_return(missing[0]) is False


def test_what_came_before_its_cause_is_found(court: Court) -> None:
    seen = court.world.seen["peer1"]
    court.world.seen["peer1"] = dict(reversed(seen.items()))
    assert court.judge().causal_violations() > 0


def test_what_a_node_knew_better_is_found(court: Court) -> None:
    """As if the node had soft-failed the event, and its application saw it all the same."""
    node = court.world.peer("peer1")
    held = next(
        row
        for row in court.rows
        if row.node == node and row.event == court.said[0] and row.kind == Kind.RECEIVED
    )
    soft = held._replace(kind="rejected", reason="soft_failed")
    assert court.judge([*court.rows, soft]).unauthorised() == 1


def test_a_ledger_that_claims_too_much_is_found(court: Court) -> None:
    judge, now = court.judge(), court.world.network.elapsed
    line, fate = next((line, fate) for line, fate in court.fates() if line.event == court.said[0])
    assert fate.fate is Fate.DELIVERED

    def lies(changed: MemberFate) -> bool:
        return judge.lies("peer0", line, changed, now) is not None

    assert not lies(fate)
    assert lies(replace(fate, at=START))
    assert lies(replace(fate, fate=Fate.EXPIRED))
    assert lies(replace(fate, fate=Fate.REFUSED))
    assert lies(replace(fate, fate=Fate.AT_RELAY, relays=()))
    assert lies(replace(fate, fate=Fate.AT_RELAY, relays=(court.world.peer("peer1"),)))
    assert not lies(replace(fate, fate=Fate.AT_RELAY, relays=(court.world.peer("relay0"),)))
    assert not lies(replace(fate, fate=Fate.PENDING))
    assert judge.is_pending(line, replace(fate, fate=Fate.PENDING))
    nobody = replace(line, event=EventId(bytes(32)))
    assert judge.lies("peer0", nobody, fate, now) is not None
