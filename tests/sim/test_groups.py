from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from linnet.core.ids import EventId
from linnet.groups.ids import MemberId
from linnet.groups.state import Hardening
from linnet.sim.groups import divergences, run_groups
from linnet.sim.groups_course import Course
from linnet.sim.groups_report import GroupScenario
from linnet.sim.overheard import Overheard, Theft
from linnet.testing.safety import Burglar

SCRIPT = Path(__file__).with_name("replay_groups.py")
SMALL = GroupScenario(members=5, ops=30, partitions=2, thefts=3, seed=2)


class Seer:
    """A thief that reads everything, by magic: what it reads of what is safe is counted."""

    def __init__(self, group: bytes, heard: Sequence[Overheard]) -> None:
        self.messages = [each.id for each in heard if each.clear]

    def reader(self) -> Seer:
        return self

    def steal(self, data: bytes) -> None:
        pass

    def read(self) -> dict[EventId, bytes]:
        return dict.fromkeys(self.messages, b"")

    def safe(self, thefts: Iterable[Theft]) -> frozenset[EventId]:
        return frozenset(self.messages[: len(list(thefts))])

    def removed(self) -> dict[EventId, frozenset[MemberId]]:
        return {self.messages[0]: frozenset({MemberId(b"x" * 16)})}


def test_a_group_that_is_cut_apart_and_robbed_agrees_reads_and_is_safe() -> None:
    report = run_groups(SMALL, Burglar)
    assert report.ok
    assert (report.diverged, report.unreadable, report.leaked, report.misread) == (0, 0, 0, 0)
    assert report.ops >= 30
    assert report.updates + report.additions + report.removals + report.leaves == report.ops
    assert report.messages >= 30
    assert report.pairs > 30
    assert report.safe > 50
    assert report.read > 5
    assert report.thefts == 3
    assert report.bytes_per_update > 200
    assert report.healed_after_ops <= report.healed_after_ops_max


def test_a_leak_is_counted() -> None:
    """One message safe from each of three thefts, three from all; and one read by the removed."""
    report = run_groups(SMALL, Seer)
    assert report.safe == 6
    assert report.leaked == 7
    assert not report.ok


def test_where_nobody_heals_the_removed_are_not_asked_about_what_was_said_too_early() -> None:
    scenario = GroupScenario(
        members=5, ops=30, partitions=2, thefts=0, seed=2, hardening=Hardening(heal_before_sending=False)
    )
    report = run_groups(scenario, Burglar)
    assert (report.heals, report.leaked, report.diverged) == (0, 0, 0)


def test_a_member_with_other_keys_is_noticed() -> None:
    course = Course(SMALL)
    course.run(lambda done, what: None)
    assert list(divergences(course.net)) == []
    one = course.net.machines[course.net.members()[-1]].state
    one.ratchets[next(iter(one.ratchets))] = bytes(32)
    assert any("other keys" in line for line in divergences(course.net))


def replay(hash_seed: int) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout


def test_a_seed_replays_in_any_process() -> None:
    first = replay(1)
    assert "trace_sha256" in first
    assert first == replay(2)


def test_another_seed_is_another_run() -> None:
    one, other = (
        run_groups(GroupScenario(members=3, ops=8, partitions=1, thefts=1, seed=seed), Burglar)
        for seed in (1, 2)
    )
    assert one.trace_sha256 != other.trace_sha256
    assert one != other
    assert one == one.timeless()
