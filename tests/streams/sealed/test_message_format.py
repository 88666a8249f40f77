"""Messages of a sealed stream: bound to their place, padded, and opened in any order."""

from __future__ import annotations

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.delivery.voices import TOPIC, Voice

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event, Spot
from linnet.event.signing import message_tail
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.sealed.message_format import LONGEST, is_sealed, open_event, read_clear, seal_tails
from linnet.streams.sealed.stream_keys import EpochKey

ENTROPY = SeededEntropy(1, "envelope")


def epoch_of(voice: Voice, number: int = 4) -> EpochKey:
    return EpochKey(voice.identity.card.device, number, b"e" * 32, 0.0)


def sealed(voice: Voice, *bodies: bytes) -> tuple[Event, ...]:
    """A burst of the voice's chain, signed."""
    identity = voice.identity
    chain = Spot(TOPIC, identity.author, identity.card.device, voice.next, voice.prev)
    tails = [message_tail(body, 1000) for body in bodies]
    return voice.sign(seal_tails(tails, chain, epoch_of(voice), 9, ENTROPY)).events


def opened(event: Event, voice: Voice) -> bytes:
    return open_event(event, read_clear(event.tail.clear or b""), epoch_of(voice)).body


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.randoms())
def test_whatever_the_order_each_opens_by_itself(bodies: list[bytes], chance: object) -> None:
    voice = Voice()
    events = list(sealed(voice, *bodies))
    pairs = list(zip(events, bodies, strict=True))
    chance.shuffle(pairs)  # type: ignore[attr-defined]
    assert all(opened(event, voice) == body for event, body in pairs)


def test_what_carriers_see() -> None:
    voice = Voice()
    (event,) = sealed(voice, b"rain")
    assert is_sealed(event)
    clear = read_clear(event.tail.clear or b"")
    assert (clear.epoch, clear.announced) == (4, 9)
    assert b"rain" not in event.body
    assert not is_sealed(voice.say(b"rain").events[0])
    assert not is_sealed(replace(event, tail=replace(event.tail, kind="group")))


def test_lengths_tell_little() -> None:
    voice = Voice()
    assert {len(event.body) for event in sealed(voice, b"", b"a", b"b" * 63)} == {64 + 16}
    with pytest.raises(Refused):
        sealed(voice, b"x" * (LONGEST + 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda event: replace(event, topic=TopicId(b"u" * 32)),
        lambda event: replace(event, author=AuthorId(b"b" * 32)),
        lambda event: replace(event, device=DeviceId(b"e" * 8)),
        lambda event: replace(event, seq=event.seq + 1),
        lambda event: replace(event, prev=None),
        lambda event: replace(event, tail=replace(event.tail, time=1001)),
        lambda event: replace(event, tail=replace(event.tail, kind="picture")),
        lambda event: replace(event, tail=replace(event.tail, body=event.body[:-1] + b"\x00")),
        lambda event: replace(event, tail=replace(event.tail, clear=event.tail.clear[:-1] + b"\x00")),
    ],
)
def test_nothing_can_be_moved_or_changed(change: object) -> None:
    voice = Voice()
    voice.say(b"before")
    (event,) = sealed(voice, b"rain")
    assert opened(event, voice) == b"rain"
    with pytest.raises(RemoteError) as error:
        opened(change(event), voice)  # type: ignore[operator]
    assert error.value.reason is Reason.UNDECRYPTABLE


def test_the_key_of_another_epoch_or_chain_opens_nothing() -> None:
    voice = Voice()
    (event,) = sealed(voice, b"rain")
    clear = read_clear(event.tail.clear or b"")
    for other in (epoch_of(voice, 5), EpochKey(DeviceId(b"e" * 8), 4, b"e" * 32, 0.0)):
        with pytest.raises(RemoteError):
            open_event(event, clear, other)


def test_a_number_that_is_used_again_meets_another_key() -> None:
    """Should a state be restored: the same place and words, and yet nothing in common."""
    first, second = (sealed(Voice(), b"rain")[0].body for _ in range(2))
    assert sum(one == other for one, other in zip(first, second, strict=True)) < 16


@pytest.mark.parametrize("clear", [b"", b"\x01" * 16, b"\x01" * 18, b"\x02" + bytes(16)])
def test_what_is_no_clear_part_is_refused(clear: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_clear(clear)


def test_the_bytes_of_a_message_stay_as_they_are() -> None:
    """Known answer: other versions must open it."""
    chain = Spot(TOPIC, AuthorId(b"a" * 32), DeviceId(b"d" * 8), 5, None)
    key = EpochKey(DeviceId(b"d" * 8), 2, bytes(range(32)), 0.0)
    (tail,) = seal_tails([message_tail(b"rain", 1000)], chain, key, 3, lambda count: b"\x07" * count)
    assert (tail.clear or b"").hex() == "0100000002000000000000000307070707"
    assert tail.body.hex() == KNOWN
    place = (b"linnet/sealed-stream/1/message", TOPIC, b"a" * 32, b"d" * 8, b"\0\0\0\2", bytes(7) + b"\5")
    info = b"".join(len(part).to_bytes(4, "big") + part for part in (*place, b"\x07" * 4))
    made = HKDF(SHA256(), 44, b"", info).derive(bytes(range(32)))
    bound = b"linnet/sealed/1" + msgspec.msgpack.encode(
        (TOPIC, b"a" * 32, b"d" * 8, 5, None, replace(tail, body=b""))
    )
    plain = ChaCha20Poly1305(made[:32]).decrypt(made[32:], tail.body, bound)
    assert plain == b"rain\x80" + bytes(59)


KNOWN = (
    "3613bc46420412a6adfbc00f86a6258b0661a5d0b0f47f56c0aa5a4e1acaac460797836ca96e0f2abfb18efe"
    "1923984e2faa8b8f6615a17b136737bf56d413072199657086f8b557d6239eb1af0bf2f8"
)
