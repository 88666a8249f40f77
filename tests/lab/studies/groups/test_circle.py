"""Devices in one process: their events are real, and what they do is timed by part."""

from __future__ import annotations

from itertools import count

import pytest

from linnet.core.errors import InvalidEvent
from linnet.event.signing import decode_unit
from linnet.groups import agreement
from linnet.groups.bodies import Acks, Update, decode_body
from linnet.lab.errors import CheckFailed
from linnet.lab.studies.groups.circle import Circle, Sent


def created(devices: int, members: int) -> tuple[Circle, list[Sent]]:
    ticks = count()
    circle = Circle(devices, 7, lambda: next(ticks))
    sent = circle.create(0, range(1, members))
    for place in range(1, members):
        circle.hear(place, sent)
    acks = [ack for place in range(1, members) for ack in circle.acks(place)]
    for ack in acks:
        for place in range(members):
            if place != ack.by:
                circle.hear(place, ack)
    return circle, [sent, *acks]


def test_events_are_signed_units_and_the_same_for_the_same_seed() -> None:
    _, first = created(4, 4)
    _, again = created(4, 4)
    assert first == again
    for sent in first:
        tail = decode_unit(sent.raw).tails[0]
        assert sent.body < len(tail) < len(sent.raw)
    broken = bytearray(first[0].raw)
    broken[-1] ^= 1
    with pytest.raises(InvalidEvent):
        Circle(4, 7).hear(1, Sent(0, bytes(broken), 0))


def test_all_members_come_to_the_same_group_and_read_each_other() -> None:
    circle, _ = created(5, 4)
    views = [agreement.members(party.state) for party in circle.parties[:4]]
    assert all(len(view) == 4 and view == views[0] for view in views)
    assert circle.parties[4].state.me is None
    said = circle.say(2, b"hello")
    for place in (0, 1, 3):
        circle.hear(place, said)
    assert said.body == 29 + 64 + 16


def test_work_is_counted_by_part_with_the_clock_that_was_given() -> None:
    circle, _ = created(4, 4)
    sender, other = circle.parties[0], circle.parties[1]
    # A creation: one draft, one step after it; each a tick apart.
    assert (sender.events["make"], sender.spent["make"]) == (1, 2)
    assert (sender.events["check"], sender.events["follow"], sender.events["take"]) == (3, 3, 0)
    assert (other.events["take"], other.events["follow"], other.spent["check"]) == (1, 2, 3)
    circle.reset()
    assert not sender.spent
    assert not sender.events


def test_acknowledgements_are_gathered_in_one_event_with_all_references() -> None:
    circle, _ = created(4, 4)
    updates = [circle.update(0) for _ in range(3)]
    assert isinstance(decode_body(_body(updates[0])), Update)
    for sent in updates:
        circle.hear(1, sent)
    (acks,) = circle.acks(1)
    content = decode_body(_body(acks))
    assert isinstance(content, Acks)
    assert len(content.items) == 3
    assert acks.is_ack
    assert circle.acks(1) == []


def test_what_waits_or_is_lost_ends_the_run() -> None:
    circle, _ = created(4, 4)
    circle.update(0)
    late = circle.update(0)
    with pytest.raises(CheckFailed, match="device 1 met Waits"):
        circle.hear(1, late)
    with pytest.raises(CheckFailed, match="not in the group"):
        Circle(2, 1).member(0)


def _body(sent: Sent) -> bytes:
    import msgspec

    from linnet.event.event import Tail

    return msgspec.msgpack.decode(decode_unit(sent.raw).tails[0], type=Tail).body
