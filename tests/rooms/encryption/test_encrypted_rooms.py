"""Encrypted rooms through real node machines: who may read reads, who may not does not."""

from __future__ import annotations

import pickle

import pytest
from tests.rooms.circle import Circle

from linnet.core.reasons import Reason
from linnet.delivery.commands import Unsubscribe
from linnet.delivery.items import Unreadable
from linnet.rooms.commands import SendToRoom, Sent, SetMembership, ShareHistory
from linnet.rooms.encryption.group_state import Text
from linnet.rooms.event_types import GROUP, Membership, Newcomers


def circle(*names: str, seed: int = 1, loss: float = 0.0) -> Circle:
    """A founded room of these, encrypted, everyone let in."""
    made = Circle(*names, seed=seed, loss=loss)
    made.found(*names, newcomers=Newcomers.FROM_NOW)
    made.run(20.0)
    return made


def everything_stored(world: Circle, name: str) -> bytes:
    """All that is on a node's disk."""
    store = world.stores[name]
    log = [entry.raw for _, entry in store.log._units.values()]
    return pickle.dumps((store.cells._spaces, log))


def test_everyone_who_joined_holds_keys_and_reads_what_is_said() -> None:
    world = circle("ann", "ben", "cat")
    for name in ("ann", "ben", "cat"):
        assert world.holders(name) == ["ann", "ben", "cat"]
    for name in ("ann", "ben", "cat"):
        world.say(name, f"hello from {name}")
        world.run(3.0)
    for name in ("ann", "ben", "cat"):
        assert world.heard(name)[-3:] == ["hello from ann", "hello from ben", "hello from cat"]


def test_what_is_said_before_the_keys_are_there_waits_and_goes_out() -> None:
    world = Circle("ann", "ben")
    world.found("ann", newcomers=Newcomers.FROM_NOW)
    world.join("ben", by="ann")
    world.read("ben")
    world.get("ben", SendToRoom(world.room, (b"at once",)), Sent)
    world.run(5.0)
    assert world.heard("ann")[-1:] == ["at once"]


def test_who_is_banned_reads_nothing_that_is_said_after() -> None:
    world = circle("ann", "ben", "cat")
    world.say("ann", "for all")
    world.run(3.0)
    world.get("ann", SetMembership(world.room, world.person("cat"), Membership.BAN), Sent)
    world.run(10.0)
    world.say("ben", "not for cat")
    world.run(5.0)
    assert "not for cat" in world.heard("ann")
    assert world.holders("ann") == world.holders("ben") == ["ann", "ben"]
    assert b"for all" in everything_stored(world, "cat")
    assert b"not for cat" not in everything_stored(world, "cat")


def test_a_relay_carries_ciphertext_and_a_device_that_was_away_reads_through_it() -> None:
    world = circle("ann", "ben", "r1")
    world.offline("ben")
    world.say("ann", "while you were away", "and more")
    world.run(10.0)
    world.offline("ann")
    world.run(5.0)
    world.online("ben")
    world.run(20.0)
    assert world.heard("ben")[-2:] == ["while you were away", "and more"]
    assert b"while you were away" in everything_stored(world, "ann")
    assert b"while you were away" not in everything_stored(world, "r1")


def test_a_newcomer_cannot_read_what_was_said_before_and_is_told_so() -> None:
    world = Circle("ann", "ben", "cat")
    world.found("ann", "ben", newcomers=Newcomers.FROM_NOW)
    world.run(20.0)
    world.say("ann", "said earlier")
    world.run(3.0)
    world.join("cat", by="ann")
    world.read("cat")
    world.run(20.0)
    world.say("ben", "after")
    world.run(5.0)
    assert world.heard("cat")[-1:] == ["after"]
    unread = [item for item in world.items["cat"] if isinstance(item, Unreadable)]
    assert [item.reason for item in unread] == [Reason.BEFORE_JOINING]
    assert b"said earlier" not in everything_stored(world, "cat")


def test_acknowledgements_are_nobodys_dependency() -> None:
    world = circle("ann", "ben", "cat")
    world.say("ann", "one")
    world.run(3.0)
    room = world.room_at("ann")
    events = [verified.events[0] for verified in room.memory.events()]
    group = {event.id for event in events if event.kind == GROUP}
    assert group
    for event in events:
        if event.kind != GROUP:
            assert group.isdisjoint(event.tail.deps or ())
            assert group.isdisjoint(event.tail.control or ())
    assert group.isdisjoint(room.dag.heads)


@pytest.mark.parametrize("seed", range(1, 6))
def test_all_read_all_though_messages_are_lost(seed: int) -> None:
    world = circle("ann", "ben", "cat", "r1", seed=seed, loss=0.05)
    world.run(60.0)
    for name in ("ann", "ben", "cat"):
        world.say(name, f"{name} {seed}")
    world.run(90.0)
    for name in ("ann", "ben", "cat"):
        assert sorted(world.heard(name)) == [f"ann {seed}", f"ben {seed}", f"cat {seed}"]


def test_where_history_is_shared_a_member_shows_it_to_newcomers() -> None:
    world = Circle("ann", "ben", "cat")
    world.found("ann", "ben", newcomers=Newcomers.SHARED)
    world.run(20.0)
    for word in ("one", "two", "three"):
        world.say("ann", word)
    world.run(3.0)
    world.join("cat", by="ann")
    world.read("cat")
    world.run(20.0)
    assert world.heard("cat") == []
    world.get("ben", ShareHistory(world.room, newest=2), Sent)
    world.run(5.0)
    assert world.heard("cat") == ["two", "three"]
    world.items["cat"].clear()
    world.get("ann", ShareHistory(world.room), Sent)
    world.run(5.0)
    assert world.heard("cat") == ["one"]
    assert world.heard("ann") == ["one", "two", "three"]


def test_where_it_is_not_nobody_can() -> None:
    world = circle("ann", "ben")
    world.say("ann", "one")
    refused = world.declined("ann", ShareHistory(world.room))
    assert refused.reason is Reason.NOT_ALLOWED
    assert world.group("ben").texts.shared_key(world.say("ben", "two")[0]) is None


def test_a_key_that_comes_before_its_message_is_kept_for_it() -> None:
    world = Circle("ann", "ben")
    world.found("ann", newcomers=Newcomers.SHARED)
    (early,) = world.say("ann", "before")
    key = world.group("ann").texts.shared_key(early)
    assert key is not None
    world.join("ben", by="ann")
    world.read("ben")
    ours = world.group("ben").texts
    ours.offer(early, key)
    assert ours.take_offer(early) == key
    assert ours.take_offer(early) is None
    ours.offer(early, key)
    event = world.group("ann").messages._memory.event(early)
    assert event is not None
    assert world.group("ben").messages._open(event, None, world.network.now) is None
    assert ours.text(early) == Text(b"before"), "it is read by the key that was kept for it"


def test_what_is_read_late_is_told_to_a_durable_reader_that_was_away() -> None:
    world = Circle("ann", "ben", "cat")
    world.found("ann", "ben", newcomers=Newcomers.SHARED)
    world.run(20.0)
    world.say("ann", "one")
    world.run(3.0)
    world.join("cat", by="ann")
    world.read("cat")
    world.run(20.0)
    assert world.heard("cat") == []
    world.network.ask(world.peer("cat"), Unsubscribe(1))
    world.run(1.0)
    world.get("ben", ShareHistory(world.room), Sent)
    world.run(5.0)
    assert world.heard("cat") == []
    world.read("cat")
    world.run(2.0)
    assert world.heard("cat") == ["one"]
    world.offline("cat")
    world.online("cat")
    world.run(10.0)
    assert world.heard("cat") == ["one"]
