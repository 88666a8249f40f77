"""The voice is handed over, refused or taken: by who may, in a term in which nothing more is said."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, assert_one_line, everybody, heard, run, says, shared_place

from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.places.commands import Announce, Announced, AnnounceMore
from linnet.sim.places_world import HOST


def test_the_host_hands_over_to_a_co_host_and_takes_the_voice_back() -> None:
    world = shared_place(4, seed=1)
    for number in range(6):
        says(world, HOST if number % 2 else COHOST, f"word {number}")
    run(world, 20)
    assert_one_line(world, [f"word {number}" for number in range(6)])
    assert world.status(HOST).term == 7
    assert not world.taken_back, "nothing was cut: each began where the other had stopped"


def test_both_speak_at_once_and_nothing_is_lost() -> None:
    world = shared_place(4, seed=2)
    for number in range(4):
        for name in (HOST, COHOST):
            body = f"{name} {number}".encode()
            world.ask(name, Announce(world.place, "_message", (), body))
        run(world, 0.2)
    run(world, 60)
    said = sorted(body.decode() for body in world.said["guest3"].values() if body)
    assert said == sorted(f"{name} {number}" for number in range(4) for name in (HOST, COHOST))
    for name in (HOST, COHOST):
        own = [body for _, body in sorted(world.said["guest3"].items()) if body.startswith(name.encode())]
        assert own == [f"{name} {number}".encode() for number in range(4)], "each in its order"


def test_a_voice_in_the_middle_of_a_message_refuses_and_that_binds_who_ranks_below() -> None:
    world = shared_place(3, seed=3)
    begun = world.obtain(HOST, Announce(world.place, "_file", body=b"a" * 100, more=True), Announced)
    refused = world.answered(world.ask(COHOST, Announce(world.place, "_message", body=b"me too")))
    assert isinstance(refused, Declined)
    assert refused.reason is Reason.IN_USE
    world.obtain(HOST, AnnounceMore(world.place, begun.message, b"b", False), Announced)
    says(world, COHOST, "now")
    run(world, 10)
    assert world.said["guest2"][begun.message] == b"a" * 100 + b"b"
    assert b"now" in world.said["guest2"].values()


def test_the_host_is_not_bound_by_a_refusal() -> None:
    world = shared_place(3, seed=4)
    begun = world.obtain(COHOST, Announce(world.place, "_file", body=b"a" * 100, more=True), Announced)
    run(world, 5)
    says(world, HOST, "enough")
    run(world, 5)
    rest = world.answered(world.ask(COHOST, AnnounceMore(world.place, begun.message, b"b", False)))
    assert isinstance(rest, Declined)
    assert rest.reason is Reason.STALE
    assert b"enough" in world.said["guest2"].values()


@pytest.mark.parametrize("crashes", [False, True])
def test_whoever_handed_over_says_nothing_more_in_its_term_also_after_a_crash(crashes: bool) -> None:
    """The co-host is gone before anybody hears that it has the voice, so that nobody opens the next term."""
    world = shared_place(3, seed=5)
    says(world, HOST, "one")
    run(world, 5)
    term, cells = world.status(HOST).term, world.stores[HOST].cells
    world.ask(COHOST, Announce(world.place, "_message", (), b"two"))
    for _ in range(500):
        if cells.get("place yielded", world.place) is not None:
            break
        run(world, 0.01)
    world.crash(COHOST)
    assert world.status(HOST).term == term
    if crashes:
        world.crash(HOST)
        run(world, 20)
        world.restart(HOST)
        run(world, 60)
    says(world, HOST, "three")
    assert world.status(HOST).term > term
    world.restart(COHOST)
    run(world, 60)
    assert_one_line(world, ["one", "three"])


def test_without_an_answer_the_next_term_is_opened() -> None:
    world = shared_place(3, seed=6)
    says(world, HOST, "one")
    run(world, 5)
    world.network.crash(world.identities[HOST].peer, silent=True)
    before = world.network.elapsed
    says(world, COHOST, "two")
    waited = world.network.elapsed - before
    assert world.config.yield_timeout <= waited <= world.config.yield_timeout + 1
    run(world, 5)
    assert world.status(COHOST).term == 2


def test_a_word_that_waits_for_its_turn_is_not_overtaken_by_the_next_one() -> None:
    """After a restart the host waits for word of another voice. That time ends before it next looks whether
    it may speak, and another word is asked for in between."""
    world = shared_place(2, seed=7)
    says(world, HOST, "before")
    run(world, 5)
    for name in everybody(world):
        world.crash(name)
    world.restart(HOST)
    unsure, patience = world.config.entry_timeout, world.config.yield_timeout
    run(world, unsure - patience / 2)
    first = world.ask(HOST, Announce(world.place, "_message", body=b"one"))
    run(world, patience * 3 / 4)
    assert world.network.answers.get(first) is None, "it waits"
    second = world.ask(HOST, Announce(world.place, "_message", body=b"two"))
    run(world, patience)
    for request in (first, second):
        assert isinstance(world.network.answers.get(request), Announced)
    assert heard(world, HOST) == ["before", "one", "two"]
