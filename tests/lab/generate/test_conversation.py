"""One chat: each law against a plain loop over the same bits, and what is promised of all together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from linnet.lab.generate.conversation import chain, converse, draw_pauses, everybody, shortened
from linnet.lab.generate.facts import NEXT_KIND, PARTICIPATION
from linnet.lab.generate.laws import SLOTS, next_kinds, pause_parts, pause_seconds
from linnet.lab.generate.luck import Luck
from linnet.lab.generate.plan import LONGEST_S, START_MS, ChatPlan

BITS = st.lists(st.integers(0, SLOTS - 1), max_size=60).map(lambda bits: np.array(bits, dtype=np.uint16))
# Steps that do not lead to a text from everywhere, in long rows.
LATE_BITS = st.lists(st.integers(SLOTS // 2, SLOTS - 1), max_size=60).map(
    lambda bits: np.array(bits, dtype=np.uint16)
)


def one(members: int, messages: int, granularity: str = "s", number: int = 1) -> ChatPlan:
    return ChatPlan(number, members, messages, granularity, START_MS)


@given(BITS | LATE_BITS)
def test_kinds_follow_one_another(steps: NDArray[np.uint16]) -> None:
    kind, expected = 0, []
    for step in steps.tolist():
        kind = int(next_kinds()[kind * SLOTS + step])
        expected.append(kind)
    assert chain(steps).tolist() == expected


def test_kinds_follow_at_the_published_rates() -> None:
    kinds = chain(Luck(1, 1).halves(200_000)).astype(np.int64)
    seen = np.bincount(kinds[:-1] * 4 + kinds[1:], minlength=16).reshape(4, 4)
    for row, shares in zip(seen, NEXT_KIND, strict=True):
        assert row / row.sum() == pytest.approx([each / sum(shares) for each in shares], abs=0.03)


@given(st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1)), max_size=40))
def test_a_pause_is_an_entry_of_its_part(bits: list[tuple[int, int]]) -> None:
    parts = np.array([part for part, _ in bits], dtype=np.uint16)
    places = np.array([place for _, place in bits], dtype=np.uint16)
    expected = [int(pause_seconds()[int(pause_parts()[a]) * SLOTS + b]) for a, b in bits]
    assert draw_pauses(parts, places).tolist() == expected


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=50), st.integers(0, 100_000))
def test_long_pauses_are_drawn_in(seconds: list[int], longest: int) -> None:
    pauses = np.array(seconds, dtype=np.int64)
    short = shortened(pauses, longest)
    if sum(seconds) <= longest:
        assert short.tolist() == seconds
        return
    least = sum(min(each, 120) for each in seconds)
    assert short.sum() <= max(longest, least)
    assert short.sum() > max(longest, least) - len(seconds)
    assert all(a == b if b <= 120 else 120 <= a <= b for a, b in zip(short.tolist(), seconds, strict=True))


@given(st.integers(2, 60), st.integers(0, 100), st.integers(0, 5))
def test_everybody_writes(members: int, more: int, seed: int) -> None:
    luck = Luck(seed, 1)
    drawn = (luck.halves(members + more) % 3 % members).astype(np.uint8)
    before = drawn.copy()
    author = everybody(drawn, members, luck)
    assert set(author.tolist()) == set(range(members))
    missing = set(range(members)) - set(before.tolist())
    assert int((author != before).sum()) == len(missing)


@pytest.mark.parametrize("granularity", ["s", "min"])
def test_pauses_meet_the_published_shares(granularity: str) -> None:
    ts = converse(one(5, 100_000, granularity), 1).ts
    pauses = np.diff(ts)
    assert pauses.min() >= 0
    assert (pauses < 60_000).mean() == pytest.approx(0.69, abs=0.03)
    assert (pauses < 120_000).mean() == pytest.approx(0.76, abs=0.03)
    assert not (ts % (60_000 if granularity == "min" else 1_000)).any()
    assert ts[0] == START_MS


def test_a_giant_lasts_ten_years_and_keeps_its_short_pauses() -> None:
    ts = converse(one(2, 400_000), 1).ts
    assert LONGEST_S * 999 < ts[-1] - ts[0] <= LONGEST_S * 1000
    assert (np.diff(ts) < 60_000).mean() == pytest.approx(0.711, abs=0.003)
    assert (np.diff(ts) < 120_000).mean() == pytest.approx(0.752, abs=0.003)


def test_the_first_ranks_write_most() -> None:
    author = converse(one(20, 50_000), 1).author
    row = next(each for each in PARTICIPATION if each.members >= 20)
    shares = np.bincount(author) / len(author)
    assert shares[:3] == pytest.approx(row.ranked, abs=0.01)
    assert len(shares) == 20


def test_only_texts_have_characters() -> None:
    said = converse(one(3, 20_000), 1)
    assert not said.chars[said.kind != 0].any()
    assert np.median(said.chars[said.kind == 0]) == pytest.approx(20, abs=1)  # published: 20


def test_a_chat_is_by_seed_and_number() -> None:
    def of(seed: int, number: int) -> list[list[int]]:
        return [column.tolist() for column in converse(one(4, 50, number=number), seed)]

    assert of(1, 1) == of(1, 1)
    assert of(1, 1) != of(1, 2)
    assert of(1, 1) != of(2, 1)


def test_the_shortest_chat_has_one_message_of_each() -> None:
    said = converse(one(2, 2), 1)
    assert sorted(said.author.tolist()) == [0, 1]
    assert [len(column) for column in said] == [2, 2, 2, 2]
