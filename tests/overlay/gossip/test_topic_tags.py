"""Tags: known only to those who know the topic, changing with the epoch, differing per link."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip import topic_tags

TOPIC = TopicId(hashlib.sha256(b"a topic").digest())
SECRET = hashlib.sha256(b"its secret").digest()
ONE, TWO, THREE = (PeerId(hashlib.sha256(bytes([n])).digest()) for n in range(3))

ids = st.binary(min_size=32, max_size=32)


def test_keys_are_hkdf_sha256() -> None:
    keys = topic_tags.topic_keys(TOPIC, SECRET)
    assert keys.tag == HKDF(SHA256(), 32, TOPIC, b"linnet/overlay/tag/1").derive(SECRET)
    assert keys.ring == HKDF(SHA256(), 32, TOPIC, b"linnet/overlay/ring/1").derive(SECRET)
    info = b"linnet/overlay/epoch/1" + (7).to_bytes(8, "big")
    assert topic_tags.tag_in(keys, 7) == HKDF(SHA256(), 32, None, info).derive(keys.tag)


def test_a_public_topic_has_its_id_as_secret_and_a_private_one_cannot_be_derived_from_it() -> None:
    public = topic_tags.topic_keys(TOPIC)
    assert public == topic_tags.topic_keys(TOPIC, TOPIC)
    private = topic_tags.topic_keys(TOPIC, SECRET)
    assert len({public.tag, public.ring, private.tag, private.ring, TOPIC, SECRET}) == 6


@given(ids, ids, st.integers(0, 2**40), st.integers(0, 2**40))
def test_tags_differ_by_topic_secret_and_epoch(topic: bytes, secret: bytes, one: int, other: int) -> None:
    keys = topic_tags.topic_keys(TopicId(topic), secret)
    assert (topic_tags.tag_in(keys, one) == topic_tags.tag_in(keys, other)) == (one == other)
    assert (
        topic_tags.tag_in(topic_tags.topic_keys(TOPIC, secret), one) != topic_tags.tag_in(keys, one)
        or topic == TOPIC
    )


def test_no_derived_value_contains_the_topic_or_a_key() -> None:
    keys = topic_tags.topic_keys(TOPIC, SECRET)
    seen = topic_tags.tag_in(keys, 1) + topic_tags.hint(keys, ONE, TWO) + topic_tags.proof(keys, ONE, 1)
    for secret in (TOPIC, SECRET, keys.tag, keys.ring):
        assert not any(secret[at : at + 4] in seen for at in range(29))


def test_epochs_begin_at_the_same_time_everywhere() -> None:
    week = 7 * 86_400
    assert [topic_tags.epoch_of(now) for now in (0.0, week - 0.001, week, 2.5 * week)] == [0, 0, 1, 2]
    assert topic_tags.epoch_of(86_400.0 * 3, days=1) == 3


def test_a_hint_is_symmetric_and_differs_per_link_and_topic() -> None:
    keys, others = topic_tags.topic_keys(TOPIC, SECRET), topic_tags.topic_keys(TOPIC)
    assert topic_tags.hint(keys, ONE, TWO) == topic_tags.hint(keys, TWO, ONE)
    hints = {
        topic_tags.hint(k, *pair) for k in (keys, others) for pair in ((ONE, TWO), (ONE, THREE), (TWO, THREE))
    }
    assert len(hints) == 6
    assert {len(hint) for hint in hints} == {topic_tags.HINT_BYTES}


def test_a_proof_holds_for_one_peer_epoch_and_topic() -> None:
    keys, others = topic_tags.topic_keys(TOPIC, SECRET), topic_tags.topic_keys(TOPIC)
    word = topic_tags.proof(keys, ONE, 5)
    assert len(word) == topic_tags.PROOF_BYTES
    assert topic_tags.is_proof(keys, ONE, 5, word)
    assert not topic_tags.is_proof(keys, TWO, 5, word)
    assert not topic_tags.is_proof(keys, ONE, 6, word)
    assert not topic_tags.is_proof(others, ONE, 5, word)
    assert not topic_tags.is_proof(keys, ONE, 5, word[:8])


def test_keys_do_not_show_themselves() -> None:
    keys = topic_tags.topic_keys(TOPIC, SECRET)
    assert repr(keys) == str([keys])[1:-1] == "TopicKeys(…)"


@pytest.mark.parametrize(("topic", "secret"), [(b"short", SECRET), (TOPIC, b"short"), (TOPIC, b"")])
def test_short_secrets_are_refused(topic: bytes, secret: bytes) -> None:
    with pytest.raises(Refused):
        topic_tags.topic_keys(TopicId(topic), secret)
