from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.groups.group_world import GroupWorld, Packet, Peer, act, start

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.agreement import Step
from linnet.groups.bodies import Acks, Head, Item, Leave, Remove, Update, decode_body, encode_body
from linnet.groups.labels import Device
from linnet.groups.notes import Desynced, Equivocation, Ignored, Lack, Leaves, Waits
from linnet.groups.state import GroupConfig, encode_state

OP = EventId(b"e" * 32)


def give(world: GroupWorld, name: str, sender: Device, body: bytes, op: EventId = OP) -> Step:
    return agreement.receive(world.peers[name].state, sender, op, body, world.now)


def head(peer: Peer, ahead: int = 1) -> Head:
    return Head(peer.id, peer.state.cseq + ahead, 0)


def busy() -> tuple[GroupWorld, list[Packet]]:
    """A world where B may receive one of each: an update, an addition, acknowledgements with directs."""
    world = start("ABC", "D")
    act(world, "A! C+D C>A A. C>D D.")
    return world, [world.links[sender, "B"][0] for sender in "ACD"]


WORLD, PACKETS = busy()


@given(st.integers(0, 2), st.integers(0, 2**20), st.integers(0, 7))
def test_a_flipped_bit_leaves_no_trace_or_an_honest_one(which: int, place: int, bit: int) -> None:
    """Whatever is refused leaves the state as it was; nothing else is ever raised."""
    peer, packet = WORLD.peers["B"], PACKETS[which]
    body = bytearray(packet.body)
    body[place % len(body)] ^= 1 << bit
    before = encode_state(peer.state)
    try:
        step = give(WORLD, "B", packet.device, bytes(body), packet.id)
    except RemoteError:
        step = None
    assert encode_state(peer.state) == before
    if step is not None and any(isinstance(note, Waits) for note in step.notes):
        assert replace(step.state, wanted=()) == replace(peer.state, wanted=())


def test_replays_change_nothing() -> None:
    world = start("ABC")
    world.update("A")
    world.settle()
    for packet in world.transcript:
        for name, peer in world.peers.items():
            before = encode_state(peer.state)
            step = give(world, name, packet.device, packet.body, packet.id)
            assert encode_state(step.state) == before
            assert step.notes == ()


def test_what_comes_too_early_waits() -> None:
    world = start("ABC", "D")
    first, second = world.update("A"), world.update("A")
    step = give(world, "B", second.device, second.body, second.id)
    assert step == Step(world.peers["B"].state, (Waits(Lack.EARLIER, world.peers["A"].id),))
    world.deliver("A", "C")
    acks = world.acks("C")
    assert acks is not None
    step = give(world, "B", acks.device, acks.body, acks.id)
    assert step.notes == (Waits(Lack.ACKED, first.id),)
    assert step.state.wanted == (first.id,)
    act(world, "C+D C>D C>D")
    hello = world.acks("D")
    assert hello is not None
    step = give(world, "B", hello.device, hello.body, hello.id)
    assert step.notes == (Waits(Lack.MEMBER, world.peers["D"].id),)
    assert give(GroupWorld("AE"), "E", first.device, first.body).notes == (Waits(Lack.WELCOME),)


def test_two_operations_of_one_number_are_noticed() -> None:
    world = start("ABC")
    peer = world.peers["A"]
    twins = [agreement.draft_update(peer.state, world.means(peer)) for _ in range(2)]
    step = give(world, "B", peer.device, twins[0].body, EventId(b"1" * 32))
    state = world.peers["B"].state = step.state
    step = give(world, "B", peer.device, twins[1].body, EventId(b"2" * 32))
    assert step == Step(state, (Equivocation(peer.id, EventId(b"1" * 32), EventId(b"2" * 32)),))


def test_nobody_speaks_for_another() -> None:
    world = start("ABC")
    peer = world.peers["A"]
    body = encode_body(Leave(head(peer)))
    for sender in (world.peers["C"].device, Device(peer.device.author, world.peers["C"].device.device)):
        with pytest.raises(RemoteError) as caught:
            give(world, "B", sender, body)
        assert caught.value.reason is Reason.UNKNOWN_MEMBER
    with pytest.raises(RemoteError):
        give(world, "A", world.peers["C"].device, body)


def test_acknowledgements_are_given_once_and_of_the_right_kind() -> None:
    world = start("ABC", "D")
    update, addition = world.update("A").id, world.add("C", "D").id
    world.deliver("A", "B")
    world.deliver("C", "B")
    sender = world.peers["A"]
    # A's own update is not A's to acknowledge, and an addition wants another kind.
    for item in (Item(False, update, ()), Item(False, addition, ())):
        with pytest.raises(RemoteError) as caught:
            give(world, "B", sender.device, encode_body(Acks(head(sender), (item,))))
        assert caught.value.reason is Reason.MALFORMED
    good = encode_body(Acks(head(sender), (Item(True, addition, ()),)))
    world.peers["B"].state = give(world, "B", sender.device, good).state
    again = encode_body(Acks(head(sender, 2), (Item(True, addition, ()),)))
    with pytest.raises(RemoteError):
        give(world, "B", sender.device, again)


def test_a_second_creation_is_ignored() -> None:
    world = start("ABC")
    other = GroupWorld("ABC", seed=9)
    packet = other.create("C", "AB")
    step = give(world, "A", packet.device, packet.body, packet.id)
    assert step.notes == (Waits(Lack.MEMBER, other.peers["C"].id),)
    assert step.state is world.peers["A"].state


def test_an_old_state_is_noticed_and_is_used_no_more() -> None:
    world = start("ABC")
    peer = world.peers["A"]
    old = peer.state
    packet = world.update("A")
    peer.state = old
    step = give(world, "A", packet.device, packet.body, packet.id)
    assert any(isinstance(note, Desynced) for note in step.notes)
    assert agreement.is_desynced(step.state)


def test_who_asks_to_leave_is_told_of_and_removed_by_another() -> None:
    world = start("ABC")
    peer = world.peers["C"]
    world.send("C", agreement.draft_leave(peer.state))
    world.settle()
    for name in "AB":
        assert Leaves(peer.id) in world.peers[name].notes
        assert agreement.leaving(world.peers[name].state) == (peer.id,)
    with pytest.raises(Exception, match=Reason.NOT_ALLOWED):
        world.update("C")
    world.remove("A", "C")
    world.settle()
    assert not agreement.is_member(peer.state)
    assert agreement.leaving(world.peers["B"].state) == ()


def removed_and_late(linger: float) -> tuple[GroupWorld, Packet]:
    """X removed B while A removed X, and that has not come when all have seen the removal of X."""
    world = start("ABCX", config=GroupConfig(one_time=8, linger=linger))
    world.remove("A", "X")
    late = world.remove("X", "B")
    for name in "BC":
        world.deliver("A", name)
        world.acks(name)
    for sender, to in ("AB", "AC", "BA", "BC", "CA", "CB"):
        world.deliver(sender, to)
    assert all(world.peers["X"].id in world.peers[name].state.closed for name in "ABC")
    return world, late


def test_what_the_removed_did_before_they_knew_still_counts() -> None:
    world, _ = removed_and_late(1000.0)
    world.settle()
    assert [agreement.is_member(world.peers[name].state) for name in "ABCX"] == [True, False, True, False]


def test_after_a_while_it_counts_only_with_a_voucher() -> None:
    world, late = removed_and_late(1000.0)
    world.now += 2000
    for name in "ABC":
        assert give(world, name, late.device, late.body, late.id).notes == (Waits(Lack.VOUCHER, late.id),)
    world.settle()
    assert all(agreement.is_member(world.peers[name].state) for name in "ABC")
    world.say("B", "still here")
    world.settle()
    assert "still here" in world.peers["A"].read.values()


def test_a_present_member_who_took_it_vouches_for_it() -> None:
    world, late = removed_and_late(1000.0)
    world.deliver("X", "C")
    world.acks("C")
    world.now += 2000
    world.settle()
    assert [agreement.is_member(world.peers[name].state) for name in "ABCX"] == [True, False, True, False]
    assert late.id not in [packet.id for packet in world.peers["A"].waiting]


def test_ignored_operations_are_done_with() -> None:
    world = start("ABC")
    peer = world.peers["A"]
    body = encode_body(Remove(head(peer), b"\x09" * 32, (peer.id,), ()))
    step = give(world, "B", peer.device, body)
    assert [type(note) for note in step.notes] == [Ignored]
    draft = agreement.draft_update(peer.state, world.means(peer))
    content = decode_body(draft.body)
    assert isinstance(content, Update)
    follow = encode_body(replace(content, head=head(peer, 2)))
    world.peers["B"].state = step.state
    assert not any(
        isinstance(note, Waits) for note in give(world, "B", peer.device, follow, EventId(b"f" * 32)).notes
    )
