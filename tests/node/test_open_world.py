"""A room of real processes in the open world: restarted, moved, paused, killed, and judged from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.node.crash_world import CrashWorld
from tests.node.open_course import FAULTS, OpenCourse

SEEDS = range(1, 11) if os.environ.get("LINNET_SOAK") else (1,)


# A node's clients are closed while other threads wait in them for an answer that a killed node never gives.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_room_of_processes_keeps_its_promises(tmp_path: Path, seed: int) -> None:
    with CrashWorld(tmp_path, 4, 1, seed) as world:
        world.set_up()
        course = OpenCourse(world, seed)
        course.run()
        course.settled()
        complaints = course.judge()
    assert complaints == [], course.struck
    assert sorted(course.struck) == sorted(FAULTS)
    assert len(course.said) > 3 * len(FAULTS)
    assert course.rulings
