"""What a group does in whole: founding, adding, removing, updating, writing and reading (F1 to F5)."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from tests.groups.group_world import GroupWorld, act

from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.notes import Added, Healed, Joined, RemovedSelf


def founded(names: Sequence[str], others: Sequence[str] = (), seed: int = 0) -> GroupWorld:
    world = GroupWorld([*names, *others], seed)
    world.create(names[0], names[1:])
    world.settle()
    return world


def everybody_reads_everybody(world: GroupWorld, names: Sequence[str]) -> None:
    said = [world.say(name, f"from {name}") for name in names]
    world.settle()
    for name in names:
        peer = world.peers[name]
        for packet in said:
            assert packet.sender == name or peer.read.get(packet.id) == packet.text, (name, packet.sender)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 48, *([128] if os.environ.get("LINNET_SOAK") else [])])
def test_all_first_members_read_all(size: int) -> None:
    names = [f"m{number}" for number in range(size)]
    world = founded(names)
    everybody_reads_everybody(world, names)
    assert all(len(agreement.members(world.peers[name].state)) == size for name in names)


def test_two_talk_and_update_in_turn() -> None:
    world = founded("AB")
    for turn in range(10):
        everybody_reads_everybody(world, "AB")
        world.update("AB"[turn % 2])
        world.settle()
    everybody_reads_everybody(world, "AB")


def test_a_newcomer_writes_at_once_and_reads_what_comes_later() -> None:
    world = founded("ABC", "D")
    before = world.say("A", "before")
    act(world, "* B+D B>D D.")
    at_once = world.say("D", "at once")
    world.settle()
    everybody_reads_everybody(world, "ABCD")
    assert all(world.peers[name].read[at_once.id] == "at once" for name in "ABC")
    assert before.id not in world.peers["D"].read
    assert Joined(world.peers["D"].id) in world.peers["D"].notes
    assert Added(world.peers["D"].id, world.peers["D"].device) in world.peers["A"].notes


def test_a_removed_member_is_told_and_reads_nothing_more() -> None:
    world = founded("ABC")
    world.remove("A", "C")
    world.settle()
    assert RemovedSelf() in world.peers["C"].notes
    assert not agreement.is_member(world.peers["C"].state)
    said = world.say("B", "without C")
    world.settle()
    assert world.peers["A"].read[said.id] == "without C"
    assert said.id not in world.peers["C"].read


def test_who_comes_back_is_another_member_with_other_keys() -> None:
    world = founded("ABC")
    first, identity = world.peers["C"].id, world.peers["C"].state.prekeys.identity
    world.remove("A", "C")
    world.settle()
    between = world.say("A", "while C was away")
    world.settle()
    world.publish_keys("C")
    world.add("B", "C")
    world.settle()
    assert world.peers["C"].id != first
    assert world.peers["C"].state.prekeys.identity != identity
    everybody_reads_everybody(world, "ABC")
    assert world.peers["C"].unread[between.id] in (Reason.UNKNOWN_MEMBER, Reason.BEFORE_JOINING)


def test_an_update_is_healed_when_all_have_taken_it() -> None:
    world = founded("ABC")
    op = world.update("A").id
    act(world, "A>B B. B>A")
    state = world.peers["A"].state
    assert agreement.healed_by(state, op) == tuple(sorted((world.peers["A"].id, world.peers["B"].id)))
    assert agreement.pending_by_member(state) == {world.peers["C"].id: 1}
    world.settle()
    assert Healed(op) in world.peers["A"].notes
    assert agreement.pending_by_member(world.peers["A"].state) == {}
