"""A history as bytes: one form for each value, and nothing else is taken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.groups.causal import CHOICES, Choices, World, member, mid, op_id, random_world, replay

from linnet.core.errors import MalformedMessage, Refused
from linnet.groups import membership
from linnet.groups.membership import EMPTY, Addition, History, Removal, decode, encode


def _some() -> History:
    """Members that came in three ways: first, one that all have seen, one that not all have."""
    world = World("ABX")
    world.add("A", "D")
    world.settle()
    history = membership.compact(replay(world.deeds, range(len(world.deeds))))
    history = membership.add(history, op_id("add"), mid("B"), member("E", op_id("add")))
    return membership.remove(history, op_id("remove"), mid("A"), [mid("X")])


@settings(max_examples=40, deadline=None)
@given(CHOICES)
def test_what_is_written_is_read_again(choices: Choices) -> None:
    world = random_world(choices)
    for replica in world.replicas.values():
        for history in (replica.history, membership.compact(replica.history)):
            assert decode(encode(history)) == history
            assert encode(decode(encode(history))) == encode(history)


def test_nothing_and_one_of_each_kind() -> None:
    assert decode(encode(EMPTY)) == EMPTY
    assert encode(EMPTY) == bytes.fromhex("01000000000000")
    history = _some()
    assert len(history.members) == 5
    assert len(history.additions) == len(history.removals) == 1
    assert decode(encode(history)) == history
    assert len(encode(history)) == 7 + 5 * 90 + (34 + 34 + 35) + 34


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_comes_is_a_history_or_malformed(data: st.DataObject) -> None:
    raw = bytearray(encode(_some()))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(start, min(len(raw), start + 40)))
        raw[start:end] = data.draw(st.binary(max_size=40))
    try:
        history = decode(bytes(raw))
    except MalformedMessage:
        return
    assert encode(history) == bytes(raw)
    for each in history.members:
        assert membership.sees(history, each.id, each.id)
    membership.closed(history)
    assert decode(encode(membership.compact(history))) == membership.compact(history)


def _refused(history: History) -> None:
    with pytest.raises(MalformedMessage):
        decode(encode(history))


def test_every_other_length_is_refused() -> None:
    data = encode(_some())
    for other in (*(data[:end] for end in range(len(data))), data + b"\0", data + data):
        with pytest.raises(MalformedMessage):
            decode(other)


def test_what_cannot_have_come_about_is_refused() -> None:
    op, other = op_id("create"), op_id("other")
    pair = tuple(sorted((member("A", op), member("B", op)), key=lambda each: each.id))
    creation = Addition(op, None, 0b11, 0b11)
    assert decode(encode(History(pair, (creation,)))) == History(pair, (creation,))
    _refused(History(tuple(reversed(pair)), (creation,)))
    _refused(History((pair[0], pair[0]), (creation,)))
    _refused(History(pair, (Addition(op, None, 0b11, 0b01),)))
    _refused(History(pair, (Addition(op, pair[0].id, 0b11, 0b11),)))
    _refused(History(pair, (creation, Addition(other, None, 0, 0b11))))
    _refused(History(pair, (creation,), (Removal(op, 0b01, 0b10),)))
    _refused(History(pair, (creation,), (Removal(other, 0b01, 0b01),)))
    _refused(History(pair, (creation,), (Removal(other, 0b01, 0b100),)))
    _refused(History(pair, (creation,), (Removal(other, 0b01, 0b10), Removal(other, 0b01, 0b10))))


def test_an_adder_must_have_seen_its_addition() -> None:
    history = _some()
    addition = history.additions[0]
    assert addition.sender == mid("B")
    unseen = replace(addition, seen=addition.seen & ~history.bit(mid("B")))
    _refused(replace(history, additions=(unseen,)))
    _refused(replace(history, additions=(replace(addition, sender=mid("E")),)))


def test_places_beyond_the_end_are_refused() -> None:
    data = encode(_some())
    for at in (7 + 88, data.index(op_id("add")) + 32):
        for place in (5, 0x7FFF, 0xFFFD):
            broken = bytearray(data)
            broken[at : at + 2] = place.to_bytes(2, "big")
            with pytest.raises(MalformedMessage):
                decode(bytes(broken))


def test_counts_are_bounded_before_anything_is_made() -> None:
    with pytest.raises(MalformedMessage):
        decode(b"\x01" + b"\xff" * 6)
    with pytest.raises(MalformedMessage):
        decode(b"\x01\xff\xf0" + bytes(4) + bytes(100))
    with pytest.raises(MalformedMessage):
        decode(b"\x02" + bytes(6))


def test_a_history_that_is_too_long_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "MAX_COUNT", 4)
    with pytest.raises(Refused):
        encode(_some())


def test_128_members_who_came_one_by_one_take_at_most_17_kilobytes() -> None:
    op = op_id("create")
    history = membership.create(EMPTY, op, [member("M0", op)])
    for at in range(1, 128):
        op = op_id(f"add {at}")
        history = membership.add(history, op, mid(f"M{at - 1}"), member(f"M{at}", op))
        for name in range(at):
            history = membership.ack(history, mid(f"M{name}"), op)
    assert len(encode(membership.compact(history))) == 7 + 128 * 90 + 128 * 34 < 17_000
    assert len(encode(history)) < 18_000
