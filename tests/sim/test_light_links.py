"""Links of the light driver: there by need, and found again."""

from __future__ import annotations

from tests.due import Due
from tests.sim.light_scripts import DIAL, A, B, C, Listening, world_of

from linnet.core.effects import Hold, Probe, Release, SetTimer
from linnet.core.inputs import Probed
from linnet.core.reasons import Reason


def test_a_link_comes_with_the_first_hold_and_goes_a_while_after_the_last_release() -> None:
    a, b = Listening(), Listening()
    world = world_of(a, b)
    world.perform(A, [Hold(B, (), "one"), Hold(B, (), "two")])
    world.run(1.0)
    assert (a.told(), b.told()) == ([(DIAL, "LinkUp", B)], [(DIAL, "LinkUp", A)])
    assert [event.dialed for machine in (a, b) for _, event in machine.seen] == [True, False]
    world.perform(A, [Release(B, "one"), Release(B, "never")])
    world.run(100.0)
    assert world.linked(A) == [B]
    world.perform(B, [Hold(A, (), "theirs")])
    world.perform(A, [Release(B, "two")])
    world.run(200.0)
    assert world.linked(A) == [B]
    assert (world.held(A), world.held(B)) == ((), (A,))
    world.perform(B, [Release(A, "theirs")])
    world.run(300.0)
    assert a.told()[1:] == [(230.1, "LinkDown", B)]
    assert b.told()[1:] == [(230.0, "LinkDown", A)]
    assert world.links_opened == 1


def test_a_hold_within_the_idle_time_keeps_the_link() -> None:
    a, b = Listening(), Listening()
    world = world_of(a, b)
    world.perform(A, [Hold(B, (), "one")])
    world.run(1.0)
    world.perform(A, [Release(B, "one")])
    world.run(20.0)
    world.perform(A, [Hold(B, (), "again")])
    world.run(100.0)
    assert world.linked(B) == [A]


def test_two_who_dial_each_other_have_one_link() -> None:
    a, b = Listening(), Listening()
    world = world_of(a, b)
    world.perform(A, [Hold(B, (), "one")])
    world.perform(B, [Hold(A, (), "one")])
    world.run(10.0)
    assert (a.told(), b.told()) == ([(DIAL, "LinkUp", B)], [(DIAL, "LinkUp", A)])
    assert world.links_opened == 1


def test_what_is_held_is_dialled_again_after_a_crash_and_found_when_it_is_back() -> None:
    a, b, again = Listening(), Listening(), Listening()
    world = world_of(a, b)
    world.perform(A, [Hold(B, (), "one")])
    world.run(1.0)
    world.perform(B, [SetTimer(1.0, Due("never"))])
    world.crash(B)
    world.run(5.0)
    assert not world.is_up(B)
    world.restart(B, again)
    world.run(10.0)
    times = [(1.1, "LinkDown", B), (2.1, "DialFailed", B), (3.1, "DialFailed", B), (4.6, "DialFailed", B)]
    assert a.told()[1:] == [*times, (7.1, "LinkUp", B)]
    assert len(b.seen) == 1
    assert again.told() == [(7.1, "LinkUp", A)]


def test_who_lets_go_while_dialling_hears_nothing() -> None:
    a, b = Listening(), Listening()
    world = world_of(a, b)
    world.perform(A, [Hold(B, (), "one"), Release(B, "one"), Hold(C, (), "nobody there")])
    world.run(9.0)
    assert a.seen == b.seen == []
    world.run(11.0)
    assert a.told() == [(10.0, "DialFailed", C)]


def test_a_partition_cuts_and_heals() -> None:
    a, b, c = Listening(), Listening(), Listening()
    world = world_of(a, b, c)
    world.perform(A, [Hold(B, (), "one"), Hold(C, (), "one")])
    world.run(1.0)
    world.partition([[A, B]])
    world.run(3.0)
    assert world.linked(A) == [B]
    assert [what for _, what, _ in a.told()] == ["LinkUp", "LinkUp", "LinkDown", "DialFailed", "DialFailed"]
    assert c.told()[1:] == [(1.1, "LinkDown", A)]
    world.heal()
    world.run(10.0)
    assert world.linked(A) == [B, C]


def test_a_probe_tells_who_can_be_dialled() -> None:
    a, b = Listening(), Listening()
    world = world_of(a, b)
    world.perform(A, [Probe(B, ()), Probe(C, ())])
    world.run(1.0)
    world.crash(B)
    world.perform(A, [Probe(B, ())])
    world.run(20.0)
    gone = Reason.UNREACHABLE
    assert a.seen == [(DIAL, Probed(B, None)), (1.0 + DIAL, Probed(B, gone)), (10.0, Probed(C, gone))]
    assert b.seen == []
