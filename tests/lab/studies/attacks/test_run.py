"""Cases: every attack with every share, and their figures as rows of whole numbers."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from linnet.lab.studies.attacks.parameters import AttacksParameters
from linnet.lab.studies.attacks.run import ARROW, RUNS, TROUBLE, Case, cases_of, measure, seed_of, to_arrow
from linnet.sim.attacks.catalogue import ATTACKS
from linnet.sim.attacks.conduct import Conduct
from linnet.sim.attacks.hostile_tracker import Favour, TrackerAttack, run_tracker_attack

CASE = Case("streams", "isolate", "", 1.0, 0, 3)


def test_every_share_of_every_attack_is_run_as_often_as_asked() -> None:
    cases = cases_of(AttacksParameters(repeats=3))
    shares = sum(len(attack.shares) for attack in ATTACKS)
    assert len(cases) == 3 * (shares + 3)
    assert len({(each.way, each.attack, each.joins, each.share, each.repeat) for each in cases}) == len(cases)
    troubles = Counter(each.attack for each in cases if each.way == TROUBLE)
    assert troubles == {conduct.value: 3 for conduct in Conduct if not conduct.is_hostile}


def test_some_attacks_may_be_asked_for_and_repeats_share_their_seeds() -> None:
    cases = cases_of(AttacksParameters(names=("fork", "silent"), repeats=2, seed=9))
    assert {each.attack for each in cases if each.way != TROUBLE} == {"fork", "silent"}
    assert {each.joins for each in cases if each.attack == "silent"} == {"before", "after"}
    assert {(each.repeat, each.seed) for each in cases} == {(0, seed_of(9, 0)), (1, seed_of(9, 1))}
    assert seed_of(9, 0) != seed_of(9, 1) != seed_of(8, 1)


def test_a_case_is_the_run_of_its_attack() -> None:
    figures, blamed = measure(CASE)
    assert figures == run_tracker_attack(TrackerAttack(Favour.ISOLATE, seed=3))
    assert blamed == 0
    before, _ = measure(Case("streams", "silent", "before", 0.5, 0, 2))
    after, _ = measure(Case("streams", "silent", "after", 0.5, 0, 2))
    assert before.attacker_bytes != after.attacker_bytes


def test_a_row_has_whole_numbers_and_null_where_nobody_noticed() -> None:
    figures, _ = measure(CASE)
    noticed = replace(figures, told_after_seconds=1.5, worst_seconds=0.25)
    [row] = to_arrow(CASE, noticed, 4).to_pylist()
    assert list(row) == [field.split()[0] for field in RUNS.columns.split(", ")] == ARROW.names
    assert (row["told_us"], row["worst_us"], row["blamed"]) == (1_500_000, 250_000, 4)
    assert (row["share_ppm"], row["due"], row["delivered"]) == (
        1_000_000,
        figures.honest_due,
        figures.delivered,
    )
    [row] = to_arrow(CASE, replace(figures, told_after_seconds=None), 0).to_pylist()
    assert row["told_us"] is None


def test_honest_nodes_in_trouble_are_run_with_all_nodes_publishing() -> None:
    figures, blamed = measure(Case(TROUBLE, "slow", "", 0.2, 0, 1))
    assert figures.honest_due == 60 * 23
    assert figures.worst_seconds > 1.0
    assert (figures.attacker_bytes, blamed) == (0, 0)
