"""Members of rings over restarts: those whose word still holds, and no others."""

from __future__ import annotations

import pytest

from linnet.core.errors import StoreError
from linnet.core.ids import PeerId, TopicId
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.config import DAY
from linnet.overlay.gossip.descriptor import check_descriptor, sign_descriptor
from linnet.overlay.gossip.messages import RingMember
from linnet.overlay.gossip.ring import MEMBERS, SPACE, SavedRings
from linnet.overlay.gossip.topic_tags import epoch_of, proof, topic_keys
from linnet.store.memory import MemoryStore

NOW = 1_800_000_000.0
EPOCH = epoch_of(NOW)
KEYS, OTHER = topic_keys(TopicId(bytes([1]) * 32)), topic_keys(TopicId(bytes([2]) * 32))
DEVICES = [SigningKey(bytes([number]) * 32) for number in range(1, 12)]


def member(key: SigningKey, life: float = DAY) -> RingMember:
    node = sign_descriptor(key, int(NOW * 1000), EPOCH, b"", 3000, 1, ("tls://h:1",), int(NOW + life))
    return RingMember(node, EPOCH, proof(KEYS, PeerId(key.public), EPOCH))


def test_those_beside_us_are_known_after_a_restart_until_their_word_ends() -> None:
    cells = MemoryStore().cells
    short, *others = (member(key, 60.0 if at == 0 else DAY) for at, key in enumerate(DEVICES))
    SavedRings(cells, check_descriptor).save_members(KEYS.topic, [short, *others])
    again = SavedRings(cells, check_descriptor)
    assert again.load_members(KEYS, EPOCH, NOW) == [short, *others][:MEMBERS]
    assert again.load_members(KEYS, EPOCH, NOW + 61.0) == others[: MEMBERS - 1]
    assert again.load_members(KEYS, EPOCH + 2, NOW) == []
    assert again.load_members(OTHER, EPOCH, NOW) == []


def test_what_is_written_under_another_key_than_the_topic_s_is_not_believed() -> None:
    cells = MemoryStore().cells
    SavedRings(cells, check_descriptor).save_members(OTHER.topic, [member(DEVICES[0])])
    assert SavedRings(cells, check_descriptor).load_members(OTHER, EPOCH, NOW) == []


def test_a_ring_that_is_empty_for_a_while_leaves_what_was_known_and_a_topic_that_is_left_does_not() -> None:
    cells = MemoryStore().cells
    memory = SavedRings(cells, check_descriptor)
    memory.save_members(KEYS.topic, [member(DEVICES[0])])
    memory.save_members(KEYS.topic, [])
    assert memory.load_members(KEYS, EPOCH, NOW) == [member(DEVICES[0])]
    memory.forget_topic(KEYS.topic)
    assert memory.load_members(KEYS, EPOCH, NOW) == []


def test_a_damaged_record_is_named() -> None:
    cells = MemoryStore().cells
    cells.put(SPACE, KEYS.topic, b"\x00")
    with pytest.raises(StoreError, match="members of a ring"):
        SavedRings(cells, check_descriptor).load_members(KEYS, EPOCH, NOW)
