"""Newcomers learn who is in from anybody, and believe nobody but the voice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.places.malice import Altering, AnySend, MaliciousWorld, Twist
from tests.places.sharing import entered_place

from linnet.core.reasons import Reason
from linnet.places import guest_list
from linnet.places.channel.membership import LINE_BYTES
from linnet.places.commands import Eject
from linnet.places.config import PlacesConfig
from linnet.places.messages import RollIs
from linnet.sim.places.world import HOST, PlacesWorld


def full(world: PlacesWorld) -> None:
    world.found()
    for name in world.guests:
        world.enter(name)
    world.network.run(world.network.elapsed + 20)


def guests_known(world: PlacesWorld) -> list[int]:
    return [world.status(name).guests for name in (HOST, *world.guests)]


def test_every_guest_knows_all_others_through_whom_it_came() -> None:
    world = PlacesWorld(8, seed=21, config=PlacesConfig(fanout=2))
    full(world)
    assert guests_known(world) == [8] * 9


def test_a_roll_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_list, "ROLL_PAGE_BYTES", LINE_BYTES + 1)
    world = PlacesWorld(6, seed=22, config=PlacesConfig(fanout=2))
    full(world)
    assert guests_known(world) == [6] * 7


def test_who_was_put_out_is_not_on_the_roll_of_whoever_comes_later() -> None:
    world = PlacesWorld(4, seed=23, config=PlacesConfig(fanout=2))
    world.found()
    for name in world.guests[:3]:
        world.enter(name)
    world.ask(HOST, Eject(world.place, world.identities["guest0"].author))
    world.network.run(world.network.elapsed + 3)
    world.enter("guest3")
    world.network.run(world.network.elapsed + 10)
    assert [world.status(name).guests for name in ("guest1", "guest2", "guest3")] == [3, 3, 3]
    assert world.status("guest3").generation == 1


def test_a_guest_that_crashes_before_it_knows_learns_later() -> None:
    world = entered_place(4, 24, config=PlacesConfig(fanout=2))
    world.crash("guest3")
    world.restart("guest3")
    world.network.run(world.network.elapsed + 30)
    assert guests_known(world) == [4] * 5


def without_the_first(page: RollIs) -> RollIs:
    return replace(page, lines=page.lines[LINE_BYTES:], size=page.size - LINE_BYTES)


def with_itself_twice(page: RollIs) -> RollIs:
    return replace(page, lines=page.lines[:LINE_BYTES] + page.lines, size=page.size + LINE_BYTES)


def opened_further(page: RollIs) -> RollIs:
    """The first one may see everything from message 0 on."""
    at = 32 + 8
    return replace(page, lines=page.lines[:at] + bytes(8) + page.lines[at + 8 :])


def of_another_place(page: RollIs) -> RollIs:
    assert page.change is not None
    return replace(page, change=replace(page.change, sig=bytes(64)))


def empty(page: RollIs) -> RollIs:
    return replace(page, lines=b"", size=0)


LIES: list[tuple[Callable[[RollIs], RollIs], Reason]] = [
    (without_the_first, Reason.STATE_MISMATCH),
    (opened_further, Reason.STATE_MISMATCH),
    (empty, Reason.STATE_MISMATCH),
    (with_itself_twice, Reason.MALFORMED),
    (of_another_place, Reason.BAD_SIGNATURE),
]


@pytest.mark.parametrize(("lie", "reason"), LIES, ids=[lie.__name__ for lie, _ in LIES])
def test_a_false_roll_is_named_and_another_is_asked(lie: Callable[[RollIs], RollIs], reason: Reason) -> None:
    twist = Altering(RollIs, lambda page: page if page.change is None else lie(page))
    world = MaliciousWorld(5, 25, {"guest1": twist}, config=PlacesConfig(fanout=2))
    full(world)
    told = [name for name in world.honest if world.named(name, "guest1", reason)]
    assert told
    assert [world.status(name).guests for name in world.honest] == [5] * 4


def test_a_roll_that_nobody_asked_for_is_refused() -> None:
    class Twice(Twist):
        def sends(self, send: AnySend) -> list[AnySend]:
            return [send, send] if isinstance(send.message, RollIs) else [send]

    world = MaliciousWorld(3, 27, {"guest1": Twice()}, config=PlacesConfig(fanout=1))
    full(world)
    assert any(world.named(name, "guest1", Reason.SURPLUS) for name in world.honest)
    assert guests_known(world) == [3] * 4


def test_whoever_is_never_answered_goes_on_asking_the_others() -> None:
    twist = Altering(RollIs, lambda page: None)
    world = MaliciousWorld(5, 28, {"guest1": twist}, config=PlacesConfig(fanout=2))
    full(world)
    assert any(world.named(name, "guest1", Reason.TIMEOUT) for name in world.honest)
    assert [world.status(name).guests for name in world.honest] == [5] * 4
