"""A message that was open when its term was cut: its application is told, and nothing gets mixed up."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, assert_one_line, heard, run, says, shared_place, split
from tests.raised import reason_of

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.places.commands import Announce, Announced, AnnounceMore
from linnet.places.host_terms import KEPT, OpenMessages
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.store.memory import MemoryStore

PLACE = TopicId(bytes(32))


def opens(world: PlacesWorld, name: str, body: bytes) -> int:
    return world.obtain(name, Announce(world.place, "_file", body=body, more=True), Announced).message


@pytest.mark.parametrize("crashes", [False, True])
def test_the_rest_of_a_message_that_was_cut_is_refused_and_gets_into_no_other_one(crashes: bool) -> None:
    world = shared_place(3, seed=6)
    says(world, HOST, "before")
    run(world, 5)
    split(world, HOST, "guest1")
    run(world, 10)
    says(world, HOST, "here")
    files = [opens(world, HOST, f"file {number};".encode()) for number in range(24)]
    says(world, COHOST, "there")
    run(world, 30)
    world.network.heal()
    run(world, 100)
    if crashes:
        world.crash(HOST)
        run(world, 1)
        world.restart(HOST)
        run(world, 20)
    assert world.status(HOST).voice == world.identities[HOST].peer, "it said again what had ended"
    other = opens(world, HOST, b"another;")
    assert other not in files, "no open message has a number by which an application may mean one that is cut"
    for message in files:
        declined = world.obtain(HOST, AnnounceMore(world.place, message, b"rest", False), Declined)
        assert declined.reason is Reason.STALE
    world.obtain(HOST, AnnounceMore(world.place, other, b"end", False), Announced)
    says(world, HOST, "file 0, all of it")
    run(world, 20)
    assert heard(world, "guest2") == ["before", "there", "here", "another;end", "file 0, all of it"]
    assert_one_line(world, heard(world, "guest2"))


def test_a_message_goes_on_in_its_term_and_after_it_no_more() -> None:
    unfinished = OpenMessages(PLACE, MemoryStore().cells)
    unfinished.began(7, 2)
    unfinished.check(7, 2)
    unfinished.check(8, 2)
    assert not unfinished.is_taken(7, 2)
    assert unfinished.is_taken(7, 3)
    assert reason_of(Refused, unfinished.check, 7, 3) is Reason.STALE
    unfinished.ended(7)
    unfinished.check(7, 3)


def test_it_is_remembered_after_a_restart_for_each_place_and_not_without_end() -> None:
    cells = MemoryStore().cells
    unfinished = OpenMessages(PLACE, cells)
    for message in range(KEPT + 1):
        unfinished.began(message, 1)
    again = OpenMessages(PLACE, cells)
    assert [message for message in range(KEPT + 1) if again.is_taken(message, 2)] == list(range(1, KEPT + 1))
    assert not OpenMessages(TopicId(bytes([1]) * 32), cells).is_taken(5, 2)
