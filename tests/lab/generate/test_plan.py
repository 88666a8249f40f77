"""A plan is exact in its totals and even in its tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.errors import LabError
from linnet.lab.generate.plan import START_MS, ChatPlan, Granularity, plan_chats, split_tasks

YEAR_MS = 365 * 86_400_000


def test_a_plan_has_what_was_asked_for() -> None:
    plans = plan_chats(5_956, 76_000_000, Granularity.PUBLISHED, 1)
    assert [plan.number for plan in plans] == list(range(1, 5_957))
    assert sum(plan.messages for plan in plans) == 76_000_000
    assert sum(plan.granularity == "s" for plan in plans) == 1_598
    assert all(plan.messages >= plan.members for plan in plans)
    assert max(plan.messages for plan in plans) == pytest.approx(1e6, rel=0.01)
    assert (plans[0].name, plans[-1].name) == ("c00001", "c05956")
    assert all(0 <= plan.start_ms - START_MS < YEAR_MS and plan.start_ms % 60_000 == 0 for plan in plans)


def test_the_seed_decides_which_chat_is_which() -> None:
    first = plan_chats(100, 50_000, Granularity.PUBLISHED, 1)
    assert first == plan_chats(100, 50_000, Granularity.PUBLISHED, 1)
    other = plan_chats(100, 50_000, Granularity.PUBLISHED, 2)
    assert first != other
    assert sorted(plan.members for plan in first) == sorted(plan.members for plan in other)


def test_members_and_messages_are_independent() -> None:
    plans = plan_chats(2_000, 5_000_000, Granularity.PUBLISHED, 3)
    middle = sorted(plan.messages for plan in plans)[1_000]
    above = [plan.members for plan in plans if plan.messages > middle]
    assert sum(size == 2 for size in above) / len(above) == pytest.approx(0.42, abs=0.04)


def test_all_may_be_in_seconds() -> None:
    assert {plan.granularity for plan in plan_chats(20, 5_000, Granularity.SECONDS, 1)} == {"s"}


@pytest.mark.parametrize("chats", [0, 100_000])
def test_the_number_of_chats_has_limits(chats: int) -> None:
    with pytest.raises(LabError, match="from 1 to 99,999"):
        plan_chats(chats, 5_000_000, Granularity.SECONDS, 1)


@given(st.lists(st.integers(2, 500), min_size=1, max_size=60), st.integers(1, 700))
def test_tasks_are_even(messages: list[int], size: int) -> None:
    plans = [ChatPlan(n, 2, count, "s", START_MS) for n, count in enumerate(messages, 1)]
    tasks = split_tasks(plans, size)
    assert sorted(plan for task in tasks for plan in task) == plans
    assert all(tasks)
    loads = [sum(plan.messages for plan in task) for task in tasks]
    # The fullest got its last chat when it had the least.
    fullest = tasks[loads.index(max(loads))]
    assert max(loads) - min(plan.messages for plan in fullest) <= min(loads)


def test_tasks_at_full_size_differ_by_little() -> None:
    plans = plan_chats(5_956, 76_000_000, Granularity.PUBLISHED, 1)
    loads = [sum(plan.messages for plan in task) for task in split_tasks(plans)]
    assert len(loads) == 64
    assert max(loads) - min(loads) < 1_000
