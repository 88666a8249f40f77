from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.groups.group_world import GroupWorld, Packet, Peer, act, start

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.bodies import Head, Remove, Update, decode_body, encode_body
from linnet.groups.labels import MemberId
from linnet.groups.notes import Desynced, Ignored, RemovedSelf, WeakFs
from linnet.groups.state import Hardening, encode_state
from linnet.groups.two_party import begun


def spoil(world: GroupWorld, packet: Packet, place: int) -> None:
    """One bit of a packet is another one wherever it is under way, as if its sender had made it so."""
    body = bytearray(packet.body)
    body[place] ^= 1
    for queue in world.links.values():
        if packet in queue:
            queue[queue.index(packet)] = Packet(packet.id, packet.sender, packet.device, bytes(body))


def leave(peer: Peer, world: GroupWorld) -> None:
    world.send(peer.name, agreement.draft_leave(peer.state))


def test_who_cannot_take_a_seed_only_listens() -> None:
    world = start("ABC")
    spoil(world, world.update("A"), -1)
    world.settle()
    robbed = [peer for peer in world.peers.values() if agreement.is_desynced(peer.state)]
    assert len(robbed) == 1
    (peer,) = robbed
    assert any(isinstance(note, Desynced) for note in peer.notes)
    assert not agreement.owes_acks(peer.state)
    for deed in (world.update, lambda name: world.say(name, "x")):
        with pytest.raises(Refused, match=Reason.DESYNCED):
            deed(peer.name)
    healthy = next(name for name in "BC" if name != peer.name)
    world.say("A", "goes on")
    world.settle()
    assert "goes on" in world.peers[healthy].read.values()
    leave(peer, world)
    world.settle()
    assert agreement.leaving(world.peers["A"].state) == (peer.id,)
    world.remove("A", peer.name)
    world.settle()
    assert RemovedSelf() in peer.notes
    world.publish_keys(peer.name)
    world.add("A", peer.name)
    world.settle()
    world.say(peer.name, "back again")
    world.settle()
    assert "back again" in world.peers[healthy].read.values()


def test_a_removal_of_nobody_who_is_there_is_ignored_by_all_alike() -> None:
    world = start("ABC")
    peer = world.peers["A"]
    head = Head(peer.id, peer.state.cseq + 1, 0)
    body = encode_body(Remove(head, b"\x09" * 32, (MemberId(b"x" * 16),), ()))
    for name in "BC":
        other = world.peers[name]
        step = agreement.receive(other.state, peer.device, EventId(b"e" * 32), body, world.now)
        assert step.notes == (Ignored(Reason.UNKNOWN_MEMBER, "the remover does not know whom it removes"),)
        assert agreement.members(step.state) == agreement.members(other.state)
        assert step.state.clock[peer.id] == head.cseq
        assert not agreement.owes_acks(step.state)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_seed_to_others_than_its_sender_knows_is_refused(count: int) -> None:
    world = start("ABC")
    peer, other = world.peers["A"], world.peers["B"]
    draft = agreement.draft_update(peer.state, world.means(peer))
    content = decode_body(draft.body)
    assert isinstance(content, Update)
    wrong = Update(content.head, content.spk, (content.directs * 2)[:count])
    before = encode_state(other.state)
    with pytest.raises(Exception, match=Reason.MALFORMED):
        agreement.receive(other.state, peer.device, EventId(b"e" * 32), encode_body(wrong), world.now)
    assert encode_state(other.state) == before


def test_who_is_removed_keeps_nothing() -> None:
    world = start("ABC")
    world.say("A", "secret")
    world.update("B")
    world.settle()
    peer = world.peers["C"]
    secrets = [*peer.state.ratchets.values(), *peer.state.inband.values()]
    secrets += [peer.state.prekeys.identity.secret]
    secrets += [key.secret for key in peer.state.prekeys.one_time]
    secrets += [key.keys.secret for key in peer.state.prekeys.signed]
    for channel in peer.state.channels.values():
        secrets += [*channel.own, channel.received or b"nothing"]
    secrets += [chain.key for chains in peer.state.chains.values() for chain in chains.chains]
    world.remove("A", "C")
    world.settle()
    data = encode_state(peer.state)
    assert len(secrets) > 15
    assert not any(secret in data for secret in secrets)
    assert len(data) < 1000


def test_prekeys_of_our_operations_go_when_all_have_a_newer_one() -> None:
    world = start("ABC")
    state = world.peers["A"].state
    assert sorted(state.inband) == [1]
    world.update("A")
    assert sorted(world.peers["A"].state.inband) == [1, 2]
    act(world, "A>B B. B>A")
    assert sorted(world.peers["A"].state.inband) == [1, 2]
    world.settle()
    assert sorted(world.peers["A"].state.inband) == [2]
    for _ in range(3):
        world.update("B")
        world.settle()
    assert sorted(world.peers["A"].state.inband) == [2]


def prekeys_of(world: GroupWorld, name: str) -> tuple[list[int], list[int]]:
    prekeys = world.peers[name].state.prekeys
    return [key.gen for key in prekeys.signed], [key.id for key in prekeys.one_time]


def test_who_begins_by_older_prekeys_beside_a_heal_is_understood_and_then_these_go() -> None:
    world = start("ABM")
    assert prekeys_of(world, "M") == ([1], [*range(1, 9)])
    world.update("M")
    first = decode_body(world.update("B").body)  # B has told M nothing yet, and has not heard of its heal.
    assert isinstance(first, Update)
    assert {direct[:1] for direct in first.directs} == {b"\x00", b"\x02"}
    assert prekeys_of(world, "M") == ([1, 2], [*range(1, 17)])
    act(world, "M>A A. A>M")
    assert prekeys_of(world, "M") == ([1, 2], [*range(1, 17)])  # B may use them still.
    world.settle()
    assert prekeys_of(world, "M") == ([2], [*range(9, 17)])
    assert not any(agreement.is_desynced(peer.state) for peer in world.peers.values())
    world.say("B", "understood")
    world.settle()
    assert "understood" in world.peers["M"].read.values()


def test_who_knows_of_a_heal_and_not_its_prekeys_begins_without_a_one_time_one() -> None:
    world = start("ABM", "S")
    device, old = world.peers["M"].device, world.bundles[world.peers["M"].device]
    world.update("M")
    world.settle()
    new, world.bundles[device] = world.bundles[device], old
    act(world, "A+S A>S S.")
    world.update("S")  # It knows the heal by its welcome.
    assert WeakFs(device) in world.peers["S"].notes
    world.bundles[device] = new
    world.settle()
    world.say("S", "hello")
    world.settle()
    assert "hello" in world.peers["M"].read.values()


def test_a_one_time_prekey_that_all_have_done_with_is_refused_and_its_owner_comes_anew() -> None:
    world = start("ABM", "S")
    device, old = world.peers["M"].device, world.bundles[world.peers["M"].device]
    world.update("M")
    world.settle()
    new, world.bundles[device] = world.bundles[device], old
    act(world, "A+S A>S S.")
    careless = world.peers["S"]
    careless.state = replace(careless.state, hardening=Hardening(renewed_one_time=False))
    world.update("S")
    world.bundles[device] = new
    world.settle()
    robbed = world.peers["M"]
    assert agreement.is_desynced(robbed.state)
    assert any(isinstance(note, Desynced) and Reason.KEY_SPENT in note.detail for note in robbed.notes)
    leave(robbed, world)
    act(world, "* A-M *")
    world.publish_keys("M")
    world.add("B", "M")
    world.settle()
    world.say("S", "again")
    world.settle()
    assert "again" in robbed.read.values()


@pytest.mark.parametrize("hardened", [True, False])
def test_a_seed_that_was_not_for_us_makes_us_begin_anew_with_its_sender(hardened: bool) -> None:
    world = start("ABC", "D", hardening=Hardening(inband_prekeys=hardened))
    act(world, "B+D B>D D. D!")
    # C has not heard of D yet, so its seed is not for D, who has told C something by old prekeys.
    world.update("C")
    ours, other = world.peers["D"], world.peers["C"].id
    assert begun(ours.state.channels[other])
    world.deliver("C", "D")
    assert begun(ours.state.channels[other]) is not hardened
    assert (ours.state.peer_inband.get(other, (0, b""))[0] == 2) is hardened
    world.settle()
    packet = world.update("D")
    body = decode_body(packet.body)
    assert isinstance(body, Update)
    world.settle()
    assert ours.state.ratchets == world.peers["C"].state.ratchets


def test_a_group_of_one_is_a_group() -> None:
    world = start("A")
    world.update("A")
    world.say("A", "to myself")
    assert agreement.pending_by_member(world.peers["A"].state) == {}


@pytest.mark.parametrize("names", ["ABX", "ABCX"], ids=["when all know", "while one does not"])
def test_nobody_takes_a_seed_of_one_whose_removal_it_has_seen(names: str) -> None:
    world = start(names)
    act(world, "A-X A>B B.")
    before = world.peers["B"].state.ratchets[world.peers["B"].id]
    act(world, "X! X>B B.")
    assert world.peers["B"].state.ratchets[world.peers["B"].id] == before
    world.settle()
    assert world.peers["A"].state.ratchets == world.peers["B"].state.ratchets


def test_keys_of_the_removed_go_when_all_have_seen_it() -> None:
    world = start("ABX")
    gone = world.peers["X"].id
    world.remove("A", "X")
    state = world.peers["A"].state
    assert gone in state.ratchets
    assert gone in state.channels
    world.settle()
    for name in "AB":
        state = world.peers[name].state
        assert gone not in state.ratchets
        assert gone not in state.channels
        assert gone not in state.peer_inband
        assert gone in state.closed


def test_the_keys_of_the_only_other_member_go_with_its_removal() -> None:
    world = start("AX")
    gone = world.peers["X"].id
    world.remove("A", "X")
    state = world.peers["A"].state
    assert gone not in state.ratchets
    assert gone not in state.channels
    assert gone in state.closed
