"""Asynchronous, as soon as possible, synchronous: Schichtholz 2024, figure 5."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.sim.rooms.oracle import (
    Delivery,
    Interval,
    apart,
    asap_delivered,
    async_delivered,
    delivery,
    online_intervals,
)
from linnet.sim.rooms.traffic import Entry

MESSAGE = "m.room.message"
COMING_AND_GOING = [
    Entry(0, "bob", "offline"),
    Entry(4, "alice", "offline"),
    Entry(6, "bob", "online"),
    Entry(8, "bob", "offline"),
    Entry(10, "bob", "online"),
    Entry(12, "alice", "online"),
]
"""Bob is there without Alice from 6 to 8 and from 10 to 12; from 12 on both are."""


def log(sent: float, *received: float) -> list[Entry]:
    lines = [Entry(sent, "alice", "send", MESSAGE, 1)]
    lines += [Entry(time, "bob", "receive", MESSAGE, 1) for time in received]
    return sorted([*COMING_AND_GOING, *lines], key=lambda entry: entry.time)


@pytest.mark.parametrize(
    ("received", "outcome"),
    [
        ((6.5,), Delivery.ASAP),
        ((10.5,), Delivery.ASYNCHRONOUS),
        ((12.5,), Delivery.SYNCHRONOUS),
        ((6.5, 12.5), Delivery.ASAP),
        ((), Delivery.NONE),
    ],
)
def test_the_cases_of_the_figure(received: tuple[float, ...], outcome: Delivery) -> None:
    lines = log(2, *received)
    assert delivery(lines, 1, "alice", "bob") is outcome
    assert async_delivered(lines, 1, "alice", "bob") is (outcome in ("asap", "asynchronous"))
    assert asap_delivered(lines, 1, "alice", "bob") is (outcome == "asap")


def test_as_soon_as_possible_within_a_bound() -> None:
    lines = log(2, 6.5)
    assert asap_delivered(lines, 1, "alice", "bob", within=0.5)
    assert not asap_delivered(lines, 1, "alice", "bob", within=0.4)


def test_who_was_there_when_it_was_sent_got_it_synchronously() -> None:
    lines = [Entry(0, "alice", "send", MESSAGE, 1), Entry(1, "bob", "receive", MESSAGE, 1)]
    assert delivery(lines, 1, "alice", "bob") is Delivery.SYNCHRONOUS


def test_what_was_never_sent_was_not_delivered() -> None:
    assert delivery(COMING_AND_GOING, 1, "alice", "bob") is Delivery.NONE
    early = [Entry(1, "bob", "receive", MESSAGE, 1), Entry(2, "alice", "send", MESSAGE, 1)]
    assert delivery(early, 1, "alice", "bob") is Delivery.NONE


def test_intervals() -> None:
    assert online_intervals(COMING_AND_GOING, "bob") == [(-inf, 0), (6, 8), (10, inf)]
    assert online_intervals(COMING_AND_GOING, "alice") == [(-inf, 4), (12, inf)]
    assert online_intervals(COMING_AND_GOING, "carol") == [(-inf, inf)]
    assert apart(COMING_AND_GOING, "alice", "bob", 2) == [(6, 8), (10, 12)]
    assert apart(COMING_AND_GOING, "alice", "bob", 7) == [(7, 8), (10, 12)]


CHANGES = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(("alice", "bob")), st.sampled_from(("online", "offline"))),
    max_size=12,
).map(lambda rows: [Entry(float(time), user, action) for time, user, action in sorted(rows)])


@given(CHANGES, st.integers(0, 40))
def test_apart_is_receiver_there_and_sender_not(lines: list[Entry], after: int) -> None:
    found = apart(lines, "alice", "bob", after)
    for tenth in range(10 * after, 420):
        time = tenth / 10 + 0.05

        def there(user: str, at: float = time) -> bool:
            return any(interval.holds(at) for interval in online_intervals(lines, user))

        expected = there("bob") and not there("alice")
        assert any(Interval.holds(interval, time) for interval in found) is expected
