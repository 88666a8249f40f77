"""What happens at the same time ends alike for everybody, in whatever order it arrives (C1 to C15)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from random import Random

import pytest
from tests.groups.group_world import GroupWorld, Peer, act, start

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.labels import Device

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


SCENARIOS = {
    "c1": ("ABC", "", "A! B!"),
    "c1 all four": ("ABCD", "", "A! B! C! D!"),
    "c2 to c4": ("ABC", "D", "A! C+D"),
    "c5": ("AB", "CD", "A+C B+D"),
    "c6": ("AB", "CD", "A+C A>C C. C+D B!"),
    "c7": ("ABX", "D", "A-X B+D"),
    "c8": ("ABXY", "", "A-X B-Y"),
    "c9": ("ABX", "Y", "A-X X+Y"),
    "c10": ("ABCD", "", "A-B B-A"),
    "c11": ("ABX", "", "A-X X!"),
    "c12": ("ABCX", "", "A-X B!"),
    "c13": ("ABCX", "", "A-X B-X"),
    "c14": ("ABCX", "", "A-X X-B"),
    "c15": ("ABC", "", "A-B B-C C-A"),
    "c16 removed with a tail": ("ABX", "Y", "A-X X! X+Y X-B"),
}
"""Founders, others, and what they do before anything of it arrives, as `act` has it."""


def orders(world: GroupWorld) -> Iterator[tuple[tuple[str, str], ...]]:
    """The orders in which what is under way can arrive: each link keeps its own."""
    ends = [link for link, queue in world.links.items() for _ in queue]
    every = list(dict.fromkeys(itertools.islice(itertools.permutations(ends), 50_000)))
    if len(every) > MOST:
        every = Random(7).sample(every, MOST)
    yield from every


@pytest.mark.parametrize(("founders", "others", "deeds"), SCENARIOS.values(), ids=SCENARIOS)
@pytest.mark.parametrize("eager", [True, False], ids=["acked at once", "acked in one"])
def test_every_order_ends_alike(founders: str, others: str, deeds: str, eager: bool) -> None:
    base = start(founders, others, seed=1)
    act(base, deeds)
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
