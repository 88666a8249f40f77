"""What was said in a term that was cut is said again: once, in the same order, also after a crash."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, assert_one_line, heard, place_at, run, says, shared_place, split

from linnet.core.reasons import Reason
from linnet.places.channel.packet import Modifier
from linnet.places.commands import Announce, Announced, Entered, EnterPlace, GuestsAre, ListGuests
from linnet.places.fragment_writer import FragmentWriter
from linnet.places.host import Orphan, orphans, say_again
from linnet.places.items import AGAIN, Said
from linnet.sim.places.world import HOST


def test_what_was_said_on_both_sides_of_a_split_is_there_once_in_the_end() -> None:
    world = shared_place(5, seed=5)
    says(world, HOST, "before")
    run(world, 5)
    split(world, COHOST, "guest1", "guest2")
    run(world, 10)
    for text in ("here 1", "here 2"):
        says(world, HOST, text)
    for text in ("there 1", "there 2"):
        says(world, COHOST, text)
    run(world, 30)
    assert heard(world, "guest4") == ["before", "here 1", "here 2"]
    assert heard(world, "guest2") == ["before", "there 1", "there 2"]
    world.network.heal()
    run(world, 400)
    assert_one_line(world, ["before", "there 1", "there 2", "here 1", "here 2"])
    (taken,) = world.taken_back["guest4"]
    assert len(taken.messages) >= 2
    assert "guest2" not in world.taken_back


@pytest.mark.parametrize(
    ("seed", "after", "waits"), [(8, 0.05, False), (8, 3.5, False), (9, 0.05, True), (9, 1.0, True)]
)
def test_it_is_said_again_once_also_if_its_author_crashes_meanwhile(
    seed: int, after: float, waits: bool
) -> None:
    """Both before its turn to say it has come and behind that."""
    world = shared_place(3, seed)
    split(world, COHOST, "guest1")
    run(world, 10)
    says(world, HOST, "here 1")
    says(world, HOST, "here 2")
    says(world, COHOST, "there")
    run(world, 30)
    world.network.heal()
    while world.status(HOST).term == 1:
        run(world, 0.05)
    run(world, after)
    assert bool(orphans(place_at(world, HOST).parts)) is waits
    world.crash(HOST)
    run(world, 1)
    world.restart(HOST)
    run(world, 300)
    assert_one_line(world, ["there", "here 1", "here 2"])


def test_whoever_watches_can_tell_what_is_said_again() -> None:
    world = shared_place(2, seed=10)
    split(world, COHOST)
    run(world, 10)
    first = world.obtain(HOST, Announce(world.place, "_message", (), b"here"), Announced)
    says(world, COHOST, "there")
    run(world, 30)
    world.network.heal()
    run(world, 200)
    again = [each for each in world.heads["guest1"] if any(mod.name == AGAIN for mod in each.modifiers)]
    assert first.event is not None
    assert [each.modifiers for each in again] == [(Modifier(":", AGAIN, first.event.hex().encode()),)]
    assert isinstance(again[0], Said)


def test_what_turns_up_once_more_after_it_was_said_again_is_left_alone() -> None:
    world = shared_place(2, seed=10)
    split(world, COHOST)
    run(world, 10)
    first = world.obtain(HOST, Announce(world.place, "_message", (), b"here"), Announced)
    says(world, COHOST, "there")
    run(world, 30)
    world.network.heal()
    parts = place_at(world, HOST).parts
    cut: list[Orphan] = []
    while not cut:
        run(world, 0.05)
        cut = [each for each in orphans(parts) if each.rows[0].event == first.event]
    run(world, 200)
    assert_one_line(world, ["there", "here"])
    (orphan,) = cut
    assert say_again(parts, FragmentWriter(parts), orphan, world.network.now) == ([], None)


def test_what_was_not_finished_when_its_term_was_cut_is_dropped_with_a_record() -> None:
    world = shared_place(2, seed=10)
    split(world, COHOST)
    run(world, 10)
    first = world.obtain(HOST, Announce(world.place, "_message", (), b"here", more=True), Announced)
    says(world, COHOST, "there")
    run(world, 30)
    world.network.heal()
    parts = place_at(world, HOST).parts
    cut: list[Orphan] = []
    while not cut:
        run(world, 0.05)
        cut = [each for each in orphans(parts) if each.rows[0].event == first.event]
    spoken, record = say_again(parts, FragmentWriter(parts), cut[0], world.network.now)
    assert (spoken, record and record.reason, record and record.event) == ([], Reason.STALE, first.event)
    run(world, 200)
    assert_one_line(world, ["there"])


def test_two_cohosts_who_opened_the_same_term_while_the_host_was_away_are_both_heard() -> None:
    world = shared_place(6, seed=11, cohosts=2)
    says(world, HOST, "before")
    run(world, 5)
    world.crash(HOST)
    split(world, "guest1", "guest3", "guest5")
    run(world, 30)
    for text in ("here 1", "here 2"):
        says(world, "guest0", text)
    # Under the very numbers that the others give on their side.
    for text in ("there 1", "there 2"):
        says(world, "guest1", text)
    run(world, 10)
    here, there = world.status("guest2"), world.status("guest3")
    assert (here.term, here.voice) == (there.term, world.identities["guest0"].peer)
    assert there.voice == world.identities["guest1"].peer
    world.network.heal()
    run(world, 200)
    world.restart(HOST)
    run(world, 300)
    # guest0 stands higher in the deed, so that its term counts.
    assert_one_line(world, ["before", "here 1", "here 2", "there 1", "there 2"])


def test_who_came_in_on_the_side_that_lost_is_in_and_hears_everything_said_since() -> None:
    world = shared_place(6, seed=12, cohosts=2, entered=5)
    says(world, HOST, "before")
    run(world, 5)
    world.crash(HOST)
    split(world, "guest1", "guest3", "guest5")
    run(world, 30)
    says(world, "guest0", "here")
    says(world, "guest1", "there 1")
    world.obtain("guest5", EnterPlace(world.place, (world.contact("guest1"),)), Entered)
    world.watch("guest5")
    says(world, "guest1", "there 2")
    run(world, 10)
    assert heard(world, "guest5") == ["there 2"]
    world.network.heal()
    run(world, 200)
    world.restart(HOST)
    run(world, 300)
    lines = {name: heard(world, name) for name in (HOST, *world.guests[:5])}
    assert set(map(tuple, lines.values())) == {("before", "here", "there 1", "there 2")}
    # Its notice is said again in the order in which everything was said there.
    assert heard(world, "guest5") == ["there 2"]
    guests = world.obtain(HOST, ListGuests(world.place), GuestsAre).guests
    assert world.identities["guest5"].author in [each.nym for each in guests]
    assert len({world.status(name).state_hash for name in (HOST, *world.guests)}) == 1
