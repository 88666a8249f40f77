from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.groups.group_world import GroupWorld, Packet, start

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.additions import open_blob, seal_blob
from linnet.groups.bodies import BLOB_BYTES, Add, Head, decode_body, encode_body
from linnet.groups.labels import MemberId
from linnet.groups.state import GroupState, encode_state
from linnet.groups.work import Work

KEY = b"k" * 32


def welcomed() -> tuple[GroupWorld, Packet, Add]:
    world = start("ABC", "D")
    world.update("C")  # Under way while D is added: the welcome tells that it is not acknowledged by all.
    world.deliver("C", "A")
    world.acks("A")
    packet = world.add("A", "D")
    body = decode_body(packet.body)
    assert isinstance(body, Add)
    return world, packet, body


def join(world: GroupWorld, packet: Packet, body: Add) -> GroupState:
    peer = world.peers["D"]
    return agreement.receive(peer.state, packet.device, packet.id, encode_body(body), world.now).state


def test_a_newcomer_knows_what_its_adder_knew() -> None:
    world, packet, body = welcomed()
    state, adder = join(world, packet, body), world.peers["A"].state
    assert state.history == adder.history
    assert state.cover == adder.cover
    assert state.clock == adder.clock
    assert state.peer_inband == adder.peer_inband
    assert {op: set(known.awaiting) for op, known in state.ops.items()} == {
        op: set(known.awaiting) for op, known in adder.ops.items()
    }


def test_a_welcome_holds_no_secret_of_before() -> None:
    world, packet, body = welcomed()
    state = join(world, packet, body)
    assert state.chains.keys() == {world.peers["A"].id}
    assert not any(share for op in state.ops.values() for share in op.awaiting.values())


def test_no_bit_of_a_welcome_can_be_another() -> None:
    world, packet, body = welcomed()
    before = encode_state(world.peers["D"].state)
    spoilt = [replace(body, blob=_flip(body.blob, place)) for place in range(0, len(body.blob), 41)]
    spoilt += [replace(body, welcome=_flip(body.welcome, place)) for place in range(1, len(body.welcome), 5)]
    spoilt += [replace(body, by=world.peers["B"].state.prekeys.identity.public)]
    spoilt += [replace(body, head=replace(body.head, cseq=body.head.cseq + 1))]
    spoilt += [replace(body, nonce=_flip(body.nonce, 3)), replace(body, blob=b"")]
    for wrong in spoilt:
        with pytest.raises(RemoteError):
            join(world, packet, wrong)
        assert encode_state(world.peers["D"].state) == before
    join(world, packet, body)


def test_a_welcome_at_128_fits() -> None:
    names = [f"m{number:03}" for number in range(129)]
    world = GroupWorld(names)
    world.create(names[0], names[1:-1])
    body = decode_body(world.add(names[0], names[-1]).body)
    assert isinstance(body, Add)
    assert len(body.blob) < 20_000 < BLOB_BYTES


def test_a_welcome_of_one_member_is_not_anothers() -> None:
    world, packet, body = welcomed()
    stolen = Packet(packet.id, "B", world.peers["B"].device, packet.body)
    with pytest.raises(RemoteError) as caught:
        join(world, stolen, body)
    assert caught.value.reason is Reason.MALFORMED


def test_a_welcome_opens_in_its_own_group_only() -> None:
    world, packet, body = welcomed()
    peer = world.peers["D"]
    peer.state = replace(peer.state, group=b"another group".ljust(32))
    with pytest.raises(RemoteError):
        join(world, packet, body)


def test_what_a_welcome_tells_opens_for_its_own_group_adder_newcomer_and_number_only() -> None:
    """The blob by itself: whatever else names these, it is bound to each of them."""
    world, _, _ = welcomed()
    work = Work(world.peers["A"].state)
    adder, newcomer, number = work.self, world.peers["B"].id, work.cseq
    blob = seal_blob(work, KEY, newcomer)

    def opened(group: bytes, told_by: MemberId, me: MemberId, cseq: int) -> None:
        guest = Work(replace(world.peers["D"].state, group=group))
        guest.me = me
        open_blob(guest, KEY, Head(told_by, cseq, 0), blob, world.now)

    opened(work.group, adder, newcomer, number)
    other = world.peers["C"].id
    for wrong in (
        (b"another group".ljust(32), adder, newcomer, number),
        (work.group, other, newcomer, number),
        (work.group, adder, other, number),
        (work.group, adder, newcomer, number + 1),
    ):
        with pytest.raises(RemoteError) as caught:
            opened(*wrong)
        assert caught.value.reason is Reason.UNDECRYPTABLE


def _flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :]


def test_what_an_adder_makes_up_is_refused() -> None:
    """Also who holds the key of a blob cannot tell what makes no sense."""
    world, _, _ = welcomed()
    work = Work(world.peers["A"].state)
    newcomer = world.peers["B"].id
    good = Work(world.peers["D"].state)
    good.me = newcomer
    open_blob(good, KEY, Head(work.self, work.cseq, 0), seal_blob(work, KEY, newcomer), world.now)
    work.peer_inband[world.peers["C"].id] = (99, b"\x09" * 32)
    blank = Work(world.peers["D"].state)
    blank.me = newcomer
    with pytest.raises(RemoteError):
        open_blob(blank, KEY, Head(work.self, work.cseq, 0), seal_blob(work, KEY, newcomer), world.now)
