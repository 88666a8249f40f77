"""A room of two or three nodes of one process, with nothing handed over but an invitation's text."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.node.village import LIMIT, member, relay, until

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.items import Overdue, Unreadable
from linnet.delivery.receipts import Fate
from linnet.event.event import Event
from linnet.net.failure import DriverStopped
from linnet.node.library import Node
from linnet.node.rooms import Room
from linnet.node.subscription import Subscription
from linnet.rooms.event_types import JoinRule, Membership


class Pair:
    """Two members, each with its view of the room."""

    def __init__(self, ada: Node, bea: Node, room: Room, joined: Room) -> None:
        self.ada, self.bea = ada, bea
        self.room, self.joined = room, joined


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with asyncio.timeout(60), Node(config=member("ada")) as ada, Node(config=member("bea")) as bea:
        room = await ada.create_room("tea", "Who brings the cake?")
        joined = await bea.join_room((await room.invite()).text)
        await until(ada.rooms.statuses, lambda rooms: bool(rooms[0].online))
        yield Pair(ada, bea, room, joined)


async def heard(room: Room, body: bytes) -> Event:
    """Wait until this is said, from the beginning on."""
    async with asyncio.timeout(LIMIT), room.read(since=0) as reading:
        async for event in reading:
            if event.body == body:
                return event
    raise AssertionError


async def test_what_was_said_before_and_after_the_join_arrives(pair: Pair) -> None:
    first = await pair.room.send("Did it arrive?")
    assert first.neighbors == 1
    event = await heard(pair.joined, b"Did it arrive?")
    assert (event.id, event.author, event.kind) == (first.ids[0], pair.ada.author, "message")
    await pair.joined.send(["Yes.", b"\xff"])
    assert (await heard(pair.room, b"\xff")).author == pair.bea.author


async def test_the_ledger_tells_at_whom(pair: Pair) -> None:
    sent = await pair.room.send("one")
    ledger = await until(
        lambda: pair.room.ledger(sent.ids[0]),
        lambda found: found.events[0].members[0].fate is Fate.DELIVERED,
    )
    (fates,) = ledger.events
    assert [(fate.person, fate.fate) for fate in fates.members] == [(pair.bea.author, Fate.DELIVERED)]


async def test_members_state_and_labels(pair: Pair) -> None:
    members = {member.person: member for member in await pair.joined.members()}
    assert members[pair.ada.author].level is None
    assert members[pair.bea.author].level == 0
    assert all(member.online for member in members.values())
    (device,) = members[pair.ada.author].devices
    assert pair.bea.label_of(pair.ada.author, device) == "ada"
    assert pair.bea.label_of(pair.bea.author, device) == ""
    ours = await pair.room.state()
    theirs = await until(pair.joined.state, lambda state: state.digest == ours.digest)
    assert {entry.kind: entry.event.body for entry in theirs.entries}["name"] == b"tea"


async def test_power_decides(pair: Pair) -> None:
    with pytest.raises(Refused) as caught:
        await pair.joined.set_name("coffee")
    assert caught.value.reason is Reason.NO_POWER
    await pair.room.set_level(50, person=pair.bea.author)
    await until(
        pair.joined.members,
        lambda members: any(each.person == pair.bea.author and each.level == 50 for each in members),
    )
    await pair.joined.set_name("coffee")
    await until(pair.ada.rooms.statuses, lambda rooms: rooms[0].name == "coffee")
    await pair.joined.set_topic("Milk?")
    await pair.room.set_rule(JoinRule.PUBLIC)
    await pair.room.set_retention(60.0)
    await until(pair.joined.state, lambda state: state.rule is JoinRule.PUBLIC)


async def test_who_is_put_out_can_say_nothing_more(pair: Pair) -> None:
    await pair.room.ban(pair.bea.author, "spam")
    await until(pair.bea.rooms.statuses, lambda rooms: rooms[0].membership is Membership.BAN)
    with pytest.raises(Refused) as caught:
        await pair.joined.send("but")
    assert caught.value.reason in (Reason.NOT_A_MEMBER, Reason.BANNED)
    await pair.room.unban(pair.bea.author)
    again = await pair.bea.join_room((await pair.room.invite(pair.bea.author)).text)
    await pair.room.send("welcome back")
    await heard(again, b"welcome back")
    await pair.room.kick(pair.bea.author)
    await until(pair.bea.rooms.statuses, lambda rooms: rooms[0].membership is Membership.LEAVE)


async def test_a_file_goes_through_the_room(pair: Pair, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "cat.bin").write_bytes(content)
    (tmp_path / "in").mkdir()
    told: list[tuple[int, int]] = []
    sent = await pair.room.attach(tmp_path / "cat.bin", lambda done, total: told.append((done, total)))
    assert told[-1] == (300_000, 300_000)
    async for event in pair.joined.read(since=0):
        if event.id == sent.ids[0]:
            path = await pair.joined.fetch(event, tmp_path / "in")
            break
    assert path.read_bytes() == content
    with pytest.raises(Refused, match="is no attachment but a message"):
        await pair.joined.fetch(await heard(pair.joined, await said(pair)), tmp_path)


async def said(pair: Pair) -> bytes:
    await pair.room.send("no file")
    return b"no file"


async def test_what_is_taken_back_and_who_leaves(pair: Pair) -> None:
    sent = await pair.room.send("oh")
    await heard(pair.joined, b"oh")
    assert len((await pair.room.redact(EventId(sent.ids[0]), "typo")).ids) == 1
    async with pair.room.read(since=0, live=False) as reading:
        gone = [item async for item in reading.items() if isinstance(item, Unreadable)]
    assert [(item.event.id, item.reason) for item in gone] == [(sent.ids[0], Reason.REDACTED)]
    await pair.joined.leave()
    await until(pair.room.members, lambda members: sum(m.membership is Membership.JOIN for m in members) == 1)


async def test_a_deadline_tells_at_whom_it_has_not_arrived(pair: Pair) -> None:
    async with pair.room.read() as reading:
        await pair.bea.block(pair.ada.peer)
        await until(pair.ada.rooms.statuses, lambda rooms: not rooms[0].online)
        sent = await pair.room.send("hello?", deadline=0.1)
        async with asyncio.timeout(LIMIT):
            late = await overdue(reading)
    assert late == Overdue(pair.room.id, sent.ids[0], (pair.bea.author,))


async def overdue(reading: Subscription) -> Overdue:
    async for item in reading.items():
        if isinstance(item, Overdue):
            return item
    raise AssertionError


async def test_a_relay_holds_what_is_said_while_a_member_is_away(pair: Pair) -> None:
    async with Node(config=relay()) as helper:
        await pair.room.add_relay(helper.address)
        await until(pair.ada.rooms.statuses, lambda rooms: any(each.up for each in rooms[0].relays))
        sent = await pair.room.send("for later")
        assert sent.relays == (helper.peer,)
        await until(helper.relay_report, lambda report: report.rooms[0].kept_events >= 1)
        report = await helper.relay_report()
        assert {each.person for each in report.rooms[0].people} >= {pair.ada.author, pair.bea.author}
        await pair.room.drop_relay(helper.peer)
        await until(pair.ada.rooms.statuses, lambda rooms: not rooms[0].relays)


async def test_after_the_node_nothing_can_be_asked(pair: Pair) -> None:
    async with Node() as node:
        room = await node.create_room()
    with pytest.raises(DriverStopped):
        await room.send("too late")
    with pytest.raises(DriverStopped):
        room.read()
    assert repr(room).startswith("Room(lt1")
    assert room.text.startswith("lt1")
