"""What stands beside the benchmark."""

from __future__ import annotations

from itertools import count, pairwise

import pytest

from linnet.groups import agreement, membership
from linnet.lab.errors import CheckFailed
from linnet.lab.studies.groups import probes
from linnet.lab.studies.groups.workload import CATCH_UP, FUZZ, MULTI, SINGLE, STATE, VIEW, Case


@pytest.mark.parametrize(("acks", "events"), [(SINGLE, 10 + 5 * 5), (MULTI, 10 + 5 + 3 + 2 + 1)])
def test_who_was_away_follows_all_again(acks: str, events: int) -> None:
    absence = probes.Absence(Case(CATCH_UP, acks, 5, 7, 0, 3))
    absence.run()
    assert len([sent for sent in absence.missed if not sent.is_ack]) == 10  # prekeys go with each
    absence.come_back()
    returned, there = (absence.circle.parties[place] for place in (6, 0))
    assert agreement.members(returned.state) == agreement.members(there.state)
    assert returned.state.ratchets[absence.circle.member(0)] == there.state.ratchets[absence.circle.member(0)]
    assert returned.events["check"] == len(absence.missed)
    assert (len(absence.missed) < 10 + 5 * 5) == (acks == MULTI)
    assert returned.events["take"] == 10
    assert events >= len(absence.missed)


def test_what_is_not_followed_is_told() -> None:
    absence = probes.Absence(Case(CATCH_UP, SINGLE, 2, 5, 0, 3))
    absence.run()
    absence.missed.pop()
    with pytest.raises(CheckFailed, match="still waits"):
        absence.come_back()


def test_a_state_grows_evenly_with_what_is_pending() -> None:
    sizes = [probes.state_bytes(Case(STATE, SINGLE, pending, 6, 0, 3, 1)) for pending in range(4)]
    steps = [after - before for before, after in pairwise(sizes)]
    assert min(steps) > 0
    assert max(steps) - min(steps) < 10  # numbers that need a byte more


def test_a_history_of_changes_has_as_many_members_as_before() -> None:
    history = probes.changed_history(16, 40)
    assert len(membership.view(history, None)) == 16
    assert len(history.members) == 16 + 20
    assert len(history.removals) == 20


def test_views_and_random_groups_take_time() -> None:
    ticks = count()
    times = probes.view_times(Case(VIEW, SINGLE, 4, 8, 0, 3), lambda: next(ticks))
    assert times == {"fresh": 1, "of a member": 1, "known": 1}
    assert probes.fuzz(Case(FUZZ, SINGLE, 4, 4, 0, 3), lambda: next(ticks)) == 1
