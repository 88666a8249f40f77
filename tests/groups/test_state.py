from __future__ import annotations

import msgspec
import pytest
from tests.groups.group_world import GroupWorld, act

from linnet.core.errors import StoreError
from linnet.groups import agreement
from linnet.groups.state import (
    GroupState,
    Hardening,
    decode_parts,
    decode_state,
    encode_parts,
    encode_state,
)

NAMES = "ABCD"


def script(world: GroupWorld) -> None:
    """A bit of everything."""
    world.create("A", "BC")
    world.settle()
    world.say("A", "one")
    act(world, "B! B>C A+D *")
    world.say("D", "two")
    world.say("C", "three")
    world.remove("C", "B")
    world.settle()
    world.say("D", "four")
    world.settle()


def test_a_state_survives_its_bytes_after_every_step() -> None:
    plain, restored = GroupWorld(NAMES, 5), GroupWorld(NAMES, 5)
    restored.restores = True
    script(plain)
    script(restored)
    assert restored.transcript == plain.transcript
    for name, peer in plain.peers.items():
        assert restored.peers[name].read == peer.read
        assert encode_state(restored.peers[name].state) == encode_state(peer.state)


def test_equal_states_are_equal_bytes() -> None:
    world = GroupWorld(NAMES, 5)
    script(world)
    for peer in world.peers.values():
        data = encode_state(peer.state)
        assert decode_state(data) == peer.state
        assert encode_state(decode_state(data)) == data
        assert decode_parts(encode_parts(peer.state)) == peer.state


def test_reading_a_message_changes_one_part() -> None:
    world = GroupWorld("AB")
    world.create("A", "B")
    world.settle()
    before = encode_parts(world.peers["B"].state)
    world.say("A", "hello")
    world.settle()
    after = encode_parts(world.peers["B"].state)
    assert [key for key in after if before.get(key) != after[key]] == [world.peers["A"].id]


def test_nothing_of_a_state_shows() -> None:
    world = GroupWorld(NAMES, 5)
    script(world)
    state = world.peers["A"].state
    assert repr(state) == "GroupState(…)"
    assert repr(world.peers["A"].state.ops) == "{}"
    draft = agreement.draft_update(state, world.means(world.peers["A"]))
    assert repr(draft) == "Draft(…)"


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x81\xc4\x00\xc4\x00", b"\xc1", b"\xff" * 40])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(StoreError):
        decode_state(data)


def test_a_state_of_another_version_is_refused() -> None:
    parts = encode_parts(GroupWorld("A").peers["A"].state)
    core = bytearray(parts[b""])
    assert core[1] == 1
    core[1] = 2
    with pytest.raises(StoreError, match="version 2"):
        decode_parts({b"": bytes(core)})


def test_a_state_from_before_prekeys_were_renewed_is_read() -> None:
    world = GroupWorld(NAMES, 5)
    script(world)
    state = world.peers["A"].state
    version, plain, *rest = msgspec.msgpack.decode(encode_parts(state)[b""])
    place = GroupState.__struct_fields__.index("hardening")
    assert plain[place] == [True] * 4
    plain[place] = plain[place][:3]
    signed = plain[GroupState.__struct_fields__.index("prekeys")][2]
    assert signed
    for key in signed:
        del key[3]
    read = decode_parts({b"": msgspec.msgpack.encode((version, plain, *rest))})
    assert read.hardening == Hardening()
    assert [key.first for key in read.prekeys.signed] == [0] * len(signed)


def test_an_idle_group_of_128_is_small() -> None:
    world = GroupWorld([f"m{number:03}" for number in range(128)])
    first, *others = world.peers
    world.create(first, others)
    watched = world.peers[others[0]]
    for name in others:
        world.deliver(first, name)
        world.acks(name)
    for name in (first, *others):
        if name != watched.name:
            world.deliver(name, watched.name)
    world.deliver(first, watched.name)
    for name in others:
        world.deliver(name, first)
    assert agreement.pending_by_member(world.peers[first].state) == {}
    assert agreement.pending_by_member(watched.state) == {}
    assert len(encode_state(world.peers[first].state)) < 200_000
    assert len(encode_state(watched.state)) < 200_000
