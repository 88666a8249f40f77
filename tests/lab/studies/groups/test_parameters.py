"""What can be asked for, and what cannot."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.studies.groups.parameters import SIZES, GroupsParameters


def test_the_published_sizes_are_the_default() -> None:
    parameters = GroupsParameters().checked()
    assert parameters.sizes == SIZES == (8, 11, 16, 22, 32, 45, 64, 90, 128)
    assert parameters.largest == 128
    assert parameters.scaled == (8, 16, 32, 64, 96, 128, 192, 256)
    assert replace(parameters, sizes=(32, 8), scaling=16).scaled == (8, 12, 16)
    assert replace(parameters, sizes=(32, 8)).ordered == (8, 32)
    assert replace(parameters, scaling=0).scaled == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sizes": ()}, "--sizes"),
        ({"sizes": (3,)}, "--sizes"),
        ({"sizes": (512,)}, "--sizes"),
        ({"sizes": (8, 8)}, "twice"),
        ({"scaling": 8}, "--scaling"),
        ({"scaling": 1000}, "--scaling"),
        ({"repeats": 0}, "at least one repeat"),
        ({"missed": -1}, "at least one repeat"),
    ],
)
def test_what_cannot_be_run_is_told(change: dict[str, object], told: str) -> None:
    with pytest.raises(LabError, match=told):
        replace(GroupsParameters(), **change).checked()
