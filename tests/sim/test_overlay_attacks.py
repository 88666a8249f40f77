"""Every attack has a number, and keeps its bound: in small networks here, in larger ones for the report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.intersecting import guesses
from linnet.sim.overlay_attacks import (
    ATTACKS,
    SMALL,
    AttackRow,
    AttackSize,
    attack_rows,
    intersection_probing,
)

NAMES = [
    "eclipse of one victim",
    "poisoned ring",
    "intersection probing",
    "filter forgery",
    "withheld events",
    "flood",
]


@pytest.mark.parametrize(("attack", "name"), list(zip(ATTACKS, NAMES, strict=True)))
def test_every_attack_keeps_its_bounds(
    attack: Callable[[AttackSize], Iterator[AttackRow]], name: str
) -> None:
    rows = list(attack(SMALL))
    assert [row for row in rows if not row.holds] == []
    assert {row.attack for row in rows} == {name}
    assert len({row.measure for row in rows}) == len(rows)


def test_all_guesses_that_are_allowed_are_answered_and_no_more() -> None:
    """So the bound is what is measured: nothing else holds probers back."""
    together, alone = intersection_probing(SMALL)
    assert together.value == together.bound == guesses(TrackerlessConfig()) == 7680
    assert alone.value == alone.bound == 1536


def test_a_bound_is_a_most_or_a_least() -> None:
    assert AttackRow("a", "m", 1.0, 1.0, True).holds
    assert not AttackRow("a", "m", 1.1, 1.0, True).holds
    assert AttackRow("a", "m", 1.0, 1.0, False).holds
    assert not AttackRow("a", "m", 0.9, 1.0, False).holds


@pytest.mark.skipif(not os.environ.get("LINNET_SOAK"), reason="a heavy count; `make soak` runs it")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_larger_networks_keep_the_bounds_too(seed: int) -> None:
    assert [row for row in attack_rows(AttackSize(seed=seed)) if not row.holds] == []
