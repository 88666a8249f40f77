"""Attachments: files cut into pieces and put together again, and whatever a stranger may claim of one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from random import Random

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
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
    attachment_body,
    attachment_of,
    join,
    piece_of,
    seal_piece,
    split,
)
from linnet.rooms.messages import CHUNK_BYTES

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def taken_apart(
    data: bytes, chunk_bytes: int = KIB, key: bytes | None = None
) -> tuple[Attachment, dict[bytes, bytes]]:
    *pieces, attachment = split([data], "file.bin", chunk_bytes=chunk_bytes, key=key)
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
    assert attachment_of(attachment_body(attachment)) == attachment


@pytest.mark.parametrize(
    ("pieces", "levels", "named"),
    [(DIGESTS, 0, DIGESTS), (DIGESTS + 1, 1, 33), (32 * DIGESTS, 1, DIGESTS), (32 * DIGESTS + 1, 2, 33)],
)
def test_more_pieces_than_an_event_names_are_named_by_lists(pieces: int, levels: int, named: int) -> None:
    data = numbers(pieces * KIB)
    attachment, kept = taken_apart(data)
    assert (attachment.levels, len(attachment.digests)) == (levels, named)
    assert len(attachment_body(attachment)) < BODY_BYTES
    assert attachment_of(attachment_body(attachment)) == attachment
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
    assert attachment_of(attachment_body(attachment), most=4 * KIB) == attachment
    with pytest.raises(InvalidEvent) as invalid:
        attachment_of(attachment_body(attachment), most=4 * KIB - 1)
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
        attachment_of(attachment_body(replace(GOOD, **claim)))
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


@settings(deadline=None, max_examples=30)
@given(
    st.integers(min_value=0, max_value=1100),
    st.integers(min_value=1, max_value=40),
    st.randoms(),
    st.booleans(),
    st.sampled_from([None, KEY]),
)
def test_pieces_in_any_order_give_the_file(
    count: int, window: int, luck: Random, alike: bool, key: bytes | None
) -> None:
    data = (bytes(count * KIB) if alike else numbers(count * KIB)) + b"end"
    attachment, pieces = taken_apart(data, key=key)
    joining = Joining(attachment)
    parts: list[bytes] = []
    while not joining.complete:
        digest = luck.choice(joining.wanted(window))
        parts += joining.give(digest, pieces[digest])
    assert b"".join(parts) == data


def test_a_piece_that_occurs_again_and_again_is_wanted_once() -> None:
    data = bytes(5 * KIB)
    attachment, pieces = taken_apart(data)
    joining = Joining(attachment)
    (only,) = joining.wanted(5)
    assert b"".join(joining.give(only, pieces[only])) == data
    assert joining.complete


def sealed(data: bytes, chunk_bytes: int = KIB, key: bytes = KEY) -> tuple[Attachment, dict[bytes, bytes]]:
    return taken_apart(data, chunk_bytes, key)


ROOM = KIB - 16
"""Bytes of a file in a sealed piece of a kibibyte."""


@pytest.mark.parametrize("size", [0, 1, 16, ROOM - 1, ROOM, ROOM + 1, KIB, 2 * ROOM, 2 * ROOM + 1, 5 * KIB])
def test_a_sealed_file_comes_back_as_it_went(size: int) -> None:
    data = numbers(size)
    attachment, pieces = sealed(data)
    assert (attachment.size, attachment.key, len(pieces)) == (size, KEY, -(-size // ROOM))
    assert {len(piece) for piece in pieces.values()} <= {KIB}
    assert b"".join(join(attachment, pieces)) == data
    assert attachment_of(attachment_body(attachment)) == attachment


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("part", [0, 4080, 8176, CHUNK_BYTES - 4096 - 16, CHUNK_BYTES - 16])
def test_no_piece_is_over_its_size_and_the_last_tells_a_class_alone(
    pieces: int, over: int, part: int
) -> None:
    size = (pieces - 1) * (CHUNK_BYTES - 16) + part + over
    if size < 0:
        return
    data = numbers(size)
    attachment, kept = sealed(data, CHUNK_BYTES)
    sizes = [len(piece) for piece in kept.values()]
    assert all(each <= CHUNK_BYTES and each % 4096 == 0 for each in sizes)
    assert sizes[:-1] == [CHUNK_BYTES] * (len(sizes) - 1)
    assert sum(sizes) - 16 * len(sizes) - size in range(4096)
    assert b"".join(join(attachment, kept)) == data


@pytest.mark.parametrize(("pieces", "levels"), [(DIGESTS, 0), (DIGESTS + 1, 1), (31 * DIGESTS + 1, 2)])
def test_lists_are_sealed_too(pieces: int, levels: int) -> None:
    data = numbers(pieces * ROOM)
    attachment, kept = sealed(data)
    assert attachment.levels == levels
    assert attachment_of(attachment_body(attachment)) == attachment
    lists = [data for digest, data in kept.items() if digest in attachment.digests] if levels else []
    assert not any(digest in piece for piece in lists for digest in list(kept)[:50])
    whole = hashlib.sha256()
    for part in join(attachment, kept):
        whole.update(part)
    assert whole.digest() == hashlib.sha256(data).digest()


SECRET, HELD = sealed(numbers(3 * ROOM))


def refused(attachment: Attachment, pieces: dict[bytes, bytes]) -> Reason:
    with pytest.raises(RemoteError) as error:
        list(join(attachment, pieces))
    return error.value.reason


def test_pieces_cannot_change_places_or_stand_for_another() -> None:
    one, two, three = SECRET.digests
    for digests in ((two, one, three), (one, three, two), (one, one, three), (one, two, one)):
        assert refused(replace(SECRET, digests=digests), HELD) is Reason.UNDECRYPTABLE
    other, more = sealed(numbers(3 * ROOM), key=OTHER)
    assert refused(replace(SECRET, digests=(*other.digests[:1], two, three)), {**HELD, **more}) is (
        Reason.UNDECRYPTABLE
    )


def test_a_list_cannot_stand_for_another() -> None:
    attachment, kept = sealed(numbers((DIGESTS + 40) * ROOM))
    first, second, *rest = attachment.digests
    assert refused(replace(attachment, digests=(second, first, *rest)), kept) is Reason.UNDECRYPTABLE


@given(st.integers(0, KIB * 8 - 1))
@settings(max_examples=30, deadline=None)
def test_a_bit_that_changed_is_seen_by_whoever_carries_it_and_by_whoever_opens_it(bit: int) -> None:
    first = SECRET.digests[0]
    wrong = bytearray(HELD[first])
    wrong[bit // 8] ^= 1 << bit % 8
    assert refused(SECRET, {**HELD, first: bytes(wrong)}) is Reason.MALFORMED
    forged = piece_of(bytes(wrong))  # as if the sender had named it
    attachment = replace(SECRET, digests=(forged.digest, *SECRET.digests[1:]))
    assert refused(attachment, {**HELD, forged.digest: forged.data}) is Reason.UNDECRYPTABLE


def test_padding_is_checked() -> None:
    short = replace(SECRET, size=SECRET.size - 1)
    assert refused(short, HELD) is Reason.MALFORMED  # what would be padding is none
    small = piece_of(seal_piece(KEY, 2, bytes(ROOM - 1)))
    wrong = replace(SECRET, digests=(*SECRET.digests[:2], small.digest))
    assert refused(wrong, {**HELD, small.digest: small.data}) is Reason.MALFORMED
    extra = piece_of(seal_piece(KEY, 3, bytes(ROOM)))
    longer = replace(SECRET, digests=(*SECRET.digests, extra.digest))
    with pytest.raises(RemoteError, match="bytes where 0"):
        list(join(longer, {**HELD, extra.digest: extra.data}))


def test_a_plain_attachment_is_read_and_written_as_ever() -> None:
    fields = ("a.txt", "text/plain", 3, KIB, hashlib.sha256(b"abc").digest(), 0, (piece_of(b"abc").digest,))
    body = msgspec.msgpack.encode(fields)  # as nodes wrote it that knew of no keys
    attachment = attachment_of(body)
    assert attachment.key is None
    assert attachment_body(attachment) == body
    assert b"".join(join(attachment, {piece_of(b"abc").digest: b"abc"})) == b"abc"


def test_what_is_made_of_known_bytes_is_known() -> None:
    """The format, for other implementations."""
    attachment, pieces = sealed(b"attachment", CHUNK_BYTES)
    (piece,) = pieces.values()
    label = b"linnet/piece/1"
    content = b"attachment".ljust(4080, b"\0")
    assert piece == ChaCha20Poly1305(KEY).encrypt(bytes(12), content, label + bytes(12))
    assert attachment_body(attachment).endswith(b"\xc4\x20" + KEY)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_key_of_another_length_is_malformed(key: bytes) -> None:
    with pytest.raises(InvalidEvent) as error:
        attachment_of(attachment_body(replace(SECRET, key=key)))
    assert error.value.reason is Reason.MALFORMED


def test_a_key_is_not_shown() -> None:
    assert repr(SECRET) == "Attachment('file.bin', 'application/octet-stream', 3024 bytes, sealed)"
    assert "sealed" not in repr(GOOD)
