"""A place of real processes, host and guests, killed with SIGKILL at any moment and started again.

Whatever was announced and acknowledged is, in the end, handed once to everyone to whom it is open; all have
the same line in the same order, and the same state.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest
from tests.node.place_course import PlaceCourse
from tests.node.place_plan import PlaceSize
from tests.node.place_world import HOST, PlaceWorld

SOAK = bool(os.environ.get("LINNET_SOAK"))
SIZE = (
    PlaceSize(guests=20, late=3, ejected=2, announcements=300, talks=100, kills=24, seconds=45.0, quiet=120.0)
    if SOAK
    else PlaceSize(guests=4, late=1, ejected=1, announcements=40, talks=16, kills=3, seconds=5.0, quiet=60.0)
)
SEEDS = (1, 2, 3, 4, 5) if SOAK else (1,)


# A node's clients are closed while other threads wait in them for an answer that a killed node never gives.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(900 if SOAK else 200)
@pytest.mark.parametrize("seed", SEEDS)
def test_host_and_guests_are_killed_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    began = time.monotonic()
    luck = Random(f"places {seed}")
    with PlaceWorld(tmp_path, SIZE.guests, seed) as world:
        world.set_up(SIZE.guests - SIZE.late)
        ready = time.monotonic()
        course = PlaceCourse(world, SIZE, luck)
        course.run()
        problems = course.problems()
        ended = time.monotonic()
    heard = sum(len(each.heard) for each in world.listeners.values())
    print(
        f"seed {seed}: set up in {ready - began:.1f} s, run in {ended - ready:.1f} s, complete after "
        f"{course.settled_after}; {world.killed} killed, {len(course.said)} said, {len(course.talked)} "
        f"talked, {course.declined} declined, {course.unanswered} unanswered, {heard} heard"
    )
    assert problems == []
    assert world.killed[HOST] == 2
    assert sum(world.killed.values()) >= 2 + SIZE.kills
    assert len(course.said) > SIZE.announcements / 4
    assert len(course.talked) > SIZE.talks / 8
    assert len(course.ejected) == SIZE.ejected
    assert heard > len(course.said) * (SIZE.guests - SIZE.late - SIZE.ejected)
