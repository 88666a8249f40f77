from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.groups.group_world import GroupWorld, Packet, act, start

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.bodies import Acks, decode_body
from linnet.groups.labels import Device
from linnet.groups.notes import Lost, Unreached
from linnet.groups.state import GroupConfig


def acks_in(packet: Packet | None) -> Acks:
    assert packet is not None
    body = decode_body(packet.body)
    assert isinstance(body, Acks)
    return body


def test_acks_in_one_lead_where_single_acks_lead() -> None:
    """The same ratchets, whether acknowledged one by one or all at once."""

    def run(at_once: bool) -> GroupWorld:
        world = start("ABC", "D")
        act(world, "A! B+D A!")
        for sender in "ABA":
            world.deliver(sender, "C")
            if at_once:
                world.acks("C")
        world.acks("C")
        return world

    single, batched = run(True), run(False)
    mine = single.peers["C"].id
    assert single.peers["C"].state.ratchets[mine] == batched.peers["C"].state.ratchets[mine]
    assert single.peers["C"].state.cseq == batched.peers["C"].state.cseq + 2
    for world in (single, batched):
        world.settle()
        ratchets = [peer.state.ratchets for peer in world.peers.values()]
        assert all(each == ratchets[0] for each in ratchets)


def test_nothing_is_done_before_acks_are_out() -> None:
    world = start("AB", "C")
    world.update("A")
    world.deliver("A", "B")
    assert agreement.owes_acks(world.peers["B"].state)
    acts: list[Callable[[], object]] = [
        lambda: world.update("B"),
        lambda: world.add("B", "C"),
        lambda: world.remove("B", "A"),
        lambda: world.say("B", "x"),
        lambda: world.send("B", agreement.draft_leave(world.peers["B"].state)),
    ]
    for deed in acts:
        with pytest.raises(Refused, match=Reason.ACKS_OWED):
            deed()
    world.acks("B")
    world.update("B")
    assert world.acks("B") is None


def test_more_than_fits_goes_into_the_next() -> None:
    world = start("AB", config=GroupConfig(one_time=8, ack_bytes=100))
    for _ in range(7):
        world.update("A")
        world.deliver("A", "B")
    sizes = []
    while agreement.owes_acks(world.peers["B"].state):
        sizes.append(len(acks_in(world.acks("B")).items))
    assert sizes == [3, 3, 1]
    world.settle()
    world.say("B", "done")
    world.settle()
    assert "done" in world.peers["A"].read.values()


def test_a_newcomer_that_the_sender_did_not_know_is_forwarded_the_share() -> None:
    world = start("ABC", "D")
    act(world, "A! C+D C>B B. A>B")
    (item,) = acks_in(world.acks("B")).items
    world.deliver("C", "D")
    assert [member for member, _ in item.directs] == [world.peers["D"].id]
    world.settle()
    assert world.peers["D"].state.ratchets == world.peers["A"].state.ratchets


def test_who_has_the_update_before_the_newcomer_forwards_nothing() -> None:
    world = start("ABC", "D")
    act(world, "A! C+D A>B C>B")
    items = acks_in(world.acks("B")).items
    assert [len(item.directs) for item in items] == [0, 1]
    assert items[1].is_add
    world.settle()
    assert world.peers["D"].state.ratchets == world.peers["A"].state.ratchets


def test_a_newcomer_acknowledges_without_a_share_what_was_not_for_it() -> None:
    world = start("ABC", "D")
    act(world, "A! C+D C>D D.")
    ratchet = world.peers["D"].state.ratchets[world.peers["D"].id]
    world.deliver("A", "D")
    (item,) = acks_in(world.acks("D")).items
    assert item.directs == ()
    assert world.peers["D"].state.ratchets[world.peers["D"].id] == ratchet


def test_nobody_without_the_right_is_told_a_share_or_a_ratchet() -> None:
    world = start("ABC", "D")
    act(world, "A! C+D C>B A>B")
    outsider = world.peers["D"].device

    def may_hold(device: Device) -> bool:
        return device != outsider

    world.may_hold = may_hold
    items = acks_in(world.acks("B")).items
    assert [item.directs for item in items] == [(), ()]
    newcomer = next(
        member for member, device in agreement.members(world.peers["B"].state).items() if device == outsider
    )
    assert world.peers["B"].notes[-2:] == [
        Unreached(newcomer, Reason.SURPLUS),
        Unreached(newcomer, Reason.SURPLUS),
    ]
    world.settle()
    assert world.peers["B"].id not in world.peers["D"].state.ratchets


def test_a_member_without_prekeys_does_not_hold_up_the_others() -> None:
    world = start("ABC", "D")
    world.add("C", "D")
    del world.bundles[world.peers["D"].device]
    world.deliver("C", "B")
    (item,) = acks_in(world.acks("B")).items
    assert item.directs == ()
    assert any(isinstance(note, Unreached) for note in world.peers["B"].notes)


def test_a_share_that_does_not_open_loses_that_member_alone() -> None:
    world = start("ABC", "D")
    act(world, "A! C+D C>B B. A>B")
    packet = world.acks("B")
    assert packet is not None
    spoilt = bytearray(packet.body)
    spoilt[-1] ^= 1
    broken = Packet(packet.id, packet.sender, packet.device, bytes(spoilt))
    for queue in world.links.values():
        if packet in queue:
            queue[queue.index(packet)] = broken
    world.settle()
    newcomer, lost = world.peers["D"], world.peers["B"].id
    assert any(isinstance(note, Lost) and note.member == lost for note in newcomer.notes)
    assert lost not in newcomer.state.ratchets
    assert not agreement.is_desynced(newcomer.state)
    world.say("A", "still here")
    world.say("B", "not for D")
    world.settle()
    assert "still here" in newcomer.read.values()
    assert "not for D" not in newcomer.read.values()


def test_the_oldest_shares_go_where_too_many_are_pending() -> None:
    world = start("ABC", config=GroupConfig(one_time=8, pending=5))
    for _ in range(8):
        act(world, "A! A>B B. B>A")
    state = world.peers["A"].state
    absent = world.peers["C"].id
    assert agreement.pending_by_member(state) == {absent: 8}
    assert agreement.overdue(state, world.now, 8) == ()
    assert agreement.overdue(state, world.now, 7) == agreement.overdue(state, world.now + 1, 8) == (absent,)
    shares = [state.ops[op].awaiting[absent] for op in sorted(state.ops, key=lambda op: state.ops[op].order)]
    assert [bool(share) for share in shares] == [False] * 3 + [True] * 5
    world.settle()
    assert any(isinstance(note, Lost) and note.member == absent for note in world.peers["A"].notes)
