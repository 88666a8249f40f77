"""Cases become rows of whole numbers."""

from __future__ import annotations

from tests.lab.studies.overlay.conftest import SMALL

from linnet.lab.studies.overlay.data import Surroundings
from linnet.lab.studies.overlay.run import measure, to_arrow
from linnet.lab.studies.overlay.workload import FILTERS, RINGS, stages


def test_a_case_as_rows(around: Surroundings) -> None:
    case = stages(SMALL, around)[RINGS][0]
    found = measure(case, around, SMALL.filter_users)
    assert found["hit_ratio"] == {0: 1_000_000}
    rows = to_arrow(case, found).to_pylist()
    assert rows[0] == {
        "experiment": "rings",
        "setting": case.setting,
        "repeat": 0,
        "measure": "expected",
        "bin": 0,
        "count": 98,
    }
    assert len(rows) == len(found)


def test_filters_of_real_users_are_of_their_profiles(around: Surroundings) -> None:
    from msgspec.structs import replace

    real = replace(around, interests={"twitter": ((0,),)}, profiles={"twitter": ((0, 1), (1, 2), (0, 2)) * 8})
    case = next(case for case in stages(SMALL, real)[FILTERS] if case.setting == "twitter|1|15")
    assert measure(case, real, 20)["attack"][0] > 900_000
