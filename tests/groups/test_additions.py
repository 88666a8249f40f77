from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.groups.group_world import GroupWorld, Packet, act, start

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.bodies import Acks, decode_body
from linnet.groups.notes import Doubled, Ignored, Joined, RemovedSelf
from linnet.groups.state import GroupConfig, Hardening


def directs(packet: Packet | None) -> list[int]:
    assert packet is not None
    body = decode_body(packet.body)
    assert isinstance(body, Acks)
    return [len(item.directs) for item in body.items]


def test_a_newcomer_sees_the_group_of_its_adder_and_itself() -> None:
    world = start("ABC", "D")
    world.add("B", "D")
    world.deliver("B", "D")
    state = world.peers["D"].state
    assert set(agreement.members(state).values()) == {peer.device for peer in world.peers.values()}
    assert state.me in agreement.members(state)
    assert set(state.ratchets) == {world.peers["B"].id, world.peers["D"].id}


def test_a_newcomer_gets_no_key_of_before() -> None:
    world = start("ABC", "D")
    before = [world.say(name, "before") for name in "ABC"]
    world.add("B", "D")
    unaware = world.say("A", "before A knew of D")
    world.settle()
    peer = world.peers["D"]
    assert all(packet.id not in peer.read for packet in (*before, unaware))
    assert {peer.unread[packet.id] for packet in (*before, unaware)} == {Reason.BEFORE_JOINING}


@pytest.mark.parametrize("hardened", [True, False])
def test_no_ratchet_to_whom_a_removed_member_added(hardened: bool) -> None:
    world = start("ABX", "Y", hardening=Hardening(withhold_from_outsiders=hardened))
    act(world, "A-X X+Y A>B X>B")
    assert directs(world.acks("B")) == [0, 0 if hardened else 1]


def test_a_removal_that_comes_before_the_acks_are_out_withholds_too() -> None:
    world = start("ABX", "Y")
    act(world, "A-X X+Y X>B A>B")
    assert directs(world.acks("B")) == [0, 0]


def test_the_adder_of_a_cancelled_newcomer_and_the_newcomer_are_both_out() -> None:
    world = start("ABX", "Y")
    world.add("X", "Y")
    world.deliver("X", "Y")
    assert Joined(world.peers["Y"].id) in world.peers["Y"].notes
    world.remove("A", "X")
    world.settle()
    assert RemovedSelf() in world.peers["Y"].notes
    assert len(agreement.members(world.peers["A"].state)) == 2


def test_a_device_that_two_added_stays_once() -> None:
    world = start("ABC", "D")
    act(world, "A+D B+D A>D D.")
    mine = world.peers["D"].id
    world.settle()
    peer = world.peers["D"]
    twins = [member for member, device in agreement.members(peer.state).items() if device == peer.device]
    (other,) = (member for member in twins if member != mine)
    assert peer.id == mine
    assert Doubled(other) in peer.notes
    draft = agreement.draft_remove(peer.state, [other], world.means(peer))
    world.send("D", draft)
    world.settle()
    assert agreement.is_member(peer.state)
    for name in "ABCD":
        state = world.peers[name].state
        assert list(agreement.members(state).values()).count(peer.device) == 1
        assert agreement.pending_by_member(state) == {}
    world.say("D", "once")
    world.settle()
    assert all("once" in world.peers[name].read.values() for name in "ABC")


def test_a_group_has_a_limit() -> None:
    world = start("AB", "CD", config=GroupConfig(members=3, one_time=8))
    world.add("A", "C")
    with pytest.raises(Refused, match=Reason.GROUP_FULL):
        world.add("A", "D")
    with pytest.raises(Refused, match=Reason.GROUP_FULL):
        GroupWorld("ABCD", config=GroupConfig(members=3)).create("A", "BCD")
    world.settle()
    # A member that does not keep to it is not followed, and nobody waits for it.
    rude = world.peers["B"]
    rude.state = replace(rude.state, config=GroupConfig(members=9, one_time=8))
    packet = world.add("B", "D")
    step = agreement.receive(world.peers["A"].state, packet.device, packet.id, packet.body, world.now)
    assert step.notes == (Ignored(Reason.GROUP_FULL, "an addition beyond the limit"),)
    assert len(agreement.members(step.state)) == 3


def test_who_is_here_or_was_by_the_same_keys_is_not_added() -> None:
    world = start("ABC")
    with pytest.raises(Refused, match=Reason.DUPLICATE):
        world.add("A", "B")
    world.remove("A", "C")
    world.deliver("A", "B")
    with pytest.raises(Refused, match=Reason.MISSING_PREKEYS):
        world.add("A", "C")
