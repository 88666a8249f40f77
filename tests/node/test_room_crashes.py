"""A room of real processes, any of which is killed with SIGKILL at any moment and started again.

Nothing acknowledged is lost, nothing unauthorised is delivered, and all members end in the same state.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.node.crash_course import Course
from tests.node.crash_plan import Size
from tests.node.crash_verdict import Verdict
from tests.node.crash_world import CrashWorld

SOAK = bool(os.environ.get("LINNET_SOAK"))
SIZE = (
    Size(peers=20, relays=3, messages=160, bans=4, demotions=2, kills=16, seconds=30.0, quiet=60.0)
    if SOAK
    else Size(peers=4, relays=1, messages=40, bans=1, demotions=1, kills=3, seconds=6.0, quiet=30.0)
)
SEEDS = range(1, 21) if SOAK else (1,)


# A node's clients are closed while other threads wait in them for an answer that a killed node never gives.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(600 if SOAK else 120)
@pytest.mark.parametrize("seed", SEEDS)
def test_processes_are_killed_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    began = time.monotonic()
    with CrashWorld(tmp_path, SIZE.peers, SIZE.relays, seed) as world:
        world.set_up()
        ready = time.monotonic()
        course = Course(world, seed, SIZE)
        course.run()
        settled = time.monotonic()
        world.halt()
        verdict = Verdict(world, course)
        problems = verdict.problems()
    kills = sum(world.killed.values())
    print(
        f"seed {seed}: set up in {ready - began:.1f} s, run in {settled - ready:.1f} s, "
        f"judged in {time.monotonic() - settled:.1f} s; {kills} kills, {len(course.banned)} banned, "
        f"{len(course.said)} acknowledged, {course.declined} declined, {course.unanswered} unanswered; "
        f"{verdict.pairs} pairs, {verdict.endangered} endangered, {verdict.pending} pending, "
        f"{len(course.claims)} claims"
    )
    assert problems == []
    assert all(world.killed[relay.name] >= 2 for relay in world.relays)
    assert kills >= 2 * SIZE.relays + SIZE.kills
    assert len(course.said) > SIZE.messages / 4
    assert verdict.pairs > len(course.said)
    assert course.finals
    assert len(course.banned) >= SIZE.bans
