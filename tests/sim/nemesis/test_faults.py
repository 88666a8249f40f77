from __future__ import annotations

from random import Random

import pytest

from linnet.core.errors import ConfigError
from linnet.sim.nemesis.course import chosen_faults
from linnet.sim.nemesis.faults import HARD, LEAST, Cast, Fault, draw_plan

CAST = Cast(("a", "b", "c"), ("a", "b"), ("b",), ("a",), ("n", "m"), "t")


def plans(count: int = 300) -> list[list[tuple[Fault, tuple[str, ...]]]]:
    drawn = (draw_plan(Random(seed), CAST, tuple(Fault), 10.0, 100.0) for seed in range(count))
    return [[(strike.fault, strike.targets) for strike in plan] for plan in drawn]


def test_every_plan_has_three_kinds_of_faults_and_a_newcomer_and_changes_between() -> None:
    for plan in plans():
        kinds = [fault for fault, _ in plan]
        assert len({kind for kind in kinds if kind in HARD}) >= LEAST
        assert Fault.NEWCOMER in kinds
        assert Fault.CHANGE in kinds


def test_every_kind_is_drawn() -> None:
    assert {fault for plan in plans() for fault, _ in plan} == set(Fault)


def test_those_without_whom_nothing_could_be_judged_do_not_die() -> None:
    struck = [pair for plan in plans() for pair in plan]
    assert {targets for fault, targets in struck if fault is Fault.DEAD} == {("a",)}
    assert ("b",) not in {targets for fault, targets in struck if fault is Fault.DAMAGED_DISK}


def test_those_whose_address_is_known_by_hand_do_not_move() -> None:
    moved = {targets for plan in plans() for fault, targets in plan if fault is Fault.MOVE}
    assert moved == {("b",), ("c",)}


def test_without_a_second_device_none_is_revoked() -> None:
    cast = Cast(("a", "b"), ("a",), (), (), ("n",))
    drawn = [draw_plan(Random(seed), cast, tuple(Fault), 0.0, 1.0) for seed in range(50)]
    assert all(strike.fault is not Fault.REVOKED for plan in drawn for strike in plan)


def test_faults_are_chosen_by_their_names() -> None:
    assert chosen_faults("all") == tuple(Fault)
    assert chosen_faults("partition, full-disk") == (Fault.PARTITION, Fault.FULL_DISK)
    with pytest.raises(ConfigError, match="no fault of the nemesis"):
        chosen_faults("partition,thunder")
