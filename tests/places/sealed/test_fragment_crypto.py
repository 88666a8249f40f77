"""Sealed fragments: they open as they were said, and not where anything about them is another."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from tests.raised import reason_of

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event, Spot, Tail
from linnet.event.signing import sign_unit
from linnet.places.multicast.fragmentation import FRAGMENT, SEALED_BYTES, Flag, Head, encode_head
from linnet.places.sealed.epoch_keys import EpochKey, open_piece, read_prefix, seal_piece
from linnet.testing.identities import known_identity

HOST = known_identity("host")
PLACE = TopicId(b"p" * 32)
KEY = EpochKey(b"epoch--1", 3, 1, b"k" * 32)
HEAD = Head(2, 7, 4, 0, 1, Flag.FIRST | Flag.LAST | Flag.SEALED)
SPOT = Spot(PLACE, HOST.author, HOST.card.device, 7, EventId(b"e" * 32))


def tail(body: bytes, head: Head = HEAD) -> Tail:
    return Tail(None, None, None, None, FRAGMENT, None, 5, encode_head(head), body)


def event(made: Tail, spot: Spot = SPOT) -> Event:
    unit = sign_unit(HOST.device, Spot(spot.topic, spot.author, spot.device, spot.seq, spot.prev), (made,))
    return unit.events[0]


def sealed(body: bytes = b"psst", seed: int = 1) -> Tail:
    return seal_piece(tail(body), SPOT, KEY, random.Random(seed).randbytes)


@pytest.mark.parametrize("body", [b"", b"x", b"psst" * 10_000])
def test_it_opens_as_it_was_said(body: bytes) -> None:
    made = sealed(body)
    assert len(made.body) == len(body) + SEALED_BYTES, "what heads and rows count with"
    prefix = read_prefix(made.body)
    assert (prefix.epoch, prefix.step) == (KEY.epoch, KEY.step)
    assert open_piece(event(made), prefix, KEY) == body
    assert body == b"" or body not in made.body


@pytest.mark.parametrize(
    "head",
    [
        replace(HEAD, term=3),
        replace(HEAD, fragment=8),
        replace(HEAD, message=5),
        replace(HEAD, generation=2),
        replace(HEAD, offset=1),
        replace(HEAD, flags=HEAD.flags & ~Flag.LAST),
    ],
)
def test_another_head_is_another_piece(head: Head) -> None:
    made = replace(sealed(), clear=encode_head(head))
    assert (
        reason_of(RemoteError, open_piece, event(made), read_prefix(made.body), KEY) is Reason.UNDECRYPTABLE
    )


@pytest.mark.parametrize(
    "spot",
    [
        replace(SPOT, topic=TopicId(b"q" * 32)),
        replace(SPOT, seq=8),
        replace(SPOT, prev=EventId(b"f" * 32)),
        replace(SPOT, prev=None),
    ],
)
def test_another_place_in_the_chain_is_another_piece(spot: Spot) -> None:
    made = sealed()
    assert (
        reason_of(RemoteError, open_piece, event(made, spot), read_prefix(made.body), KEY)
        is Reason.UNDECRYPTABLE
    )


@pytest.mark.parametrize("at", [*range(12, 24), -1])
def test_a_flipped_bit_is_named(at: int) -> None:
    made = sealed()
    body = bytearray(made.body)
    body[at] ^= 1
    assert (
        reason_of(
            RemoteError, open_piece, event(replace(made, body=bytes(body))), read_prefix(bytes(body)), KEY
        )
        is Reason.UNDECRYPTABLE
    )


def test_the_same_words_at_the_same_number_never_meet_the_same_key() -> None:
    once, again = sealed(seed=1), sealed(seed=2)
    assert once.body[20:] != again.body[20:], "an old state that was restored"


def test_what_is_too_short_is_no_sealed_piece() -> None:
    with pytest.raises(MalformedMessage):
        read_prefix(bytes(SEALED_BYTES - 1))
