"""Nodes of content that are killed with SIGKILL at any moment and started again.

What a publisher was told to have arrived everywhere is, in the end, handed to every application that wants
it, once. What is lost is told to the publisher. No more nodes are away at once than keep the filters of one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest
from tests.node.content_course import ContentCourse, ContentSize
from tests.node.content_world import ContentCrashWorld

SOAK = bool(os.environ.get("LINNET_SOAK"))
SIZE = (
    ContentSize(nodes=30, events=300, kills=25, seconds=100.0, quiet=120.0)
    if SOAK
    else ContentSize(nodes=5, events=30, kills=2, seconds=6.0, quiet=30.0)
)
SEEDS = (1,)


# A node's clients are closed while other threads wait in them for an answer that a killed node never gives.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(2400 if SOAK else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_missing_unless_it_was_told_and_nothing_comes_twice(tmp_path: Path, seed: int) -> None:
    began = time.monotonic()
    luck = Random(f"content {seed}")
    with ContentCrashWorld(tmp_path, SIZE.nodes, seed) as world:
        world.set_up()
        ready = time.monotonic()
        course = ContentCourse(world, SIZE, luck)
        course.run()
        ended = time.monotonic()
        world.halt()
        problems = course.problems()
    kills = sum(world.killed.values())
    heard = sum(len({each.event for each in reader.heard}) for reader in world.readers.values())
    print(
        f"seed {seed}: {len(world.nodes)} nodes, set up in {ready - began:.1f} s, "
        f"run in {ended - ready:.1f} s, complete after {course.settled_after}; {kills} kills, "
        f"{len(course.said)} answered, {course.unanswered} unanswered; {course.pairs} pairs, "
        f"{heard} handed over, {course.told} lost and told"
    )
    assert problems == []
    assert kills >= SIZE.kills
    assert len(course.said) > SIZE.events / 4
    assert heard > 0
