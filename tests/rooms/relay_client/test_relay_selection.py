"""The choice of relays: the same everywhere, even, and never one that has just failed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from hashlib import sha256
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId, TopicId
from linnet.rooms.config import RelayChoice
from linnet.rooms.relay_client.roster import RelaySelection, kept_seed
from linnet.store.memory import MemoryStore

ROOM = TopicId(bytes(32))


def relay(number: int) -> PeerId:
    return PeerId(sha256(b"relay %d" % number).digest())


def room(number: int) -> TopicId:
    return TopicId(sha256(b"room %d" % number).digest())


RELAYS = [relay(number) for number in range(5)]


@given(st.permutations(RELAYS), st.sampled_from(RelayChoice), st.integers(0, 2**64 - 1), st.integers(0, 9))
def test_the_order_in_which_relays_are_known_plays_no_role(
    relays: list[PeerId], choice: RelayChoice, seed: int, turn: int
) -> None:
    chooser = RelaySelection(ROOM, choice, seed)
    order = chooser.order(relays, turn, {relay(3): 0.1})
    assert order == chooser.order(RELAYS, turn, {relay(3): 0.1})
    assert sorted(order) == sorted(RELAYS)
    assert chooser.order([], turn, {}) == []


def test_the_same_seed_chooses_the_same_in_another_process() -> None:
    code = (
        "from linnet.rooms.relay_client.roster import *;"
        "from linnet.core.ids import PeerId, TopicId;"
        "relays = [PeerId(bytes([n]) * 32) for n in range(9)];"
        "print([r[0] for c in (RelayChoice.RANDOM, RelayChoice.SPREAD)"
        " for r in RelaySelection(TopicId(bytes(32)), c, 7).order(relays, 0, {})])"
    )
    relays = [PeerId(bytes([n]) * 32) for n in range(9)]
    ours = [
        chosen[0]
        for choice in (RelayChoice.RANDOM, RelayChoice.SPREAD)
        for chosen in RelaySelection(ROOM, choice, 7).order(relays, 0, {})
    ]
    theirs = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert theirs.stdout.strip() == str(ours)


def test_a_relay_that_goes_changes_only_the_choice_of_its_own_rooms() -> None:
    gone = relay(2)
    left = [one for one in RELAYS if one != gone]
    for number in range(100):
        chooser = RelaySelection(room(number), RelayChoice.RANDOM, 1)
        before = chooser.order(RELAYS, 0, {})
        assert chooser.order(left, 0, {}) == [one for one in before if one != gone]


@pytest.mark.parametrize("choice", [RelayChoice.RANDOM, RelayChoice.SPREAD])
def test_load_is_even_over_many_rooms_and_over_many_members(choice: RelayChoice) -> None:
    rooms = Counter(RelaySelection(room(number), choice, 1).order(RELAYS, 0, {})[0] for number in range(5000))
    members = Counter(RelaySelection(ROOM, choice, seed).order(RELAYS, 0, {})[0] for seed in range(5000))
    for load in (rooms, members):
        # 1,000 each is expected, with a standard deviation of 28.
        assert all(850 < load[one] < 1150 for one in RELAYS)


@pytest.mark.parametrize("choice", [RelayChoice.RANDOM, RelayChoice.SPREAD])
def test_every_relay_has_its_turn(choice: RelayChoice) -> None:
    chooser = RelaySelection(ROOM, choice, 3, rotate=60.0)
    firsts = [chooser.order(RELAYS, turn, {})[0] for turn in range(10)]
    assert sorted(firsts[:5]) == sorted(RELAYS)
    assert firsts[:5] == firsts[5:]


def test_rooms_of_a_member_are_spread_and_move_on_together() -> None:
    choosers = [RelaySelection(room(number), RelayChoice.SPREAD, 3) for number in range(200)]
    first = [chooser.order(RELAYS, 0, {}) for chooser in choosers]
    second = [chooser.order(RELAYS, 1, {}) for chooser in choosers]
    assert len({order[0] for order in first}) == len(RELAYS)
    assert [order[1] for order in first] == [order[0] for order in second]


def test_the_nearest_is_first_and_the_unknown_last() -> None:
    chooser = RelaySelection(ROOM, RelayChoice.NEAREST, 3)
    a, b, c, d, e = sorted(RELAYS)
    assert chooser.order(RELAYS, 4, {c: 0.02, b: 0.3, e: 0.02}) == [c, e, b, a, d]


def test_turns_follow_the_clock_and_do_not_all_end_at_once() -> None:
    chooser = RelaySelection(ROOM, RelayChoice.SPREAD, 3, rotate=60.0)
    left = chooser.until_next_turn(1000.0)
    assert left is not None
    assert 0 < left <= 60
    assert chooser.turn(1000.0 + left + 1e-6) == chooser.turn(1000.0) + 1
    assert chooser.turn(1000.0 + left - 1e-6) == chooser.turn(1000.0)
    ends = {RelaySelection(ROOM, RelayChoice.SPREAD, seed, 60.0).until_next_turn(0.0) for seed in range(10)}
    assert len(ends) == 10
    still = RelaySelection(ROOM, RelayChoice.SPREAD, 3)
    assert (still.turn(1e9), still.until_next_turn(1e9)) == (0, None)


def test_a_seed_is_drawn_once_and_kept() -> None:
    cells = MemoryStore().cells
    assert kept_seed(5, cells, Random(1)) == 5
    drawn = kept_seed(None, cells, Random(1))
    assert kept_seed(None, cells, Random(2)) == drawn
    assert kept_seed(None, MemoryStore().cells, Random(2)) != drawn
