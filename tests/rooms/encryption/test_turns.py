"""Whose turn it is."""

from __future__ import annotations

from linnet.groups.labels import MemberId
from linnet.rooms.encryption.group_maintenance import Turns, rank

MEMBERS = tuple(MemberId(bytes([number]) * 16) for number in range(5))


def test_all_agree_on_one_order_for_each_task() -> None:
    for task in (b"heal", b"remove", b"somebody"):
        ranks = [rank(task, member, MEMBERS) for member in MEMBERS]
        assert sorted(ranks) == [0, 1, 2, 3, 4]


def test_tasks_have_different_orders_so_that_work_is_spread() -> None:
    firsts = {member for task in range(64) for member in MEMBERS if rank(bytes([task]), member, MEMBERS) == 0}
    assert firsts == set(MEMBERS)


def test_nobody_waits_for_who_is_away() -> None:
    last = max(MEMBERS, key=lambda member: rank(b"heal", member, MEMBERS))
    assert rank(b"heal", last, ()) == 0
    assert rank(b"heal", last, (last,)) == 0


def test_the_next_acts_a_step_after_the_first_and_what_is_done_is_forgotten() -> None:
    by_rank = sorted(MEMBERS, key=lambda member: rank(b"heal", member, MEMBERS))
    turns = [Turns(2.0) for _ in by_rank]
    due = [each.due([b"heal"], member, MEMBERS, 100.0) for each, member in zip(turns, by_rank, strict=True)]
    assert due == [{b"heal": 100.0 + 2.0 * place} for place in range(5)]
    assert turns[1].due([b"heal"], by_rank[1], MEMBERS, 101.0) == {b"heal": 102.0}
    assert turns[1].due([], by_rank[1], MEMBERS, 102.0) == {}
    assert turns[1].due([b"heal"], by_rank[1], MEMBERS, 103.0) == {b"heal": 105.0}


def test_what_failed_is_tried_a_step_later() -> None:
    turns = Turns(2.0)
    turns.due([b"heal"], MEMBERS[0], (), 100.0)
    turns.failed(b"heal", 100.0)
    assert turns.due([b"heal"], MEMBERS[0], (), 100.5) == {b"heal": 102.0}
    turns.clear()
    assert turns.due([b"heal"], MEMBERS[0], (), 101.0) == {b"heal": 101.0}
