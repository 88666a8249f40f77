"""Five margins between a second and the longest pause."""

from __future__ import annotations

import pytest

from linnet.lab.relays.chat_arrays import chat_arrays
from linnet.lab.relays.margins import chat_margins, longest_pause


def test_the_example_chat_of_the_thesis() -> None:
    """Its second margin is 21 s and its fourth 2 h 41 min (Schichtholz 2024, section 6.3)."""
    first, second, third, fourth, fifth = chat_margins(206_500_000)
    assert (first, fifth) == (1_000, 206_500_000)
    assert second // 1_000 == 21
    assert fourth // 60_000 == 161
    assert third == round((1_000 * 206_500_000) ** 0.5)


@pytest.mark.parametrize("longest", [*range(1_004, 1_200), 60_000, 86_400_000, 10**12])
def test_margins_rise_evenly_in_the_logarithm(longest: int) -> None:
    margins = chat_margins(longest)
    assert len(margins) == 5
    assert list(margins) == sorted(set(margins))
    for step, margin in enumerate(margins):
        assert margin == pytest.approx(1_000 * (longest / 1_000) ** (step / 4), abs=0.51, rel=1e-12)


@pytest.mark.parametrize("longest", [1_001, 1_002, 1_003])
def test_too_few_milliseconds_for_five_margins_repeat_some(longest: int) -> None:
    margins = chat_margins(longest)
    assert (len(margins), margins[0], margins[-1]) == (5, 1_000, longest)
    assert list(margins) == sorted(margins)


@pytest.mark.parametrize("longest", [0, 1, 1_000])
def test_chats_without_a_pause_of_more_than_a_second_have_none(longest: int) -> None:
    assert chat_margins(longest) == ()


def test_the_longest_pause_is_between_any_two_messages() -> None:
    assert longest_pause(chat_arrays([5, 9, 2_009, 2_010], [1, 1, 2, 1], [0] * 4)) == 2_000
    assert longest_pause(chat_arrays([5], [1], [0])) == 0
