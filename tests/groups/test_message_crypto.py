from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.groups.group_world import GroupWorld

from linnet.core.errors import Refused, RemoteError
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.groups import message_crypto
from linnet.groups.message_crypto import CLEAR_BYTES, PLAINTEXT_BYTES, open_message, pad, unpad
from linnet.groups.primitives import TAG_BYTES
from linnet.groups.state import encode_state

BOUND = b"bound"


def talking(names: str = "AB") -> GroupWorld:
    world = GroupWorld(names)
    world.create("A", names[1:])
    world.settle()
    return world


@pytest.mark.parametrize(
    ("length", "padded"),
    [
        (0, 64),
        (63, 64),
        (64, 128),
        (1023, 1024),
        (1024, 2048),
        (4095, 4096),
        (4096, 8192),
        (12_287, 12_288),
        (PLAINTEXT_BYTES, BODY_BYTES - 16),
    ],
)
def test_lengths_tell_little(length: int, padded: int) -> None:
    assert len(pad(bytes(length))) == padded


@given(st.binary(max_size=200) | st.integers(0, 300).map(bytes))
def test_padding_comes_off(text: bytes) -> None:
    assert unpad(pad(text)) == text


@pytest.mark.parametrize(
    "wrong", [b"", bytes(64), b"x" * 64, b"x\x80", b"x\x80" + bytes(126), pad(b"x")[:-1] + b"\x01"]
)
def test_what_was_not_padded_does_not_open(wrong: bytes) -> None:
    with pytest.raises(RemoteError) as caught:
        unpad(wrong)
    assert caught.value.reason is Reason.UNDECRYPTABLE


def test_the_longest_message_fits_an_event() -> None:
    world = talking()
    peer = world.peers["A"]
    for length, fits in ((PLAINTEXT_BYTES, True), (PLAINTEXT_BYTES + 1, False)):
        _, envelope = message_crypto.envelope(peer.state, peer.entropy)
        if fits:
            assert len(envelope.seal(bytes(length), BOUND)) == BODY_BYTES
        else:
            with pytest.raises(Refused, match=Reason.TOO_LARGE):
                envelope.seal(bytes(length), BOUND)


def test_overhead_does_not_depend_on_the_group() -> None:
    for names in ("AB", "ABCDEFGH"):
        packet = talking(names).say("A", "x" * 32)
        assert (len(packet.clear), len(packet.body)) == (CLEAR_BYTES, 64 + 16)
    assert CLEAR_BYTES == 29


def test_an_envelope_holds_one_message() -> None:
    peer = talking().peers["A"]
    _, envelope = message_crypto.envelope(peer.state, peer.entropy)
    envelope.seal(b"one", BOUND)
    with pytest.raises(Refused, match=Reason.KEY_SPENT):
        envelope.seal(b"two", BOUND)
    assert envelope.key.hex() not in repr(envelope)


def test_a_guard_makes_the_nonce_another_where_a_state_is_used_again() -> None:
    peer = talking().peers["A"]
    ones = [message_crypto.envelope(peer.state, peer.entropy)[1] for _ in range(2)]
    assert ones[0].key == ones[1].key
    # Without their tags, which the guard changes in any case: under one nonce these would be equal.
    first, second = (one.seal(b"same", BOUND)[:-TAG_BYTES] for one in ones)
    assert first != second


def test_a_failed_opening_leaves_the_state_as_it_was() -> None:
    world = talking("ABC")
    packet = world.say("A", "hello")
    peer, other = world.peers["B"], world.peers["C"].device
    before = encode_state(peer.state)
    good = (packet.device, packet.clear, BOUND, packet.body)
    wrong = [
        (other, packet.clear, BOUND, packet.body),
        (packet.device, packet.clear[:-1], BOUND, packet.body),
        (packet.device, b"\x02" + packet.clear[1:], BOUND, packet.body),
        (packet.device, packet.clear, b"else", packet.body),
        (packet.device, packet.clear, BOUND, packet.body[:-1]),
        (packet.device, packet.clear, BOUND, b""),
    ]
    for place in range(1, len(packet.clear)):
        changed = bytearray(packet.clear)
        changed[place] ^= 1
        wrong.append((packet.device, bytes(changed), BOUND, packet.body))
    for place in range(0, len(packet.body), 7):
        body = bytearray(packet.body)
        body[place] ^= 0x40
        wrong.append((packet.device, packet.clear, BOUND, bytes(body)))
    for spoilt in wrong:
        with pytest.raises(RemoteError):
            open_message(peer.state, *spoilt)
        assert encode_state(peer.state) == before
    state, opened = open_message(peer.state, *good)
    assert opened.plaintext == b"hello"
    with pytest.raises(RemoteError) as caught:
        open_message(state, *good)
    assert caught.value.reason is Reason.KEY_SPENT


def test_why_a_message_does_not_open() -> None:
    world = talking("AB")
    world.say("A", "before")
    world.update("A")
    ahead = world.say("A", "ahead of its operation")
    peer = world.peers["B"]

    def reason(clear: bytes) -> Reason:
        with pytest.raises(RemoteError) as caught:
            open_message(peer.state, ahead.device, clear, BOUND, ahead.body)
        return caught.value.reason

    assert reason(ahead.clear) is Reason.KEY_MISSING
    stranger = ahead.clear[:1] + b"s" * 16 + ahead.clear[17:]
    assert reason(stranger) is Reason.UNKNOWN_MEMBER
    world.settle()
    assert "ahead of its operation" in peer.read.values()


def test_our_own_message_is_not_kept_for_us() -> None:
    world = talking()
    packet = world.say("A", "mine")
    with pytest.raises(RemoteError) as caught:
        open_message(world.peers["A"].state, packet.device, packet.clear, BOUND, packet.body)
    assert caught.value.reason is Reason.KEY_SPENT


def test_nobody_sends_too_early() -> None:
    world = GroupWorld("ABC")
    outside = world.peers["C"]
    with pytest.raises(Refused, match=Reason.UNKNOWN_MEMBER):
        message_crypto.envelope(outside.state, outside.entropy)
    world.create("A", "B")
    world.deliver("A", "B")
    with pytest.raises(Refused, match=Reason.ACKS_OWED):
        world.say("B", "too early")
    world.acks("B")
    world.say("B", "now")
