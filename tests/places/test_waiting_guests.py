"""At the door of a place whose host decides: who waits knows that it does, and who is rejected goes."""

from __future__ import annotations

from tests.places.sharing import heard, run, says, shared_place

from linnet.core.reasons import Reason
from linnet.machine.commands import Declined, Done
from linnet.places.channel.packet import Modifier
from linnet.places.commands import (
    Admit,
    Announced,
    AtDoor,
    Entered,
    EnterPlace,
    GuestsAre,
    ListGuests,
    ListPlaces,
    PlacesAre,
    Reject,
    Turned,
)
from linnet.places.deed import Policy
from linnet.sim.places.world import HOST, PlacesWorld

GUEST = "guest0"


def closed_place(seed: int) -> PlacesWorld:
    world = PlacesWorld(2, seed)
    world.found(Policy.CLOSED)
    return world


def entry(world: PlacesWorld, waits: bool = True, patience: float = 20.0, text: bytes = b"") -> EnterPlace:
    return EnterPlace(world.place, (world.contact(HOST),), (), text, patience, waits)


def test_who_has_to_wait_is_told_so_at_once_and_comes_in_when_it_is_let_in() -> None:
    world = closed_place(1)
    world.obtain(GUEST, entry(world, waits=False), AtDoor)
    assert world.network.elapsed < 5, "as soon as the host's answer is there"
    nym = world.identities[GUEST].author
    run(world, 100)
    guests = world.obtain(HOST, ListGuests(world.place), GuestsAre)
    assert guests.waiting == (nym,), "the node goes on to wait"
    world.obtain(HOST, Admit(world.place, nym), Announced)
    run(world, 5)
    assert world.status(GUEST).role == "guest"
    world.watch(GUEST)
    says(world, HOST, "welcome")
    run(world, 5)
    assert heard(world, GUEST) == ["welcome"]


def test_whose_patience_ends_at_the_door_is_told_that_the_host_decides() -> None:
    world = closed_place(2)
    assert world.obtain(GUEST, entry(world, patience=10.0), Declined).reason is Reason.WAITING
    world.obtain(HOST, Admit(world.place, world.identities[GUEST].author), Announced)
    run(world, 5)
    world.obtain(GUEST, entry(world), Entered)


def test_what_another_door_answers_does_not_make_the_host_seem_away() -> None:
    world = closed_place(2)
    host, other = world.contact(HOST), world.contact("guest1")
    for contacts in ((host, other), (other, host)):
        declined = world.obtain(GUEST, EnterPlace(world.place, contacts, (), b"", 20.0, True), Declined)
        assert declined.reason is Reason.WAITING


def test_a_no_of_who_cannot_decide_ends_nothing_while_the_host_may_come() -> None:
    world = shared_place(5, 7, cohosts=0, entered=4, policy=Policy.PUBLIC)
    world.crash(HOST)
    run(world, 1)
    contacts = (world.contact("guest0"), world.contact(HOST))
    request = world.ask("guest4", EnterPlace(world.place, contacts, (), b"", 20.0, True))
    run(world, 5)
    world.restart(HOST)
    assert isinstance(world.answered(request), Entered)


def test_what_was_said_at_the_door_is_told_with_who_waits_also_if_it_is_said_later() -> None:
    world = closed_place(3)
    nym = world.identities[GUEST].author
    world.obtain(GUEST, entry(world, waits=False, text=b"it is me"), AtDoor)
    guests = world.obtain(HOST, ListGuests(world.place), GuestsAre)
    assert (guests.waiting, guests.said) == ((nym,), ("it is me",))
    world.obtain(GUEST, entry(world, waits=False, text=b"Bea"), AtDoor)
    assert world.obtain(HOST, ListGuests(world.place), GuestsAre).said == ("Bea",)


def test_who_is_rejected_does_not_knock_again_by_itself() -> None:
    world = closed_place(4)
    nym = world.identities[GUEST].author
    request = world.ask(GUEST, entry(world))
    run(world, 3)
    elsewhere = (Modifier(":", "_place", b"la1"),)
    world.obtain(HOST, Reject(world.place, nym, modifiers=elsewhere, body=b"members only"), Done)
    turned = world.answered(request)
    assert isinstance(turned, Turned)
    assert (turned.text, turned.modifiers) == (b"members only", elsewhere)
    run(world, 300)
    world.crash(GUEST)
    run(world, 1)
    world.restart(GUEST)
    run(world, 300)
    assert [each.nym for each in world.knocked] == [nym]
    assert not world.obtain(HOST, ListGuests(world.place), GuestsAre).waiting
    world.obtain(GUEST, entry(world, waits=False), AtDoor)
    assert len(world.knocked) == 2, "unless its application asks again"


def test_who_is_rejected_after_its_patience_finds_the_reason_also_after_a_restart() -> None:
    world = closed_place(4)
    nym = world.identities[GUEST].author
    world.obtain(GUEST, entry(world, patience=5.0), Declined)
    assert world.status(GUEST).turned is None
    elsewhere = (Modifier(":", "_place", b"la1"),)
    world.obtain(HOST, Reject(world.place, nym, modifiers=elsewhere, body=b"members only"), Done)
    run(world, 5)
    for _ in range(2):
        turned = world.status(GUEST).turned
        assert turned is not None
        assert (turned.text, turned.modifiers) == (b"members only", elsewhere)
        world.crash(GUEST)
        run(world, 1)
        world.restart(GUEST)
        run(world, 1)
    world.obtain(GUEST, entry(world, waits=False), AtDoor)
    assert world.status(GUEST).turned is None, "it is asked about anew"


def test_who_waits_at_the_door_waits_on_after_a_restart() -> None:
    world = closed_place(6)
    nym = world.identities[GUEST].author
    world.obtain(GUEST, entry(world, patience=5.0), Declined)
    world.crash(GUEST)
    run(world, 1)
    world.restart(GUEST)
    run(world, 60)
    assert world.obtain(HOST, ListGuests(world.place), GuestsAre).waiting == (nym,)
    world.obtain(HOST, Admit(world.place, nym), Announced)
    run(world, 30)
    assert world.status(GUEST).role == "guest"


def test_an_enter_that_nobody_answers_leaves_nothing_behind() -> None:
    world = closed_place(5)
    world.crash(HOST)
    run(world, 1)
    turned = world.answered(world.ask(GUEST, entry(world)))
    assert isinstance(turned, Declined)
    assert turned.reason is Reason.TIMEOUT
    assert "does not go on asking" in turned.detail
    assert world.obtain(GUEST, ListPlaces(), PlacesAre).places == ()
    world.restart(HOST)
    run(world, 120)
    assert not world.knocked
