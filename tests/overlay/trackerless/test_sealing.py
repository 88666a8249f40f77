"""Sealed answers: for the seeker who knows the topic, and for nobody else."""

from __future__ import annotations

from random import Random

import pytest

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.messages import SEALED_BYTES
from linnet.overlay.trackerless.sealing import ROOM, SEALED, open_answer, reply_key, seal_answer

RING, REQUEST = bytes([1]) * 32, bytes([2]) * 16


def test_the_seeker_opens_what_was_sealed_to_it_under_the_ring_s_key() -> None:
    luck = Random(1).randbytes
    key = reply_key(luck)
    for answer in (b"", b"x", bytes(range(250)), bytes(ROOM)):
        sealed = seal_answer(key.public, RING, REQUEST, answer, luck)
        assert len(sealed) == SEALED <= SEALED_BYTES
        assert open_answer(key, RING, REQUEST, sealed) == answer


def test_neither_another_key_nor_another_ring_nor_another_request_opens_it() -> None:
    """A relay has no key of the search; a seeker of other topics has no key of the ring."""
    luck = Random(1).randbytes
    key, relay = reply_key(luck), reply_key(luck)
    sealed = seal_answer(key.public, RING, REQUEST, b"a member", luck)
    assert open_answer(relay, RING, REQUEST, sealed) is None
    assert open_answer(relay._replace(public=key.public), RING, REQUEST, sealed) is None
    assert open_answer(key, bytes(32), REQUEST, sealed) is None
    assert open_answer(key, RING, bytes(16), sealed) is None
    for at in (0, 40, SEALED - 1):
        broken = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        assert open_answer(key, RING, REQUEST, broken) is None
    assert open_answer(key, RING, REQUEST, sealed[:-1]) is None
    assert open_answer(key, RING, REQUEST, bytes(SEALED)) is None


def test_two_sealed_answers_have_nothing_in_common() -> None:
    luck = Random(1).randbytes
    key = reply_key(luck)
    one, other = (seal_answer(key.public, RING, REQUEST, b"the same", luck) for _ in range(2))
    assert sum(a == b for a, b in zip(one, other, strict=True)) < 20


def test_what_does_not_fit_is_refused_and_a_key_that_is_none_is_named() -> None:
    luck = Random(1).randbytes
    with pytest.raises(Refused) as refused:
        seal_answer(reply_key(luck).public, RING, REQUEST, bytes(ROOM + 1), luck)
    assert refused.value.reason is Reason.TOO_LARGE
    with pytest.raises(MalformedMessage):
        seal_answer(bytes(32), RING, REQUEST, b"", luck)


def test_the_secret_half_of_a_key_does_not_show() -> None:
    key = reply_key(Random(1).randbytes)
    assert key.secret.hex() not in repr(key)
    assert repr(key.secret) not in repr(key)
