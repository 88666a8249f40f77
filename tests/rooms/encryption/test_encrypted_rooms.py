"""Encrypted rooms through real node machines: who may read reads, who may not does not."""

from __future__ import annotations

import pickle

import pytest
from tests.rooms.circle import Circle

from linnet.core.reasons import Reason
from linnet.delivery.commands import Unsubscribe
from linnet.delivery.items import Unreadable
from linnet.rooms.commands import Redact, SendToRoom, SetMembership, ShareHistory
from linnet.rooms.content import GROUP, Membership, Newcomers
from linnet.rooms.encryption.keyring import Text
from linnet.rooms.encryption.secrecy import Secrecy
from linnet.rooms.results import Sent


def circle(*names: str, seed: int = 1, loss: float = 0.0) -> Circle:
    """A founded room of these, encrypted, everyone let in."""
    made = Circle(*names, seed=seed, loss=loss)
    made.found(*names, newcomers=Newcomers.FROM_NOW)
    made.run(20.0)
    return made


def secrecy(world: Circle, name: str) -> Secrecy:
    room = world.rooms(name)._registry.get(world.room)
    assert room is not None
    assert room.parts.secrecy is not None
    return room.parts.secrecy


def in_group(world: Circle, name: str) -> list[str]:
    """Who holds keys, by the group of one member."""
    names = {identity.author: known for known, identity in world.identity.items()}
    return sorted(names[device.author] for device in secrecy(world, name).members().values())


def everything_stored(world: Circle, name: str) -> bytes:
    """All that is on a node's disk."""
    store = world.stores[name]
    log = [entry.raw for _, entry in store.log._units.values()]
    return pickle.dumps((store.cells._spaces, log))


def test_everyone_who_joined_holds_keys_and_reads_what_is_said() -> None:
    world = circle("ann", "ben", "cat")
    for name in ("ann", "ben", "cat"):
        assert in_group(world, name) == ["ann", "ben", "cat"]
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
    assert in_group(world, "ann") == in_group(world, "ben") == ["ann", "ben"]
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


def test_a_restart_goes_on_with_the_same_keys() -> None:
    world = circle("ann", "ben", "cat")
    world.say("ann", "one")
    world.run(3.0)
    world.offline("ann", "ben")
    world.online("ann", "ben")
    world.run(10.0)
    world.say("ann", "two")
    world.say("ben", "three")
    world.run(5.0)
    assert world.heard("cat")[-3:] == ["one", "two", "three"]


def test_what_is_taken_back_is_taken_back_though_it_is_sealed() -> None:
    world = circle("ann", "ben")
    (event,) = world.say("ann", "a slip")
    world.run(3.0)
    assert "a slip" in world.heard("ben")
    world.get("ann", Redact(world.room, event), Sent)
    world.run(3.0)
    room = world.rooms("ben")._registry.get(world.room)
    assert room is not None
    assert event in room.parts.readers.redacted


def test_acknowledgements_are_nobodys_dependency() -> None:
    world = circle("ann", "ben", "cat")
    world.say("ann", "one")
    world.run(3.0)
    room = world.rooms("ann")._registry.get(world.room)
    assert room is not None
    events = [verified.events[0] for verified in room.parts.memory.events()]
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
    assert secrecy(world, "ben").keyring.shared_key(world.say("ben", "two")[0]) is None


def test_a_key_that_comes_before_its_message_is_kept_for_it() -> None:
    world = Circle("ann", "ben")
    world.found("ann", newcomers=Newcomers.SHARED)
    (early,) = world.say("ann", "before")
    key = secrecy(world, "ann").keyring.shared_key(early)
    assert key is not None
    world.join("ben", by="ann")
    world.read("ben")
    ours = secrecy(world, "ben").keyring
    ours.offer(early, key)
    assert ours.take_offer(early) == key
    assert ours.take_offer(early) is None
    ours.offer(early, key)
    event = secrecy(world, "ann").opening._memory.event(early)
    assert event is not None
    assert secrecy(world, "ben").opening._open(event, None, world.network.now) is None
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
