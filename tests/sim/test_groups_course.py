from __future__ import annotations

from linnet.groups import agreement
from linnet.sim.groups_course import Course
from linnet.sim.groups_report import GroupScenario


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
