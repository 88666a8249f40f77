"""Nobody is waited for without end: who was away for too long is put out of the keys, and added anew."""

from __future__ import annotations

import pytest
from tests.groups.group_world import START, GroupWorld
from tests.rooms.circle import Devices
from tests.rooms.encryption.test_guarding import devices

from linnet.groups import agreement
from linnet.groups.state import GroupState
from linnet.rooms.config import RoomsConfig
from linnet.rooms.encryption import group_maintenance
from linnet.rooms.encryption.group_maintenance import CONTACT, Absence

ALL = ["ann", "ben", "cat"]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """In touch for half a minute is for long enough."""
    monkeypatch.setattr(group_maintenance, "CONTACT", 30.0)


def came_back(world: Devices) -> None:
    """cat is there again, under another id, and reads what is said from then on."""
    before = world.group("cat").state(world.network.now).me
    world.online("cat")
    world.run(60.0)
    after = world.group("cat").state(world.network.now).me
    assert None is not after != before
    assert world.holders("ann") == world.holders("ben") == world.holders("cat") == ALL
    world.say("ann", "welcome back")
    world.run(5.0)
    assert world.heard("cat")[-1] == "welcome back"


@pytest.mark.usefixtures("soon")
def test_who_has_not_taken_in_an_operation_for_too_long_is_put_out_and_added_anew() -> None:
    world = devices(*ALL, config=RoomsConfig(key_absence=300.0))
    world.offline("cat")
    world.update_keys("ann")
    world.run(250.0)
    assert world.holders("ann") == ALL
    world.update_keys("ben")  # Something happens, so that somebody looks.
    world.run(100.0)
    assert world.holders("ann") == ALL
    world.update_keys("ben")
    world.run(10.0)
    assert world.holders("ann") == world.holders("ben") == ["ann", "ben"]
    came_back(world)


@pytest.mark.usefixtures("soon")
def test_who_lacks_too_many_operations_is_put_out_and_added_anew() -> None:
    world = devices(*ALL, config=RoomsConfig(key_pending=3))
    world.offline("cat")
    world.run(60.0)
    for count in range(1, 5):
        assert world.holders("ben") == ALL
        world.update_keys("ann")
        world.run(10.0)
        pending = agreement.pending_by_member(world.group("ben").state(world.network.now))
        assert list(pending.values()) == ([count] if count < 4 else [])
    assert world.holders("ann") == world.holders("ben") == ["ann", "ben"]
    came_back(world)


@pytest.mark.usefixtures("soon")
def test_who_was_away_itself_blames_nobody() -> None:
    world = devices(*ALL, config=RoomsConfig(key_absence=300.0, key_pending=3))
    before = world.group("ann").members()
    for _ in range(5):
        world.update_keys("ann")
    world.offline("ann")  # So it has heard of no acknowledgement.
    world.run(400.0)
    world.online("ann")
    assert len(world.group("ann").state(world.network.now).ops) == 5
    world.run(200.0)
    world.update_keys("ann")
    world.run(10.0)
    assert world.group("ann").members() == world.group("ben").members() == before


def waiting(operations: int) -> GroupState:
    """The state of a member, one of whose others has taken in nothing of these."""
    world = GroupWorld("ABC")
    world.create("A", "BC")
    world.settle()
    for _ in range(operations):
        world.update("A")
        world.deliver("A", "B")
        world.acks("B")
        world.deliver("B", "A")
    return world.peers["A"].state


def test_nobody_is_blamed_before_we_have_been_in_touch_for_a_while() -> None:
    state, missed = waiting(2), Absence(100.0, 1)
    assert missed.overdue(state, START + 1e9) == ()  # Nobody was ever here.
    assert missed.next_look(state, START + 1e9) is None
    missed.look(True, START)
    assert missed.overdue(state, START + CONTACT - 1) == ()
    assert missed.next_look(state, START + CONTACT - 1) == START + CONTACT
    (late,) = missed.overdue(state, START + CONTACT)
    assert late in state.history.view_ids(None)
    assert late != state.me
    missed.look(True, START + CONTACT)
    assert missed.overdue(state, START + CONTACT) == (late,)
    missed.look(False, START + CONTACT)
    assert missed.overdue(state, START + CONTACT) == ()


def test_a_time_and_a_count_each_suffice() -> None:
    state = waiting(2)
    for seconds, most, is_late in ((1e9, 2, False), (1e9, 1, True), (CONTACT - 1, 2, True)):
        missed = Absence(seconds, most)
        missed.look(True, START)
        assert bool(missed.overdue(state, START + CONTACT)) is is_late
        assert missed.next_look(state, START + CONTACT) is None
    missed = Absence(1e9, 2)
    missed.look(True, START)
    assert missed.next_look(state, START + 1) is None  # Nobody is late: there is nothing to look for.
