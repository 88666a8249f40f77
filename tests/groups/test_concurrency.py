"""What happens at the same time ends alike for everybody, in whatever order it arrives (C1 to C15)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from random import Random

import pytest

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.ids import Device
from linnet.testing.group_world import GroupWorld, Peer

SOAK = bool(os.environ.get("LINNET_SOAK"))
MOST = 5_040 if SOAK else 12
"""Orders of each scenario; a smaller number is a sample that is the same every time."""


def members(world: GroupWorld) -> list[Peer]:
    return [peer for peer in world.peers.values() if agreement.is_member(peer.state)]


def check_agreement(world: GroupWorld) -> None:
    """All present members see the same group and follow the same ratchets, and nothing is pending."""
    here = members(world)
    views = {peer.name: agreement.members(peer.state) for peer in here}
    present = {device for view in views.values() for device in view.values()}
    assert present == {peer.device for peer in here}
    for peer in here:
        assert views[peer.name] == views[here[0].name]
        # A device that is added again by prekeys of its former stay cannot join by them.
        assert all(reason is Reason.KEY_SPENT for _, reason in peer.faults)
        assert not agreement.is_desynced(peer.state)
        assert not agreement.owes_acks(peer.state)
        assert agreement.pending_by_member(peer.state) == {}
        ratchets = {member: peer.state.ratchets.get(member) for member in views[peer.name]}
        first = here[0].state.ratchets
        assert ratchets == {member: first.get(member) for member in views[peer.name]}, peer.name
        assert all(ratchets.values())


def heal(world: GroupWorld) -> None:
    for peer in members(world):
        if agreement.needs_heal(peer.state):
            with pytest.raises(Refused, match=Reason.NEEDS_HEAL):
                world.say(peer.name, "too early")
            world.update(peer.name)
            world.settle()
    assert not any(agreement.needs_heal(peer.state) for peer in members(world))


def check_talk(world: GroupWorld) -> None:
    """Every member's message is read by every other, and by nobody else."""
    names = [peer.name for peer in members(world)]
    said = [world.say(name, f"from {name}") for name in names]
    world.settle()
    for packet in said:
        readers = [name for name, peer in world.peers.items() if packet.id in peer.read]
        assert readers == [name for name in names if name != packet.sender]


def start(founders: str, others: str = "", seed: int = 1) -> GroupWorld:
    world = GroupWorld(founders + others, seed)
    world.create(founders[0], founders[1:])
    world.settle()
    return world


def c1() -> GroupWorld:
    world = start("ABC")
    world.update("A")
    world.update("B")
    return world


def c1_all_four() -> GroupWorld:
    world = start("ABCD")
    for name in "ABCD":
        world.update(name)
    return world


def c2_to_c4() -> GroupWorld:
    world = start("ABC", "D")
    world.update("A")
    world.add("C", "D")
    return world


def c5() -> GroupWorld:
    world = start("AB", "CD")
    world.add("A", "C")
    world.add("B", "D")
    return world


def c6() -> GroupWorld:
    world = start("AB", "CD")
    world.add("A", "C")
    world.deliver("A", "C")
    world.acks("C")
    world.add("C", "D")
    world.update("B")
    return world


def c7() -> GroupWorld:
    world = start("ABX", "D")
    world.remove("A", "X")
    world.add("B", "D")
    return world


def c8() -> GroupWorld:
    world = start("ABXY")
    world.remove("A", "X")
    world.remove("B", "Y")
    return world


def c9() -> GroupWorld:
    world = start("ABX", "Y")
    world.remove("A", "X")
    world.add("X", "Y")
    return world


def c10() -> GroupWorld:
    world = start("ABCD")
    world.remove("A", "B")
    world.remove("B", "A")
    return world


def c11() -> GroupWorld:
    world = start("ABX")
    world.remove("A", "X")
    world.update("X")
    return world


def c12() -> GroupWorld:
    world = start("ABCX")
    world.remove("A", "X")
    world.update("B")
    return world


def c13() -> GroupWorld:
    world = start("ABCX")
    world.remove("A", "X")
    world.remove("B", "X")
    return world


def c14() -> GroupWorld:
    world = start("ABCX")
    world.remove("A", "X")
    world.remove("X", "B")
    return world


def c15() -> GroupWorld:
    world = start("ABC")
    world.remove("A", "B")
    world.remove("B", "C")
    world.remove("C", "A")
    return world


def c16_removed_with_a_tail() -> GroupWorld:
    """Who is removed goes on for a while: an update, an addition, a removal of another."""
    world = start("ABX", "Y")
    world.remove("A", "X")
    world.update("X")
    world.add("X", "Y")
    world.remove("X", "B")
    return world


SCENARIOS = [
    c1,
    c1_all_four,
    c2_to_c4,
    c5,
    c6,
    c7,
    c8,
    c9,
    c10,
    c11,
    c12,
    c13,
    c14,
    c15,
    c16_removed_with_a_tail,
]


def orders(world: GroupWorld) -> Iterator[tuple[tuple[str, str], ...]]:
    """The orders in which what is under way can arrive: each link keeps its own."""
    ends = [link for link, queue in world.links.items() for _ in queue]
    every = list(dict.fromkeys(itertools.islice(itertools.permutations(ends), 50_000)))
    if len(every) > MOST:
        every = Random(7).sample(every, MOST)
    yield from every


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("eager", [True, False], ids=["acked at once", "acked in one"])
def test_every_order_ends_alike(scenario: Callable[[], GroupWorld], eager: bool) -> None:
    base = scenario()
    outcomes: set[tuple[Device, ...]] = set()
    for number, order in enumerate(orders(base)):
        world = base.clone()
        for sender, to in order:
            world.deliver(sender, to)
            if eager:
                world.acks(to)
        if not eager:
            for name in world.peers:
                world.acks(name)
        world.settle(Random(number))
        check_agreement(world)
        heal(world)
        check_agreement(world)
        check_talk(world)
        outcomes.add(tuple(sorted(peer.device for peer in members(world))))
    assert len(outcomes) == 1
