"""Cases: every scenario with every variant that can be run, on the same networks."""

from __future__ import annotations

from linnet.lab.studies.content.parameters import ContentParameters
from linnet.lab.studies.content.workload import (
    PUBLISHED_VARIANTS,
    ROUNDS,
    SCENARIOS,
    absent_variants,
    scenario_cases,
    staged_cases,
    variants,
)
from linnet.sim.content.scenario import Variant


def test_all_variants_of_the_simulation_are_run_in_the_published_order() -> None:
    found = variants()
    assert set(found) == {variant.value for variant in Variant}
    published = [name for name in found if name in PUBLISHED_VARIANTS]
    assert published == [name for name in PUBLISHED_VARIANTS if name in found]
    assert set(absent_variants()) == set(PUBLISHED_VARIANTS) - set(found)


def test_variants_run_on_the_same_networks_and_repeats_on_others() -> None:
    cases = scenario_cases(ContentParameters(nodes=(30, 60), repeats=2))
    assert len(cases) == 2 * len(SCENARIOS) * len(variants()) * 2
    seeds: dict[tuple[str, int, int], set[int]] = {}
    for case in cases:
        seeds.setdefault((case.scenario, case.nodes, case.repeat), set()).add(case.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({seed for found in seeds.values() for seed in found}) == len(seeds)


def test_stages_are_run_with_each_number_of_backups_on_one_network() -> None:
    cases = staged_cases(ContentParameters(staged=75, backups=(0, 2), long=30))
    replication = [case for case in cases if case.scenario == "replication"]
    assert [(case.nodes, case.f) for case in replication] == [(75, 0), (75, 2)]
    assert len({case.seed for case in replication}) == 1
    assert {case.variant for case in cases if case.scenario == "long-run"} <= set(ROUNDS)
    assert staged_cases(ContentParameters(staged=0, long=0)) == []
