"""A log that does not give back one of its units: a room waits for it, asks for it, and is as before."""

from __future__ import annotations

import pytest
from tests.rooms.circle import Circle

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.core.spaces import is_needed, kind_of
from linnet.delivery.items import Unreadable
from linnet.rooms.commands import Reading, ReadRoom, SendToRoom, Sent, SetLevel, SetState
from linnet.rooms.event_types import NAME, POWER, Newcomers
from linnet.rooms.room_store import RoomMemory
from linnet.sim.nemesis.open_node import DamageableCells, DamageableLog, DamageableStore
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind

NAMES = ("ann", "bob", "cid", "r0")


class Frail(Circle):
    """Three people and a relay on disks that may go bad; much was decided and said."""

    def __init__(self, newcomers: Newcomers | None = None, relay: bool = True) -> None:
        super().__init__(*NAMES, seed=5)
        self.found("ann", *(["r0"] if relay else []), "bob", "cid", newcomers=newcomers)
        for number in range(3):
            self.get("ann", SetLevel(self.room, 10 + number, person=self.person("bob")), Sent)
            self.get("ann", SetState(self.room, NAME, "", f"tea{number}".encode()), Sent)
            for name in ("ann", "bob", "cid"):
                self.say(name, f"{name}{number}")
            self.run(1.0)
        self.run(5.0)

    def _store(self) -> MemoryStore:
        return DamageableStore()

    def log(self, name: str) -> DamageableLog:
        log = self.stores[name].log
        assert isinstance(log, DamageableLog)
        return log

    def cells(self, name: str) -> DamageableCells:
        cells = self.stores[name].cells
        assert isinstance(cells, DamageableCells)
        return cells

    def spoil_one(self, name: str, kind: str) -> None:
        """A node is down, and one value of this kind is altered when it is up again."""
        self.offline(name)
        self.run(1.0)
        spaces = sorted(space for space in self.cells(name)._spaces if kind_of(space) == kind)
        held = [(space, key) for space in spaces for key in sorted(self.cells(name)._spaces[space])]
        self.cells(name).spoil(*held[len(held) // 2])
        self.online(name)
        self.run(30.0)

    def units(self, name: str) -> list[EventId]:
        return [entry.head for _, entry in self.log(name).read(self.room, 0, 1000)]

    def damaged(self, name: str) -> int:
        return len(self.log(name)._damaged)

    def break_one(self, name: str, event: EventId) -> None:
        """A node is down, and one unit is gone when it is up again."""
        self.offline(name)
        self.run(1.0)
        self.log(name).spoil(event)
        self.online(name)
        self.run(30.0)


def whole(circle: Circle, name: str) -> tuple[object, ...]:
    state = circle.state(name)
    return (state.rule, state.members, state.power, tuple(each.event.id for each in state.entries))


COUNT = len(Frail().units("bob"))
CONTROL = len(Frail().units("r0"))


def kinds(name: str) -> list[str]:
    """What this node keeps in cells and can do without, in an encrypted room whose history is shared."""
    spaces = Frail(Newcomers.SHARED).cells(name)._spaces.items()
    return sorted({kind_of(space) for space, held in spaces if held and not is_needed(space)})


@pytest.mark.parametrize("place", range(COUNT))
def test_a_member_mends_any_unit_of_its_log_and_sees_the_room_as_before(place: int) -> None:
    circle = Frail()
    before, order = whole(circle, "bob"), circle.units("bob")
    circle.break_one("bob", order[place])
    assert circle.damaged("bob") == 0
    assert whole(circle, "bob") == before
    assert circle.units("bob") == order
    room, ann = circle.room_at("bob"), circle.room_at("ann")
    assert not room.memory.held
    assert not room.memory.damaged
    circle.say("bob", "again")
    circle.say("ann", "too")
    circle.run(5.0)
    assert room.dag.all_heads == ann.dag.all_heads
    assert {"again", "too"} <= set(circle.heard("cid"))
    assert sorted(circle.heard("bob")) == sorted(set(circle.heard("ann"))), "nothing twice, nothing missing"
    assert Reason.DAMAGED in [
        record.reason for kind in (Kind.DROPPED, Kind.RESYNC) for record in circle.records("bob", kind)
    ]


@pytest.mark.parametrize("place", range(CONTROL))
def test_a_relay_mends_any_control_event_and_goes_on_serving(place: int) -> None:
    circle = Frail()
    order = circle.units("r0")
    circle.break_one("r0", order[place])
    assert circle.damaged("r0") == 0
    assert circle.units("r0") == order
    assert circle.status("r0").control_events == len(order)
    circle.offline("cid")
    circle.say("bob", "for later")
    circle.run(2.0)
    circle.offline("bob", "ann")
    circle.online("cid")
    circle.run(10.0)
    assert circle.heard("cid")[-1] == "for later"


@pytest.mark.parametrize("place", [1, 4, 9, 14])
def test_an_encrypted_room_goes_on_after_damage(place: int) -> None:
    circle = Frail(Newcomers.FROM_NOW)
    circle.break_one("cid", circle.units("cid")[place])
    circle.say("cid", "again")
    circle.say("ann", "too")
    circle.run(5.0)
    assert circle.damaged("cid") == 0
    assert {"again", "too"} <= set(circle.heard("bob")) & set(circle.heard("cid"))


def test_nothing_is_said_while_the_rules_are_not_known() -> None:
    circle = Frail(relay=False)
    before = whole(circle, "bob")
    circle.offline("ann", "cid")
    memory = RoomMemory(circle.room, circle.stores["bob"], 10)
    power = [unit.head for unit in memory.events() if unit.events[0].kind == POWER]
    circle.break_one("bob", power[1])
    declined = circle.declined("bob", SendToRoom(circle.room, (b"now",)))
    assert declined.reason is Reason.DAMAGED
    circle.online("ann", "cid")
    circle.run(60.0)
    assert whole(circle, "bob") == before
    circle.say("bob", "now")


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in ("bob", "r0") for kind in kinds(name)])
def test_a_damaged_value_that_is_not_needed_is_told_and_of_no_harm(name: str, kind: str) -> None:
    circle = Frail(Newcomers.SHARED)
    before = whole(circle, "bob")
    circle.spoil_one(name, kind)
    circle.say("bob", "again")
    circle.say("ann", "too")
    circle.run(10.0)
    assert whole(circle, "bob") == before
    said = {f"{speaker}{number}" for speaker in ("ann", "bob", "cid") for number in range(3)}
    assert set(circle.heard("bob")) <= said | {"again", "too"}, "nobody said that"
    assert {"again", "too"} <= set(circle.heard("bob")) & set(circle.heard("cid"))
    assert circle.cells(name).take_damage() == [], "what was met was told"


@pytest.mark.parametrize("newcomers", [Newcomers.SHARED, Newcomers.FROM_NOW])
def test_every_damaged_text_is_opened_again_or_told(newcomers: Newcomers) -> None:
    circle = Frail(newcomers)
    circle.offline("bob")
    space = f"group.text/{circle.room.hex()}"
    for key in [key for key, _ in circle.cells("bob").scan(space)]:
        circle.cells("bob").spoil(space, key)
    circle.online("bob")
    circle.items["bob"].clear()
    circle.get("bob", ReadRoom(77, circle.room, 0.0, None, False, False), Reading)
    circle.run(5.0)
    said = sorted(f"{speaker}{number}" for speaker in ("ann", "bob", "cid") for number in range(3))
    if newcomers is Newcomers.SHARED:
        assert sorted(circle.heard("bob")) == said
    else:
        unread = [item.reason for item in circle.items["bob"] if isinstance(item, Unreadable)]
        assert (circle.heard("bob"), unread) == ([], [Reason.DAMAGED] * len(said))
    assert Reason.DAMAGED in circle.reasons("bob", Kind.DROPPED)
