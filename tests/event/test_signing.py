from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, Refused
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.limits import BODY_BYTES, BURST_BYTES, BURST_EVENTS, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Spot, Tail, Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, message_tail, sign_unit, verify_unit
from linnet.identity.cards import Card, issue_card
from linnet.identity.keys import SigningKey
from linnet.testing.strategies import values

PERSON = SigningKey(b"p" * 32)
DEVICE = SigningKey(b"d" * 32)
OTHER = SigningKey(b"o" * 32)
CARD = issue_card(PERSON, DEVICE.public, 0, 2_000_000_000)
TOPIC = TopicId(b"t" * 32)
PREV = EventId(b"v" * 32)
tails = st.lists(values(Tail), min_size=1, max_size=6)


def made(
    some: list[Tail], seq: int | None = 7, prev: EventId | None = PREV, key: SigningKey = DEVICE
) -> Verified:
    return sign_unit(key, Spot(TOPIC, AuthorId(PERSON.public), CARD.device, seq, prev), some)


def refusal(unit: Unverified, card: Card = CARD) -> Reason:
    with pytest.raises(InvalidEvent) as caught:
        verify_unit(unit, card)
    return caught.value.reason


BURST = made([message_tail(bytes([n]) * n, n) for n in range(1, 5)])


@given(tails, st.integers(0, LARGEST_COUNT - 5), st.none() | st.just(PREV))
def test_what_was_signed_is_verified(some: list[Tail], seq: int, prev: EventId | None) -> None:
    ours = made(some, seq, prev)
    raw = encode_unit(ours.unit)
    theirs = verify_unit(decode_unit(raw), CARD)
    assert theirs == ours
    assert encode_unit(theirs.unit) == raw
    assert [event.tail for event in theirs.events] == some
    assert [event.seq for event in theirs.events] == list(range(seq, seq + len(some)))


@given(values(Tail), st.none() | st.just(PREV))
def test_an_event_without_a_chain(tail: Tail, prev: EventId | None) -> None:
    ours = made([tail], None, prev)
    (event,) = verify_unit(decode_unit(encode_unit(ours.unit)), CARD).events
    assert (event.seq, event.prev, event.tail) == (None, prev, tail)


@given(tails)
def test_each_event_names_the_one_before(some: list[Tail]) -> None:
    events = made(some).events
    assert [event.prev for event in events] == [PREV, *(event.id for event in events[:-1])]
    assert len({event.id for event in events}) == len(events)


@given(tails, st.data())
def test_an_id_does_not_depend_on_how_a_chain_is_cut_into_units(
    some: list[Tail], data: st.DataObject
) -> None:
    whole = made(some).events
    cut = data.draw(st.integers(0, len(some)))
    first = made(some[:cut]).events if cut else ()
    rest = made(some[cut:], 7 + cut, whole[cut - 1].id if cut else PREV).events if cut < len(some) else ()
    assert first + rest == whole


@pytest.mark.parametrize("changed", range(4))
def test_a_change_in_one_event_changes_the_ids_from_there_on(changed: int) -> None:
    some = [event.tail for event in BURST.events]
    some[changed] = replace(some[changed], time=99)
    ids = [event.id for event in made(some).events]
    before = [event.id for event in BURST.events]
    assert ids[:changed] == before[:changed]
    assert all(new != old for new, old in zip(ids[changed:], before[changed:], strict=True))


def test_every_bit_of_every_field_is_under_the_signature() -> None:
    unit = BURST.unit
    for name in ("topic", "author", "device", "prev", "sig"):
        value = getattr(unit, name)
        for bit in range(len(value) * 8):
            assert refusal(replace(unit, **{name: flipped(value, bit)})) in (
                Reason.BAD_SIGNATURE,
                Reason.UNKNOWN_DEVICE,
            )
    for place, tail in enumerate(unit.tails):
        for bit in range(len(tail) * 8):
            changed = (*unit.tails[:place], flipped(tail, bit), *unit.tails[place + 1 :])
            assert refusal(replace(unit, tails=changed)) in (Reason.BAD_SIGNATURE, Reason.MALFORMED)


def flipped(value: bytes, bit: int) -> bytes:
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize(
    "forged",
    [
        replace(BURST.unit, seq=8),
        replace(BURST.unit, seq=6),
        replace(BURST.unit, prev=None),
        replace(BURST.unit, tails=BURST.unit.tails[:-1]),
        replace(BURST.unit, tails=BURST.unit.tails[1:]),
        replace(BURST.unit, tails=(*BURST.unit.tails, BURST.unit.tails[-1])),
        replace(BURST.unit, tails=BURST.unit.tails[::-1]),
        replace(BURST.unit, tails=(BURST.unit.tails[1], BURST.unit.tails[0], *BURST.unit.tails[2:])),
        made([event.tail for event in BURST.events], key=OTHER).unit,
    ],
)
def test_a_unit_that_was_cut_joined_or_reordered_is_refused(forged: Unverified) -> None:
    assert refusal(forged) is Reason.BAD_SIGNATURE


@given(values(Unverified))
def test_an_arbitrary_unit_is_refused_with_one_error(unit: Unverified) -> None:
    refusal(unit)
    refusal(replace(unit, author=CARD.person, device=CARD.device))


@given(st.binary(max_size=60))
def test_a_tail_that_is_signed_but_is_none_is_refused(junk: bytes) -> None:
    tail = b"\x99" + junk
    assert refusal(signed_by_hand((tail,))) is Reason.MALFORMED
    assert refusal(signed_by_hand((junk,))) in (Reason.MALFORMED, Reason.BAD_SIGNATURE)


@pytest.mark.parametrize(
    "junk",
    [
        b"\x99\xc0\xc0\xc0\xc0\xa1\xff\xc0\x00\xc0\xc4\x00",  # a kind that is no UTF-8
        b"\x99" + b"\x91" * 100_000,  # arrays in arrays in arrays
        b"\x99\xdd\xff\xff\xff\xff",  # four thousand million dependencies
        b"\x99\xc0\xc0\xc0\xc0\xa1k\xc0\x00\xc0\xc4\x00\x00",  # a byte too many
        b"\x99\xc0\xc0\xc0\xc0\xa1k\xc0\xcf" + b"\xff" * 8 + b"\xc0\xc4\x00",  # a time past the largest
    ],
)
def test_hostile_tails_are_refused(junk: bytes) -> None:
    assert refusal(signed_by_hand((junk,))) is Reason.MALFORMED


def signed_by_hand(raw: tuple[bytes, ...]) -> Unverified:
    """A unit of these tails whose signature is right, whatever they are."""
    shared = b"".join(map(msgspec.msgpack.encode, (TOPIC, PERSON.public, CARD.device)))
    before, head = PREV, b""
    for seq, tail in enumerate(raw):
        fields = shared + msgspec.msgpack.encode(seq) + msgspec.msgpack.encode(before)
        head = hashlib.sha256(b"linnet/event/1\x9e" + fields + tail[1:]).digest()
        before = EventId(head)
    sig = DEVICE.sign(head)
    return Unverified(TOPIC, AuthorId(PERSON.public), CARD.device, 0, PREV, raw, sig)


def test_bytes_are_hashed_as_they_came() -> None:
    """One value has several encodings in msgpack; each is another event, and none is rewritten."""
    minimal = b"\x99\xc0\xc0\xc0\xc0\xa1k\xc0\x05\xc0\xc4\x00"
    longer = b"\x99\xc0\xc0\xc0\xc0\xa1k\xc0\xcd\x00\x05\xc0\xc4\x00"
    one, two = (verify_unit(signed_by_hand((raw,)), CARD) for raw in (minimal, longer))
    assert one.events[0].tail == two.events[0].tail
    assert one.head != two.head
    assert two.unit.tails == (longer,)


@pytest.mark.parametrize(
    "card",
    [
        issue_card(OTHER, DEVICE.public, 0, 2_000_000_000),
        issue_card(PERSON, OTHER.public, 0, 2_000_000_000),
    ],
)
def test_the_card_of_another_person_or_device_does_not_do(card: Card) -> None:
    assert refusal(BURST.unit, card) is Reason.UNKNOWN_DEVICE


def test_a_burst_of_the_most_events() -> None:
    some = [message_tail(b"", 0)] * BURST_EVENTS
    unit = made(some).unit
    assert len(verify_unit(unit, CARD).events) == BURST_EVENTS
    for wrong in ([], [*some, some[0]]):
        with pytest.raises(Refused) as caught:
            made(wrong)
        assert caught.value.reason is Reason.TOO_MANY


def test_a_burst_of_the_most_bytes() -> None:
    overhead = 2 * len(msgspec.msgpack.encode(message_tail(bytes(70_000), 0))) - 140_000
    half = (BURST_BYTES - overhead) // 2
    fits = [message_tail(bytes(half), 0), message_tail(bytes(half), 0)]
    unit = made(fits).unit
    assert sum(map(len, unit.tails)) == BURST_BYTES
    assert verify_unit(unit, CARD).unit == unit
    with pytest.raises(Refused) as caught:
        made([fits[0], message_tail(bytes(half + 1), 0)])
    assert caught.value.reason is Reason.TOO_LARGE
    assert refusal(replace(unit, tails=(unit.tails[0], unit.tails[1] + b"\0"))) is Reason.TOO_LARGE


def test_the_largest_body() -> None:
    unit = made([message_tail(bytes(BODY_BYTES), 0)]).unit
    assert verify_unit(unit, CARD).events[0].body == bytes(BODY_BYTES)
    with pytest.raises(Refused) as caught:
        message_tail(bytes(BODY_BYTES + 1), 0)
    assert caught.value.reason is Reason.TOO_LARGE


def test_the_largest_sequence_number() -> None:
    two = [message_tail(b"", 0)] * 2
    unit = made(two, LARGEST_COUNT - 1).unit
    assert verify_unit(unit, CARD).events[-1].seq == LARGEST_COUNT
    with pytest.raises(Refused) as caught:
        made(two, LARGEST_COUNT)
    assert caught.value.reason is Reason.MALFORMED
    assert refusal(replace(unit, seq=LARGEST_COUNT)) is Reason.MALFORMED


def test_a_burst_needs_sequence_numbers() -> None:
    two = [message_tail(b"", 0)] * 2
    with pytest.raises(Refused) as caught:
        made(two, None)
    assert caught.value.reason is Reason.MALFORMED
    assert refusal(replace(made(two).unit, seq=None)) is Reason.MALFORMED


def test_a_message_is_little_else_than_its_body() -> None:
    tail = message_tail(b"tweet", 1_700_000_000_000)
    assert tail == Tail(None, None, None, None, MESSAGE, None, 1_700_000_000_000, None, b"tweet")
