"""What cannot be run is told before any work."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.streams.parameters import COUNTER, NAIVE, StreamsParameters


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sizes": ()}, "--sizes"),
        ({"sizes": (2,)}, "--sizes"),
        ({"sizes": (32, 32)}, "twice"),
        ({"modes": ("counter", "fast")}, "'fast' is none of counter, naive, aware"),
        ({"modes": ()}, "at least one mode"),
        ({"degree": 2}, "--degree 2"),
        ({"sizes": (4, 32)}, "--degree 4"),
        ({"degrees": (4, 64)}, "--degrees"),
        ({"large": 7}, "--large"),
        ({"pair_nodes": 4}, "--pair-nodes"),
    ],
)
def test_bad_parameters_say_what_to_do(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(LabError, match=told):
        StreamsParameters(**wrong).checked()  # type: ignore[arg-type]


def test_throttled_runs_may_be_fewer() -> None:
    few = StreamsParameters(repeats=10, throttled_repeats=3).checked()
    assert [few.repeats_of(mode, size) for mode, size in ((NAIVE, 1000), (NAIVE, 1024), (COUNTER, 2048))] == [
        10,
        3,
        10,
    ]
    assert StreamsParameters(repeats=2, throttled_repeats=3).repeats_of(NAIVE, 1024) == 2
    assert StreamsParameters(sizes=(64, 32)).ordered == (32, 64)
