"""Operations of a room's group are followed; what cannot be followed, or told, leaves a record."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.encryption.test_guarding import devices

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import bodies
from linnet.groups.labels import MemberId
from linnet.rooms.commands import Sent, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.encryption import room_group
from linnet.rooms.event_types import GROUP, Membership
from linnet.trace.records import Kind, Record


def test_what_is_not_told_to_a_member_leaves_a_record() -> None:
    """Who is banned right after it was added is told no ratchet with the acknowledgements that are owed."""
    world = devices("ann", "ben", "cat", "dan", config=RoomsConfig(ack_delay=30.0))
    world.get("ann", SetMembership(world.room, world.person("dan"), Membership.LEAVE), Sent)
    world.run(60.0)
    assert world.holders("ben") == ["ann", "ben", "cat"]
    world.join("dan", by="ann")
    world.run(5.0)
    assert world.holders("ben") == ["ann", "ben", "cat", "dan"]
    owing = [name for name in ("ann", "ben", "cat") if world.group(name).state(world.network.now).owed]
    assert owing
    world.get("ann", SetMembership(world.room, world.person("dan"), Membership.BAN), Sent)
    world.run(0.3)
    world.say(owing[-1], "without dan")
    world.run(1.0)
    told = [record for record in world.records(owing[-1], Kind.DROPPED) if record.reason is Reason.SURPLUS]
    assert {record.note for record in told} == {"group: not told to a member"}
    assert world.holders(owing[-1]) == ["ann", "ben", "cat"]


def test_no_more_operations_wait_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_group, "STUCK", 0)
    world = devices("ann", "ben", "cat")
    ben = world.group("ben")
    op = bodies.Acks(
        bodies.Head(world.group("ann").state(world.network.now).me or MemberId(b""), 999, 0),
        (bodies.Item(False, EventId(b"?" * 32), ()),),
    )
    event = next(
        verified.events[0]
        for verified in ben._memory.events()
        if verified.events[0].kind == GROUP and verified.events[0].author == world.person("ann")
    )
    forged = replace(event, id=EventId(b"f" * 32), tail=replace(event.tail, body=bodies.encode_body(op)))
    before = ben.state(world.network.now)
    ben.follow(forged, 1, world.network.now)
    (record,) = ben._out.take()
    assert isinstance(record, Record)
    assert record.reason is Reason.QUEUE_FULL
    assert not ben.keyring.stuck
    assert ben.state(world.network.now) is before


def test_who_catches_up_reads_every_epoch_as_its_key_comes() -> None:
    """Others renewed their keys many times while one operation was missing here: it comes last."""
    world = devices("ann", "ben", "cat", config=RoomsConfig(key_update=5.0))
    world.offline("cat")
    said = []
    for number in range(8):
        said += [*world.say("ann", f"a{number}"), *world.say("ben", f"b{number}")]
        world.run(6.0)
    cat, now = world.group("cat"), world.network.now
    log = list(world.group("ann")._memory.events())
    missed = [each for each in log if cat._memory.event(each.head) is None]
    ben = world.person("ben")
    last = next(each for each in missed if each.events[0].kind == GROUP and each.events[0].author == ben)
    for verified in (*(each for each in missed if each is not last), last):
        position = cat._memory.append(verified, None, now)
        cat.follow(verified.events[0], position, now)
    cat._out.clear()
    assert {each: cat.messages.text(each) for each in said} == {
        each: world.group("ann").messages.text(each) for each in said
    }
