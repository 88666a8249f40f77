"""Real processes in the open world, for each way to subscribe: struck by faults, and judged from outside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import SOAK
from tests.node.open_content import OpenContent
from tests.node.open_course import FAULTS, OpenCourse, plan_of
from tests.node.open_places import OpenPlaces
from tests.node.open_rooms import OpenRooms
from tests.node.open_streams import OpenStreams
from tests.node.struck_world import StruckWorld
from tests.node.tcp_proxies import SOCKETS

from linnet.sim.nemesis.faults import HARD, LEAST, Fault

SOAKED = range(1, 11)
EFFECTS: defaultdict[str, Counter[Fault]] = defaultdict(Counter)
"""What came of the faults of all seeds, by way."""
SHOWN = 12
"""Complaints of a failed run: what was done to it must stay in sight."""
SEEDS = SOAKED if SOAK else (1,)
pytestmark = pytest.mark.skipif(not SOCKETS.exists(), reason="only Linux tells proxies whose process dials")
FOUND = (("places", 6),)
"""Runs of the soak that found a fault: a host acknowledged what nobody got."""
WAYS: dict[str, Callable[[Path, int], StruckWorld]] = {
    way.way: way for way in (OpenStreams, OpenRooms, OpenPlaces, OpenContent)
}

RUNS = list(dict.fromkeys([*((way, seed) for way in WAYS for seed in SEEDS), *FOUND]))


# A node's clients are closed while other threads wait in them for an answer that a killed node never gives.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("way", "seed"), RUNS)
def test_processes_keep_their_promises(tmp_path: Path, way: str, seed: int) -> None:
    with WAYS[way](tmp_path, seed) as world:
        course = OpenCourse(world)
        complaints = course.run()
    print(way, seed, course.took, world.acknowledged, "acknowledged", world.handed, "handed", course.effects)
    told = "\n".join([*world.log, *world.last_words(), *map(str, complaints[:SHOWN])])
    assert len(complaints) == 0, told
    assert sum(course.struck[fault] > 0 for fault in HARD) >= LEAST
    assert world.acknowledged > 20
    assert world.handed > 20
    EFFECTS[way].update(course.effects)
    if seed == SEEDS[0]:
        assert [fault for fault, effects in course.effects.items() if not effects] == [], told


@pytest.mark.skipif(not SOAK, reason="the first seed alone has to show an effect of each of its faults")
@pytest.mark.parametrize("way", WAYS)
def test_every_fault_had_an_effect_in_some_seed(way: str) -> None:
    """A disk may be damaged before anything is on it, and a small share of few packets may be none."""
    assert len(EFFECTS[way]) > 2
    assert [fault for fault, effects in EFFECTS[way].items() if not effects] == []


def test_every_fault_strikes_in_every_way_and_all_in_the_first_seeds(tmp_path: Path) -> None:
    first: Counter[Fault] = Counter()
    for way, new in WAYS.items():
        with new(tmp_path / way, 1) as world:
            plans = [plan_of(world.cast, way, seed) for seed in SOAKED]
        struck = Counter(strike.fault for plan in plans for strike in plan)
        assert [fault for fault in FAULTS if not struck[fault]] == [], way
        first.update(strike.fault for strike in plans[0])
    assert [fault for fault in FAULTS if not first[fault]] == []
