"""Nodes without any tracker, killed with SIGKILL at any moment and started again: their streams lose nothing.

Whatever a node has acknowledged to a publisher is, in the end, handed to every durable reader of the
stream, each event once and each publisher's in order.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest
from tests.node.ring_course import RingCourse, RingSize, interests
from tests.node.ring_world import RingWorld

SOAK = bool(os.environ.get("LINNET_SOAK"))
SIZE = (
    RingSize(nodes=40, topics=10, subscriptions=3, keepers=2, events=400, kills=40, seconds=60.0, quiet=180.0)
    if SOAK
    else RingSize(nodes=6, topics=2, subscriptions=2, keepers=2, events=40, kills=4, seconds=6.0, quiet=60.0)
)
SEEDS = (1, 2, 3) if SOAK else (1,)


# A node's clients are closed while other threads wait in them for an answer that a killed node never gives.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(2400 if SOAK else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_tracker_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    began = time.monotonic()
    luck = Random(f"rings {seed}")
    with RingWorld(tmp_path, interests(SIZE, luck), SIZE.keepers, seed) as world:
        world.set_up()
        ready = time.monotonic()
        course = RingCourse(world, SIZE, luck)
        course.run()
        ended = time.monotonic()
        world.halt()
        problems = course.problems()
    kills = sum(world.killed.values())
    repeated = sum(len(reader.heard) - len({each.event for each in reader.heard}) for reader in world.readers)
    print(
        f"seed {seed}: {len(world.nodes)} nodes, {len(world.readers)} readers, set up in "
        f"{ready - began:.1f} s, run in {ended - ready:.1f} s, complete after {course.settled_after}; "
        f"{kills} kills, {len(course.said)} acknowledged, {course.declined} declined, "
        f"{course.unanswered} unanswered; {course.pairs} pairs, {repeated} repeated after a crash"
    )
    assert problems == []
    assert kills >= SIZE.kills
    assert len(course.said) > SIZE.events / 4
    assert course.pairs > len(course.said)
