"""Encrypted rooms whose members are apart, are put out and crash: they agree, and who may read can read."""

from __future__ import annotations

import os
import pickle
from random import Random

import pytest
from tests.rooms.circle import Circle

from linnet.delivery.items import Unreadable
from linnet.event.event import Event, bound_of
from linnet.groups import agreement
from linnet.groups.labels import Device
from linnet.groups.state import encode_state
from linnet.rooms.commands import SendToRoom, Sent, SetLevel, SetMembership
from linnet.rooms.event_types import GROUP, Membership, Newcomers
from linnet.sim.attacks.group_attacker import attack
from linnet.sim.groups.world import Overheard

SOAK = bool(os.environ.get("LINNET_SOAK"))
SEEDS = range(1, 21) if SOAK else range(1, 3)
SIZE = 20 if SOAK else 8


class Course:
    """A room of many and two relays, through partitions, concurrent bans and joins, and crashes."""

    def __init__(self, seed: int, size: int) -> None:
        self.luck = Random(seed)
        self.everyone = [f"m{number}" for number in range(size + 4)]
        self.members = self.everyone[:size]
        self.late = self.everyone[size:]
        self.world = Circle(*self.everyone, "r1", "r2", seed=seed)
        self.world.found(*self.members, "r1", "r2", newcomers=Newcomers.FROM_NOW)
        self.world.run(40.0)
        for name in self.members[1:3]:
            self.world.get("m0", SetLevel(self.world.room, 50, self.world.person(name)), Sent)
        self.world.run(10.0)
        self.banned: dict[str, list[bytes]] = {}
        """Who was put out, and the states of theirs that an adversary has: of before, after, and the end."""
        self.count = 0

    def say(self, name: str) -> str:
        self.count += 1
        text = f"message {self.count} of {name}"
        self.world.get(name, SendToRoom(self.world.room, (text.encode(),)), Sent, seconds=60.0)
        return text

    def ban(self, by: str, name: str) -> None:
        ban = SetMembership(self.world.room, self.world.person(name), Membership.BAN)
        self.banned[name] = [self.state_of(name)]
        self.world.get(by, ban, Sent)
        self.members.remove(name)
        self.banned[name].append(self.state_of(name))

    def run(self) -> None:
        world, luck = self.world, self.luck
        half = luck.sample(self.members[3:], len(self.members[3:]) // 2)
        one, two = ["m0", "m1", *half], [name for name in self.members if name not in ("m0", "m1", *half)]
        sides = [[*one, "r1", self.late[0], self.late[1]], [*two, "r2", self.late[2], self.late[3]]]
        world.network.partition([[world.peer(name) for name in side] for side in sides])
        world.run(5.0)
        for by, side in (("m0", sides[0]), ("m2", sides[1])):
            self.ban(by, luck.choice([name for name in side if name in self.members[3:]]))
            for newcomer in [name for name in side if name in self.late]:
                world.join(newcomer, by=by)
                world.read(newcomer)
                self.members.append(newcomer)
            self.say(luck.choice([name for name in side if name in self.members[:3]]))
        crashed = luck.sample([name for name in self.members[3:] if name not in self.late], 2)
        world.offline(*crashed)
        world.run(10.0)
        self.say("m1")
        world.online(*crashed)
        world.run(20.0)
        world.network.heal()
        world.run(120.0)

    def state_of(self, name: str) -> bytes:
        """All that a thief of this device would have."""
        return encode_state(self.world.group(name).state(self.world.network.now))

    def heard_by_all(self) -> list[Overheard]:
        """All that carriers see, in an order of causes."""
        room = self.world.room_at("m0")
        events = (verified.events[0] for verified in room.memory.events())
        return [
            Overheard(
                event.id,
                Device(event.author, event.device),
                event.body,
                event.tail.clear or b"",
                b"" if event.kind == GROUP else bound_of(event),
            )
            for event in events
            if event.kind == GROUP or event.tail.clear is not None
        ]

    def disk_of(self, name: str) -> bytes:
        store = self.world.stores[name]
        return pickle.dumps((store.cells._spaces, [entry.raw for _, entry in store.log._units.values()]))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_who_may_read_reads_and_nobody_else(seed: int) -> None:
    course = Course(seed, SIZE)
    course.run()
    world = course.world
    for name in course.members:
        assert world.holders(name) == sorted(course.members)
        assert not agreement.needs_heal(world.group(name).state(world.network.now))
    before = {name: len(world.items[name]) for name in course.members}
    said = [course.say(name) for name in course.members]
    world.run(60.0)
    for name in course.members:
        later = world.items[name][before[name] :]
        assert sorted(item.body.decode() for item in later if isinstance(item, Event)) == sorted(said)
        assert not [item for item in later if isinstance(item, Unreadable)]
    for text in said:
        for outsider in (*course.banned, "r1", "r2"):
            assert text.encode() not in course.disk_of(outsider)
    heard = course.heard_by_all()
    stolen = [
        *(state for states in course.banned.values() for state in states),
        *map(course.state_of, course.banned),
    ]
    told = set(attack(world.room, heard, stolen).values())
    assert told.isdisjoint(text.encode() for text in said)
    # That is no weakness of the attacker: with the state of a member it reads what is to come.
    member = course.state_of("m1")
    (event,) = world.say("m0", "for members")
    world.run(5.0)
    assert attack(world.room, course.heard_by_all(), [member])[event] == b"for members"
    assert event not in attack(world.room, course.heard_by_all(), stolen)
