"""Attachments: files cut into pieces and put together again, and whatever a stranger may claim of one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.limits import BODY_BYTES, KIB
from linnet.core.reasons import Reason
from linnet.rooms.attachments import (
    DIGESTS,
    LEAST_CHUNK_BYTES,
    LEVELS,
    Attachment,
    Joining,
    Piece,
    attachment_of,
    join,
    piece_of,
    split,
)
from linnet.rooms.content import body_of
from linnet.rooms.messages import CHUNK_BYTES


def taken_apart(data: bytes, chunk_bytes: int = KIB) -> tuple[Attachment, dict[bytes, bytes]]:
    *pieces, attachment = split([data], "file.bin", chunk_bytes=chunk_bytes)
    assert isinstance(attachment, Attachment)
    return attachment, {piece.digest: piece.data for piece in pieces if isinstance(piece, Piece)}


def numbers(size: int) -> bytes:
    """Bytes of which no two pieces are alike."""
    return b"".join(number.to_bytes(8, "big") for number in range(-(-size // 8)))[:size]


@pytest.mark.parametrize("size", [0, 1, KIB - 1, KIB, KIB + 1, 5 * KIB])
def test_a_file_comes_back_as_it_went(size: int) -> None:
    data = numbers(size)
    attachment, pieces = taken_apart(data)
    assert (attachment.size, attachment.levels) == (size, 0)
    assert attachment.sha256 == hashlib.sha256(data).digest()
    assert len(attachment.digests) == len(pieces) == -(-size // KIB)
    assert b"".join(join(attachment, pieces)) == data
    assert attachment_of(body_of(attachment)) == attachment


def test_the_defaults_are_those_of_the_wire() -> None:
    *pieces, attachment = split([bytes(CHUNK_BYTES), b"x"], "a/b", "text/plain")
    assert [len(piece.data) for piece in pieces if isinstance(piece, Piece)] == [CHUNK_BYTES, 1]
    assert isinstance(attachment, Attachment)
    assert (attachment.chunk_bytes, attachment.media, attachment.name) == (CHUNK_BYTES, "text/plain", "a_b")


@pytest.mark.parametrize(
    ("pieces", "levels", "named"),
    [(DIGESTS, 0, DIGESTS), (DIGESTS + 1, 1, 33), (32 * DIGESTS, 1, DIGESTS), (32 * DIGESTS + 1, 2, 33)],
)
def test_more_pieces_than_an_event_names_are_named_by_lists(pieces: int, levels: int, named: int) -> None:
    data = numbers(pieces * KIB)
    attachment, kept = taken_apart(data)
    assert (attachment.levels, len(attachment.digests)) == (levels, named)
    assert len(body_of(attachment)) < BODY_BYTES
    assert attachment_of(body_of(attachment)) == attachment
    whole = hashlib.sha256()
    for part in join(attachment, kept):
        whole.update(part)
    assert whole.digest() == hashlib.sha256(data).digest()


def test_a_file_is_never_held_whole() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(700)

    pieces = split(endless(), "zeros", chunk_bytes=KIB, most=10 * KIB)
    assert sum(1 for _, _ in zip(range(10), pieces, strict=False)) == 10
    with pytest.raises(Refused) as error:
        next(pieces)
    assert error.value.reason is Reason.TOO_LARGE


def test_the_largest_file_passes_and_one_byte_more_does_not() -> None:
    *_, attachment = split([bytes(4 * KIB)], "a", chunk_bytes=KIB, most=4 * KIB)
    assert isinstance(attachment, Attachment)
    assert attachment_of(body_of(attachment), most=4 * KIB) == attachment
    with pytest.raises(InvalidEvent) as invalid:
        attachment_of(body_of(attachment), most=4 * KIB - 1)
    assert invalid.value.reason is Reason.TOO_LARGE
    with pytest.raises(Refused):
        list(split([bytes(4 * KIB + 1)], "a", chunk_bytes=KIB, most=4 * KIB))


GOOD, KEPT = taken_apart(numbers(3 * KIB))


@pytest.mark.parametrize(
    "claim",
    [
        {"digests": GOOD.digests[:2]},
        {"digests": (*GOOD.digests, GOOD.digests[0])},
        {"levels": 1},
        {"levels": LEVELS + 1},
        {"size": 4 * KIB},
        {"chunk_bytes": LEAST_CHUNK_BYTES - 1},
        {"chunk_bytes": CHUNK_BYTES + 1},
        {"name": "x" * 256},
        {"media": "text/plain\n"},
        {"media": "text"},
        {"sha256": b"short"},
        {"digests": (b"short", *GOOD.digests[1:])},
    ],
    ids=lambda claim: f"{next(iter(claim))}",
)
def test_a_claim_that_cannot_be_is_malformed(claim: dict[str, object]) -> None:
    with pytest.raises(InvalidEvent) as error:
        attachment_of(body_of(replace(GOOD, **claim)))
    assert error.value.reason is Reason.MALFORMED


@given(st.binary(max_size=200))
def test_any_bytes_are_an_attachment_or_malformed(body: bytes) -> None:
    with pytest.raises(InvalidEvent):
        attachment_of(body)


def test_a_name_is_made_safe_where_it_is_used() -> None:
    assert replace(GOOD, name="../.ssh/key").file_name == "_.ssh_key"


def test_a_wrong_or_missing_piece_is_told() -> None:
    joining = Joining(GOOD)
    (first,) = joining.wanted(1)
    with pytest.raises(RemoteError) as error:
        joining.give(first, b"other")
    assert error.value.reason is Reason.MALFORMED
    with pytest.raises(RemoteError) as error:
        list(join(GOOD, {}))
    assert error.value.reason is Reason.NOT_HELD


def test_a_file_whose_whole_is_another_is_told() -> None:
    with pytest.raises(RemoteError, match="whole"):
        list(join(replace(GOOD, sha256=bytes(32)), KEPT))


def test_pieces_of_another_size_than_promised_are_told() -> None:
    small = piece_of(bytes(KIB - 1))
    wrong = replace(GOOD, digests=(small.digest, *GOOD.digests[1:]))
    with pytest.raises(RemoteError, match="1023 bytes where 1024"):
        list(join(wrong, {**KEPT, small.digest: small.data}))
    empty = piece_of(b"")
    with pytest.raises(RemoteError, match="0 bytes where 0"):
        list(join(replace(GOOD, digests=(*GOOD.digests, empty.digest)), {**KEPT, empty.digest: b""}))
    with pytest.raises(RemoteError, match="end after 2048 of 3072"):
        list(join(replace(GOOD, digests=GOOD.digests[:2]), KEPT))


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(KIB + 32)], ids=["empty", "crooked", "long"])
def test_a_list_that_is_none_is_told(data: bytes) -> None:
    lists = piece_of(data)
    wrong = replace(GOOD, levels=1, digests=(lists.digest,))
    with pytest.raises(RemoteError, match="a list of"):
        list(join(wrong, {lists.digest: data}))


def test_a_list_that_leads_to_more_than_the_size_ends_there() -> None:
    piece = piece_of(bytes(KIB))
    lists = piece_of(piece.digest * 32)
    bomb = replace(GOOD, levels=1, digests=(lists.digest,) * DIGESTS)
    joining = Joining(bomb)
    joining.wanted(1)
    joining.give(lists.digest, lists.data)
    joining.wanted(1)
    with pytest.raises(RemoteError, match="1024 bytes where 0"):
        joining.give(piece.digest, piece.data)
    assert joining.done == GOOD.size


def test_pieces_ahead_are_wanted_and_what_is_not_wanted_is_not_held() -> None:
    joining = Joining(GOOD)
    first, second, third = GOOD.digests
    assert joining.wanted(2) == [first, second]
    assert joining.give(third, KEPT[third]) == []
    assert joining.give(second, KEPT[second]) == []
    assert joining.wanted(2) == [first]
    assert joining.give(first, KEPT[first]) == [KEPT[first], KEPT[second]]
    assert (joining.wanted(2), joining.done, joining.complete) == ([third], 2 * KIB, False)
    assert joining.give(third, KEPT[third]) == [KEPT[third]]
    assert joining.complete


def test_a_piece_that_occurs_again_and_again_is_wanted_once_in_a_window() -> None:
    attachment, pieces = taken_apart(bytes(5 * KIB))
    assert len(pieces) == 1
    joining = Joining(attachment)
    (only,) = joining.wanted(5)
    assert b"".join(joining.give(only, pieces[only])) == bytes(5 * KIB)
    assert joining.complete


@settings(deadline=None, max_examples=30)
@given(
    st.integers(min_value=0, max_value=1100),
    st.integers(min_value=1, max_value=40),
    st.randoms(),
    st.booleans(),
)
def test_pieces_in_any_order_give_the_file(count: int, window: int, luck: Random, alike: bool) -> None:
    data = (bytes(count * KIB) if alike else numbers(count * KIB)) + b"end"
    attachment, pieces = taken_apart(data)
    joining = Joining(attachment)
    parts: list[bytes] = []
    while not joining.complete:
        digest = luck.choice(joining.wanted(window))
        parts += joining.give(digest, pieces[digest])
    assert b"".join(parts) == data
