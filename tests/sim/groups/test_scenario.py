from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from linnet.core.errors import ConfigError
from linnet.core.ids import EventId
from linnet.groups import agreement
from linnet.groups.labels import MemberId
from linnet.groups.state import Act, Hardening, Op
from linnet.sim.attacks.group_attacker import Attacker
from linnet.sim.groups.safety import Burglar
from linnet.sim.groups.scenario import Course, GroupScenario, divergences, reading, run_groups
from linnet.sim.groups.world import Theft

SMALL = GroupScenario(members=5, ops=30, partitions=2, thefts=3, seed=2)


class ReadsAll(Attacker):
    """Reads everything, by magic."""

    def read(self) -> dict[EventId, bytes]:
        return {each.id: b"" for each in self.ledger.messages}


class Seer(Burglar):
    """What it reads of what is safe is counted."""

    def reader(self) -> Attacker:
        return ReadsAll(self.ledger)

    def safe(self, thefts: Iterable[Theft]) -> frozenset[EventId]:
        return frozenset(each.id for each in self.ledger.messages[: len(list(thefts))])

    def removed(self) -> dict[EventId, frozenset[MemberId]]:
        return {self.ledger.messages[0].id: frozenset({MemberId(b"x" * 16)})}


def test_a_group_that_is_cut_apart_and_robbed_agrees_reads_and_is_safe() -> None:
    report = run_groups(SMALL)
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
    report = run_groups(SMALL, thief=Seer)
    assert report.safe == 6
    assert report.leaked == 7
    assert not report.ok


def test_where_nobody_heals_the_removed_are_not_asked_about_what_was_said_too_early() -> None:
    scenario = GroupScenario(
        members=5, ops=30, partitions=2, thefts=0, seed=2, hardening=Hardening(heal_before_sending=False)
    )
    report = run_groups(scenario)
    assert (report.heals, report.leaked, report.diverged) == (0, 0, 0)


def test_a_member_with_other_keys_is_noticed() -> None:
    course = Course(SMALL)
    course.run(lambda done, what: None)
    assert list(divergences(course.net)) == []
    one = course.net.machines[course.net.members()[-1]].state
    one.ratchets[next(iter(one.ratchets))] = bytes(32)
    assert any("other keys" in line for line in divergences(course.net))


def test_each_divergence_is_told_by_its_name() -> None:
    course = Course(SMALL, keep_all=True)
    course.run(lambda done, what: None)
    machine = course.net.machines[course.net.members()[-1]]
    state, view = machine.state, agreement.members(machine.state)
    other = next(each for each in machine.kept if each.me == state.me and agreement.members(each) != view)
    member = next(each for each in view if each != state.me)
    waiting = Op(member, 1, Act.SEED, 1, 0.0, None, {member: None})
    for changed, line in (
        (other, f"{machine.name} sees other members"),
        (replace(state, ops={course.ops[0][1]: waiting}), f"{machine.name} still waits for acknowledgements"),
        (replace(state, me=None), "the members are not those who think that they are"),
    ):
        machine.state = changed
        assert list(divergences(course.net)) == [line]


def test_what_is_not_read_and_what_is_read_by_others_is_counted() -> None:
    course = Course(SMALL)
    course.run(lambda done, what: None)
    net = course.net
    before = reading(net)
    assert (before["unreadable"], before["misread"]) == (0, 0)
    present = {net.machines[place].state.me: net.machines[place] for place in net.members()}
    said, reader = next(
        (said, each) for said in net.said.values() for each in said.readers if each in present
    )
    text = present[reader].opened.pop((reader, said.id))
    assert reading(net) == before | {"unreadable": 1}
    present[reader].opened[reader, said.id] = text + "!"
    assert reading(net) == before | {"unreadable": 1}
    present[reader].opened[reader, said.id] = text
    present[reader].opened[MemberId(b"x" * 16), said.id] = text
    assert reading(net) == before | {"misread": 1}


def test_another_seed_is_another_run() -> None:
    one, other = (
        run_groups(GroupScenario(members=3, ops=8, partitions=1, thefts=1, seed=seed)) for seed in (1, 2)
    )
    assert one.trace_sha256 != other.trace_sha256
    assert one != other
    assert one == one.timeless()


@pytest.mark.parametrize(
    "wrong",
    [
        GroupScenario(members=1),
        GroupScenario(members=129),
        GroupScenario(ops=0),
        GroupScenario(thefts=-1),
        GroupScenario(partitions=-1),
        GroupScenario(patience=1.5),
        GroupScenario(messages=-1),
    ],
)
def test_what_is_no_group_is_refused(wrong: GroupScenario) -> None:
    with pytest.raises(ConfigError):
        wrong.check()


def test_the_rest_is_fine() -> None:
    GroupScenario().check()


def course(**changes: float) -> Course:
    scenario = GroupScenario(members=4, ops=24, partitions=1, thefts=2, seed=int(changes.get("seed", 4)))
    done = Course(scenario, keep_all=bool(changes.get("keep_all")))
    done.run(lambda share, what: None)
    return done


def test_at_the_end_all_have_met_and_nothing_is_under_way() -> None:
    done = course()
    net = done.net
    assert net.members()
    assert all(not net.reachable(place) for place in range(done.devices))
    assert len(done.last_words) == len(net.members())
    assert not any(agreement.owes_acks(machine.state) for machine in net.machines)


def test_all_that_was_asked_for_happened() -> None:
    done = course()
    assert len(done.robberies) == 2
    assert sum(done.counts[kind] for kind in ("update", "add", "remove", "leave")) == len(done.ops)
    assert len(done.ops) >= 24
    assert all(0 < robbery.heard <= len(done.net.overheard) for robbery in done.robberies)


def test_who_asked_to_leave_and_who_has_new_keys_is_removed_first() -> None:
    done = Course(GroupScenario(members=3, ops=1, partitions=0, thefts=0, seed=1))
    done.net.create(0, [1, 2])
    done.settle()
    done.net.leave(1)
    done.settle()
    assert done.tidy(0)
    done.settle()
    assert done.net.members() == [0, 2]
    assert not done.tidy(0)


def test_all_states_are_kept_where_that_is_wanted() -> None:
    few, all_of_them = course(), course(keep_all=1)
    assert few.net.trace_sha256 == all_of_them.net.trace_sha256
    assert sum(len(machine.kept) for machine in few.net.machines) < sum(
        len(machine.kept) for machine in all_of_them.net.machines
    )
