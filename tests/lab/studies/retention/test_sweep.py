"""Retentions, their order and their names."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.retention.sweep import (
    DAY,
    HOUR,
    OUR_DEFAULT,
    RETENTIONS,
    UNLIMITED,
    mode_of,
    name_of,
    sweep,
)
from linnet.rooms.config import RelayLimits


def test_what_all_are_measured_against_is_always_there() -> None:
    assert sweep([]) == (0, OUR_DEFAULT, UNLIMITED)
    assert sweep([2 * DAY, HOUR, HOUR]) == (0, HOUR, 2 * DAY, OUR_DEFAULT, UNLIMITED)
    assert RelayLimits().max_lifetime * 1000 == OUR_DEFAULT


def test_those_of_the_study() -> None:
    names = ["none", "1 min", "10 min", "1 h", "6 h", "1 d", "3 d", "7 d", "30 d", "90 d", "unlimited"]
    assert [name_of(retention) for retention in sweep(RETENTIONS)] == names


@pytest.mark.parametrize(
    ("retention", "name"), [(1, "1 ms"), (1_500, "1500 ms"), (90_000, "90 s"), (36 * HOUR, "36 h")]
)
def test_a_name_is_a_whole_number_of_the_largest_unit(retention: int, name: str) -> None:
    assert name_of(retention) == name


def test_modes_differ() -> None:
    swept = sweep(RETENTIONS)
    assert len({mode_of(retention) for retention in swept}) == len(swept)
    assert mode_of(UNLIMITED) == "unlimited"


@pytest.mark.parametrize("wrong", [-1, UNLIMITED])
def test_what_is_no_retention_is_told(wrong: int) -> None:
    with pytest.raises(LabError, match=str(wrong)):
        sweep([wrong])
