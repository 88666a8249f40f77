"""Bytes of operations as their parts add up, and how often public keys are worked with."""

from __future__ import annotations

from collections import Counter

import pytest
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base
from tests.groups.group_world import GroupWorld, Packet, start

from linnet.groups import agreement, primitives
from linnet.groups.bodies import HEAD_BYTES
from linnet.groups.state import GroupConfig

FIRST, TO_SENT, TO_OWN = 157, 149, 153
"""Bytes of a direct message: by prekeys, to the key that was sent along, to the receiver's own."""
ACK = HEAD_BYTES + 2 + 35


def names(count: int) -> list[str]:
    return [f"m{number:03}" for number in range(count)]


def sent_since(world: GroupWorld, start: int) -> list[Packet]:
    return world.transcript[start:]


@pytest.mark.parametrize("size", [2, 8, 32])
def test_bytes_are_what_the_parts_add_up_to(size: int) -> None:
    first, *others = names(size)
    world = GroupWorld([first, *others, "new"])
    world.renews = False
    create = world.create(first, others)
    assert len(create.body) == HEAD_BYTES + 32 + 16 + 2 + 72 * size + FIRST * (size - 1)
    mark = len(world.transcript)
    world.settle()
    assert [len(packet.body) for packet in sent_since(world, mark)] == [ACK] * (size - 1)
    mark = len(world.transcript)
    update = world.update(first)
    world.settle()
    assert len(update.body) == HEAD_BYTES + 32 + 2 + TO_SENT * (size - 1)
    total = sum(len(packet.body) for packet in sent_since(world, mark))
    assert total == 60 + (size - 1) * (TO_SENT + ACK)
    mark = len(world.transcript)
    world.add(first, "new")
    world.settle()
    acks = [len(packet.body) for packet in sent_since(world, mark)[1:]]
    assert sorted(acks) == [ACK] + [ACK + 16 + FIRST] * (size - 1)
    remove = world.remove(first, "new")
    assert len(remove.body) == HEAD_BYTES + 32 + 2 + 16 + 2 + TO_SENT * (size - 1)


@pytest.mark.parametrize(("size", "one_time"), [(2, 16), (8, 16), (32, 32)])
def test_bytes_of_the_prekeys_after_a_seed(size: int, one_time: int) -> None:
    first, *others = names(size)
    world = GroupWorld([first, *others], config=GroupConfig())
    world.create(first, others)
    world.settle()
    world.update(first)
    keys = world.transcript[-1]
    assert len(keys.body) == HEAD_BYTES + 86 + 36 * one_time
    world.publish_keys(first)
    assert world.transcript[-1] is keys  # Once is enough.
    if size == 32:
        update = 60 + (size - 1) * (TO_SENT + ACK)
        assert update + len(keys.body) < 10_022  # The reference, with its acknowledgements.


def test_an_answer_goes_to_the_own_key_of_its_receiver() -> None:
    world = start("AB")
    assert len(world.update("B").body) == 60 + TO_OWN


class Counting:
    """How often keys are made and agreed on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()

        def agree(secret: bytes, public: bytes) -> bytes:
            self.counts["agreed"] += 1
            return crypto_scalarmult(secret, public)

        def make(secret: bytes) -> bytes:
            self.counts["made"] += 1
            return crypto_scalarmult_base(secret)

        monkeypatch.setattr(primitives, "crypto_scalarmult", agree)
        monkeypatch.setattr(primitives, "crypto_scalarmult_base", make)

    def taken(self) -> tuple[int, int]:
        taken = self.counts["made"], self.counts["agreed"]
        self.counts.clear()
        return taken


@pytest.mark.parametrize("size", [2, 8, 32])
def test_public_key_work_is_linear_for_who_acts_and_constant_for_the_others(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = names(size)
    world = GroupWorld([first, *others])
    world.renews = False
    count = Counting(monkeypatch)
    world.create(first, others)
    made, agreed = count.taken()
    # Two keys for the channel and an ephemeral one; the own public key is worked out for each, too.
    assert (made, agreed) == (4 * (size - 1) + 1, 4 * (size - 1))
    world.deliver(first, others[0])
    assert count.taken() == (0, 4)
    world.settle()
    assert count.taken()[1] == 4 * (size - 2)
    world.update(first)
    assert count.taken() == (3 * (size - 1) + 1, size - 1)
    world.deliver(first, others[0])
    assert count.taken() == (1, 1)
    world.settle()
    assert count.taken()[1] == size - 2
    world.say(first, "hello")
    world.settle()
    assert count.taken() == (0, 0)
    assert agreement.pending_by_member(world.peers[first].state) == {}
