"""Profiles and the selection of chats."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.relays.chat_arrays import chat_arrays, index_chat
from linnet.lab.relays.profile import Filters, Profile, estimated_run, profile, steps
from linnet.sim.rooms.chats import Said, schedule

SAMPLE = [(0, 0, 22), (19, 0, 14), (29, 0, 16), (84, 1, 50), (114, 0, 18), (820, 1, 21)]
"""Schichtholz 2024, Table 11."""

PASSING = Profile(30, 30, 0, 0, 0, 0, 3 * 3_600_000)


def test_the_published_sample_has_its_median_and_runs_for_95_seconds() -> None:
    times, users, chars = zip(*SAMPLE, strict=True)
    found = profile(index_chat(chat_arrays([1000 * time for time in times], users, chars)))
    assert found == Profile(2, 6, 141, 820_000, 30_000, 706_000, 95_000)


chats = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), min_size=1, max_size=15)


@given(chats, st.integers(1, 20))
def test_the_estimate_is_that_of_the_schedule(rows: list[tuple[int, int]], margin: int) -> None:
    """Touching periods are merged here and not there, so margins are such that none touch."""
    rows = sorted((time - min(t for t, _ in rows), user) for time, user in rows)
    said = [Said(float(time), str(user), 0, None) for time, user in rows]
    waits = [min(10.0, b.time - a.time) for a, b in pairwise(schedule(said, margin + 0.25))]
    index = index_chat(chat_arrays([1000 * t for t, _ in rows], [u for _, u in rows], [0] * len(rows)))
    assert estimated_run(index, 1000 * margin + 250) == 1000 * sum(waits)


def test_filters_are_passed_one_after_another() -> None:
    assert steps(PASSING, True, Filters()) == (True, True, True, True)
    assert steps(PASSING, False, Filters()) == (False, False, False, False)
    assert steps(PASSING._replace(members=31), True, Filters()) == (True, False, False, False)
    assert steps(PASSING._replace(estimate=10_800_001), True, Filters()) == (True, True, False, False)
    assert steps(PASSING._replace(messages=29), True, Filters()) == (True, True, True, False)
