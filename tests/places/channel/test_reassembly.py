"""Messages put together again, whatever the order of their fragments."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event, Spot, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.places.channel.fragment_store import Fragments, New, Row
from linnet.places.channel.packet import Header, Modifier, encode_header, render
from linnet.places.channel.reassembly import (
    TOLD_AT_ONCE,
    Began,
    Broken,
    Finished,
    More,
    Piece,
    Reassembly,
    Step,
)
from linnet.places.config import PlacesConfig
from linnet.places.multicast.fragmentation import FRAGMENT, Flag, Head, encode_head
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

PLACE = TopicId(b"place..." * 4)
VOLUME = (Modifier(":", "_volume", b"100"),)
SHOUT = "_message_public_shout"


def text(body: bytes, modifiers: tuple[Modifier, ...] = VOLUME) -> bytes:
    section = render(modifiers, SHOUT)
    return encode_header(Header(len(section))) + section + body


def pieces(message: int, data: bytes, size: int) -> list[tuple[int, int, int, bytes]]:
    """Message, offset, flags and bytes of each piece."""
    cuts = range(0, max(len(data), 1), size)
    return [
        (
            message,
            at,
            Flag.FIRST * (at == 0) | Flag.LAST * (at + size >= len(data)),
            data[at : at + size],
        )
        for at in cuts
    ]


def said(number: int, piece: tuple[int, int, int, bytes]) -> tuple[Verified, Head]:
    message, offset, flags, data = piece
    head = Head(1, number, message, offset, 0, flags | (Flag.OPENING if number == 0 else 0))
    voice = known_identity("host")
    tail = Tail(None, None, None, None, FRAGMENT, None, 0, encode_head(head), data)
    return sign_unit(voice.device, Spot(PLACE, voice.author, voice.card.device, number, None), [tail]), head


class Guest:
    def __init__(self) -> None:
        store = MemoryStore()
        self.fragments = Fragments(PLACE, store.log, store.cells)
        self.assembly = Reassembly(self.fragments)

    def take(self, number: int, piece: tuple[int, int, int, bytes]) -> list[Step]:
        outcome = self.fragments.store(*said(number, piece), 0.0)
        assert isinstance(outcome, New)
        return self.assembly.told(outcome.row)


def began(message: int) -> Began:
    return Began(message, SHOUT, VOLUME, Header(len(render(VOLUME, SHOUT))))


def test_a_message_in_one_piece() -> None:
    guest = Guest()
    steps = guest.take(0, pieces(1, text(b"Hello"), 1000)[0])
    assert steps == [began(1), Piece(1, 0, b"Hello"), Finished(1, 5)]
    assert len(guest.assembly) == 0


def test_a_message_without_a_body() -> None:
    assert Guest().take(0, pieces(1, text(b""), 1000)[0]) == [began(1), Finished(1, 0)]


def test_it_begins_before_its_body_is_there() -> None:
    guest = Guest()
    data = text(b"0123456789")
    cut = pieces(1, data, len(data) - 8)
    assert guest.take(0, cut[0]) == [began(1), Piece(1, 0, b"01")]
    assert guest.take(1, cut[1]) == [Piece(1, 2, b"23456789"), Finished(1, 10)]


def test_it_does_not_begin_before_its_modifiers_are_complete() -> None:
    guest = Guest()
    data = text(b"x")
    cut = pieces(1, data, len(data) - 2)
    assert guest.take(0, cut[0]) == []
    assert guest.assembly.held_bytes == len(data) - 2
    assert guest.take(1, cut[1]) == [began(1), Piece(1, 0, b"x"), Finished(1, 1)]
    assert guest.assembly.held_bytes == 0


def test_early_pieces_wait_in_the_store() -> None:
    guest = Guest()
    cut = pieces(1, text(b"0123456789" * 20), 60)
    assert len(cut) > 3
    assert [guest.take(number, cut[number]) for number in range(len(cut) - 1, 0, -1)] == [[]] * (len(cut) - 1)
    assert guest.assembly.held_bytes == 0
    steps = guest.take(0, cut[0])
    assert [type(step) for step in steps] == [Began, *[Piece] * len(cut), Finished][: len(steps)]
    assert body(steps, 1) == b"0123456789" * 20
    assert steps[-1] == Finished(1, 200)


def test_a_long_body_that_waited_is_told_by_a_few_pieces_and_the_rest_stays_in_the_store() -> None:
    guest = Guest()
    whole = b"0123456789" * 200
    cut = pieces(1, text(whole), 60)
    for number in range(len(cut) - 2, 0, -1):
        assert guest.take(number, cut[number]) == []
    steps = guest.take(0, cut[0])
    assert [type(step) for step in steps] == [Began, *[Piece] * TOLD_AT_ONCE, More]
    assert guest.take(len(cut) - 1, cut[-1])[-1] == Finished(1, len(whole))
    assert body(list(guest.assembly.historic(1)), 1) == whole


def test_a_body_that_was_under_way_before_a_restart_goes_on() -> None:
    guest = Guest()
    whole = b"0123456789" * 200
    cut = pieces(1, text(whole), 60)
    for number in range(len(cut) - 1):
        guest.take(number, cut[number])
    guest.assembly = Reassembly(guest.fragments)
    steps = guest.take(len(cut) - 1, cut[-1])
    assert [type(step) for step in steps] == [Began, *[Piece] * TOLD_AT_ONCE, More, Finished]
    assert steps[-1] == Finished(1, len(whole))
    assert len(guest.assembly) == 0


def test_it_is_finished_once() -> None:
    guest = Guest()
    cut = pieces(1, text(b"Hello"), 1000)[0]
    guest.take(0, cut)
    row = guest.fragments.get(0)
    assert row is not None
    assert list(guest.assembly.historic(1)) == [began(1), Piece(1, 0, b"Hello"), Finished(1, 5)]
    assert len(guest.assembly) == 0


@settings(max_examples=25, deadline=None)
@given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    size=st.integers(7, 90),
    seed=st.integers(0, 2**16),
)
def test_any_order_of_interleaved_messages(bodies: list[bytes], size: int, seed: int) -> None:
    guest = Guest()
    every = [cut for message, data in enumerate(bodies, 1) for cut in pieces(message, text(data), size)]
    arriving = list(enumerate(every))
    random.Random(seed).shuffle(arriving)
    steps = [step for number, cut in arriving for step in guest.take(number, cut)]
    for message, data in enumerate(bodies, 1):
        mine = [step for step in steps if step.message == message]
        assert (mine[0], mine[-1]) == (began(message), Finished(message, len(data)))
        assert sum(isinstance(step, Began | Finished) for step in mine) == 2
        assert body(mine, message) == data
    assert len(guest.assembly) == 0


def body(steps: list[Step], message: int) -> bytes:
    found = b""
    for step in steps:
        if isinstance(step, Piece) and step.message == message:
            assert step.offset == len(found)
            found += step.data
    return found


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x09" + text(b"")[1:], Reason.UNSUPPORTED),
        (text(b"")[:-3], Reason.MALFORMED),
        (b"", Reason.MALFORMED),
    ],
)
def test_what_is_no_message_is_said_to_be_broken(data: bytes, reason: Reason) -> None:
    steps = Guest().take(0, pieces(1, data, 1000)[0])
    assert [(step.message, step.reason) for step in steps if isinstance(step, Broken)] == [(1, reason)]
    assert len(steps) == 1


def test_a_broken_message_is_told_once() -> None:
    guest = Guest()
    cut = pieces(1, b"\x09" + bytes(200), 100)
    assert len(guest.take(0, cut[0])) == 1
    assert [guest.take(number, cut[number]) for number in (1, 2)] == [[], []]


def test_too_many_messages_under_way() -> None:
    guest = Guest()
    guest.assembly = Reassembly(guest.fragments, most_open=1)
    first, second = pieces(1, text(b"x" * 100), 80), pieces(2, text(b"y" * 100), 80)
    guest.take(0, first[0])
    assert guest.take(1, second[0]) == [Broken(2, Reason.TOO_MANY, "1 messages are under way")]
    assert guest.take(2, first[1])[-1] == Finished(1, 100)


def test_modifiers_that_wait_are_bounded_in_bytes() -> None:
    guest = Guest()
    limits = PlacesConfig(modifier_bytes=1024)
    guest.assembly = Reassembly(guest.fragments, limits)
    wide = (Modifier(":", "_volume", b"1" * 900),)
    cuts = [pieces(message, text(b"x", wide), 900) for message in range(1, 9)]
    assert [guest.take(number, cut[0]) for number, cut in enumerate(cuts)] == [[]] * 8
    assert 0 < guest.assembly.held_bytes <= 4 * 1024
    for number, cut in enumerate(cuts):
        steps = guest.take(8 + number, cut[1])
        assert [type(step) for step in steps] == [Began, Piece, Finished]
    assert guest.assembly.held_bytes == 0


def test_a_cut_ends_what_was_under_way() -> None:
    guest = Guest()
    guest.take(0, pieces(1, text(b"x" * 100), 80)[0])
    assert guest.assembly.cut([1, 2]) == [Broken(1, Reason.STALE)]
    assert len(guest.assembly) == 0


def test_a_piece_whose_key_is_missing_waits() -> None:
    guest = Guest()
    keys: list[int] = []

    def opened(event: Event, row: Row) -> bytes | None:
        return event.body if keys else None

    guest.assembly = Reassembly(guest.fragments, opened=opened)
    assert guest.take(0, pieces(1, text(b"Hello"), 1000)[0]) == []
    keys.append(1)
    assert list(guest.assembly.resume(1)) == [began(1), Piece(1, 0, b"Hello"), Finished(1, 5)]


def test_a_piece_that_cannot_be_opened_breaks_its_message() -> None:
    guest = Guest()

    def opened(event: Event, row: Row) -> bytes | None:
        raise RemoteError(Reason.UNDECRYPTABLE, "no")

    guest.assembly = Reassembly(guest.fragments, opened=opened)
    assert guest.take(0, pieces(1, text(b"Hello"), 1000)[0]) == [Broken(1, Reason.UNDECRYPTABLE, "no")]
