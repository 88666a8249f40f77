"""Who does what in each operation, and what all come to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.groups import agreement
from linnet.lab.errors import CheckFailed
from linnet.lab.studies.groups.circle import Circle
from linnet.lab.studies.groups.operations import Course, Stage, devices_of
from linnet.lab.studies.groups.workload import (
    ADD,
    FIRST_UPDATE,
    MESSAGE,
    MULTI,
    PUBLISHED,
    REMOVE,
    SCALED,
    SINGLE,
    UPDATE,
    UPDATES,
    Case,
)

FIVE = Case(UPDATE, SINGLE, 1, 5, 0, 11)


def run(case: Case) -> tuple[Circle, Course]:
    circle = Circle(devices_of(case), case.seed)
    return circle, Stage(circle, case).run()


@pytest.mark.parametrize("operation", [*PUBLISHED, FIRST_UPDATE, SCALED])
def test_after_an_operation_all_agree_and_nothing_is_pending(operation: str) -> None:
    circle, course = run(replace(FIVE, operation=operation))
    size = {ADD: 6, REMOVE: 4}.get(operation, 5)
    states = [circle.parties[place].state for place in (course.sender, *course.recipients)]
    for state in states:
        assert len(agreement.members(state)) == size
        assert state.ratchets.keys() == states[0].ratchets.keys()
        assert not agreement.pending_by_member(state)
    expected = {MESSAGE: 0, ADD: 5, REMOVE: 3}.get(operation, 4)
    assert len(course.acks) == expected
    assert all(each.is_ack for each in course.acks)


def test_bytes_are_those_of_the_format() -> None:
    _, update = run(FIVE)
    # Head, prekey, count, and a direct message to each other member.
    assert update.operations[0].body == 26 + 32 + 2 + 4 * 149
    assert [keys.body for keys in update.keys] == [26 + 86 + 16 * 36]
    assert {ack.body for ack in update.acks} == {63}
    _, first = run(replace(FIVE, operation=FIRST_UPDATE))
    assert first.sender == 1
    assert first.operations[0].body == 26 + 32 + 2 + 3 * 157 + 153  # it has heard from the creator


def test_a_removed_member_hears_and_acknowledges_nothing() -> None:
    circle, course = run(replace(FIVE, operation=REMOVE))
    assert 4 not in course.recipients
    assert circle.parties[4].state.me is None
    assert circle.parties[4].events["take"] == 1
    assert circle.parties[3].events["take"] == 2  # the removal, and the prekeys that go with it


def test_gathered_acknowledgements_lead_to_the_same_keys() -> None:
    runs = [run(replace(FIVE, operation=UPDATES, batch=4, acks=acks)) for acks in (SINGLE, MULTI)]
    assert [len(course.acks) for _, course in runs] == [16, 4]
    assert [len(course.operations) for _, course in runs] == [4, 4]
    for circle, course in runs:
        ratchets = [circle.parties[place].state.ratchets for place in range(5)]
        assert all(each == ratchets[0] for each in ratchets)
        assert sum(ack.body for ack in course.acks) == 4 * sum(
            26 + 2 + items * 35 for items in ([1] * 4 if len(course.acks) == 16 else [4])
        )


def test_with_few_listeners_the_bytes_are_the_same() -> None:
    for operation in (*PUBLISHED, FIRST_UPDATE):
        case = replace(FIVE, operation=operation)
        _, whole = run(case)
        circle, few = run(replace(case, listeners=1))
        assert few.operations == whole.operations
        assert few.acks == whole.acks
        assert few.keys == whole.keys
        assert len(few.keys) == (operation not in (ADD, MESSAGE))
        assert len(few.recipients) == 1
        assert few.newcomer == whole.newcomer
        assert circle.parties[3].events["follow"] <= 1


def test_an_unknown_operation_is_told() -> None:
    with pytest.raises(CheckFailed, match="'dance'"):
        run(replace(FIVE, operation="dance"))
