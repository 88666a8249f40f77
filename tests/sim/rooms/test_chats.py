from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import ConfigError
from linnet.sim.rooms.chats import (
    LONGEST_WAIT,
    Period,
    Said,
    Scale,
    chat_traffic,
    online_periods,
    parse_chat,
    rescaling,
    schedule,
)
from linnet.sim.rooms.traffic import Do

TABLE_11 = """#,Date,User,Message Type,Char Count
0,00:00:00,0,1,22
1,00:00:19,0,1,14
2,00:00:29,0,1,16
3,00:01:24,1,1,50
4,00:01:54,0,1,18
5,00:13:40,1,1,21
"""
TABLE_5 = """Timestamp,User,Char Count
0,0,22
19,0,14
29,0,16
84,1,50
114,0,18
820,1,21
"""
CHATS = st.lists(st.tuples(st.integers(0, 300), st.sampled_from("abc")), min_size=1, max_size=30).map(
    lambda rows: [Said(float(time), user, 5, None) for time, user in sorted(rows)]
)
MARGINS = st.integers(1, 60).map(float)


def test_both_layouts_say_the_same() -> None:
    first, second = parse_chat(TABLE_11, "a"), parse_chat(TABLE_5, "b")
    assert [row._replace(type=None) for row in first] == second
    assert second[3] == Said(84.0, "1", 50, None)
    assert {row.type for row in first} == {"1"}


def test_times_are_relative_to_the_first_row() -> None:
    assert [row.time for row in parse_chat("Date,User,Char Count\n27:00:01,a,1\n27:01:00.5,b,2\n", "c")] == [
        0.0,
        59.5,
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column Timestamp"),
        ("Timestamp,User\n1,a", "no column Char Count"),
        ("Timestamp,Date,User,Char Count\n", "two columns for 'Date'"),
        ("Timestamp,User,Char Count,Mood\n", "column 'Mood' is not known"),
        ("Timestamp,User,Char Count\n1,a", "row 1: 2 cells for 3 columns"),
        ("Timestamp,User,Char Count\n1,a,x", "row 1: Char Count: 'x' is no number"),
        ("Timestamp,User,Char Count\n1,a,3\n00:99:00,b,1", "row 2: Timestamp: '00:99:00' is neither"),
        ("Timestamp,User,Char Count\nnan,a,3", "row 1: Timestamp: 'nan'"),
        ("Timestamp,User,Char Count\n1, ,3", "row 1: User: is empty"),
        ("Timestamp,User,Char Count\n2,a,3\n1,a,3", "a row at 1 s follows one at 2 s"),
        ('Timestamp,User,Char Count\n1,"a,3', "chat:"),
    ],
)
def test_errors_name_row_and_column(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match="chat") as caught:
        parse_chat(text, "chat")
    assert words in str(caught.value)


def test_periods_of_the_corrected_listing() -> None:
    assert online_periods([0, 19, 29, 114, 820], 21) == [Period(0, 50), Period(93, 135), Period(799, 841)]


def test_periods_that_touch_stay_two() -> None:
    assert online_periods([10, 20], 5) == [Period(5, 15), Period(15, 25)]
    with pytest.raises(ValueError, match="above 0"):
        online_periods([1], 0)


def test_somebody_between_two_periods_that_touch_goes_first() -> None:
    chat = [Said(10, "a", 1, None), Said(15, "b", 1, None), Said(20, "a", 1, None)]
    at_15 = [(row.do, row.user) for row in schedule(chat, 5) if row.time == 15]
    assert at_15 == [(Do.OFFLINE, "a"), (Do.ONLINE, "a"), (Do.MESSAGE, "b")]


def test_the_published_sample_takes_as_long_as_the_estimate_says() -> None:
    """Its median time between messages is 30 s: 14 rows, 95 s of pauses."""
    traffic = chat_traffic(parse_chat(TABLE_11, "a"), 30.0, seed=1, relays=1)
    assert len(traffic.actions) == 14
    assert traffic.seconds == 95.0
    assert (traffic.peers, traffic.relays, traffic.away) == (2, 1, ("peer0", "peer1"))


def test_bodies_have_the_length_of_the_chat_and_follow_from_the_seed() -> None:
    chat = parse_chat(TABLE_5, "b")
    said = [[a.content for a in chat_traffic(chat, 30, seed, 0).actions if a.content] for seed in (1, 1, 2)]
    assert [len(body) for body in said[0]] == [22, 14, 16, 50, 18, 21]
    assert said[0] == said[1] != said[2]


@given(CHATS, MARGINS)
def test_whoever_speaks_is_online_and_nobody_comes_twice(chat: list[Said], margin: float) -> None:
    rows = schedule(chat, margin)
    assert sum(row.do is Do.MESSAGE for row in rows) == len(chat)
    assert all(before.time <= after.time for before, after in pairwise(rows))
    online: dict[str, bool] = {}
    for row in rows:
        if row.do is Do.MESSAGE:
            assert online[row.user]
        else:
            assert online.get(row.user, False) is (row.do is Do.OFFLINE)
            online[row.user] = row.do is Do.ONLINE
    assert not any(online.values())


@given(CHATS, MARGINS)
def test_periods_do_not_overlap_and_hold_each_message_once(chat: list[Said], margin: float) -> None:
    times = [row.time for row in chat]
    periods = online_periods(times, margin)
    assert all(before.end <= after.start for before, after in pairwise(periods))
    for time in times:
        assert sum(period.start <= time < period.end for period in periods) == 1


def test_a_cut_pause_is_mapped_back_in_both_ways() -> None:
    chat = [Said(0, "a", 1, None), Said(820, "a", 1, None)]
    rows = schedule(chat, 20)
    assert [row.time for row in rows] == [0, 0, 20, 800, 820, 840]
    mapping = rescaling(rows, [100, 100, 110, 120, 130, 140])
    assert [mapping.map(time, Scale.OFFSET) for time in (99, 100, 105, 111, 120, 141)] == [
        -1, 0, 5, 21, 800, 841,
    ]  # fmt: skip
    assert [mapping.map(time, Scale.STRETCH) for time in (99, 100, 105, 111, 120, 141)] == [
        -1, 0, 10, 98, 800, 841,
    ]  # fmt: skip


@given(CHATS, MARGINS, st.sampled_from(Scale))
def test_actions_map_to_their_own_times_and_order_is_kept(
    chat: list[Said], margin: float, scale: Scale
) -> None:
    rows = schedule(chat, margin)
    logged = [50.0]
    for before, after in pairwise(rows):
        logged.append(logged[-1] + min(LONGEST_WAIT, after.time - before.time))
    mapping = rescaling(rows, logged)
    assert [mapping.map(time, scale) for time in logged] == [row.time for row in rows]
    dense = [50.0 + step / 7 for step in range(200)]
    mapped = [mapping.map(time, scale) for time in dense]
    assert all(before <= after + 1e-9 for before, after in pairwise(mapped))


def test_a_schedule_needs_a_time_for_each_action() -> None:
    with pytest.raises(ValueError, match="one logged time"):
        rescaling([], [])
