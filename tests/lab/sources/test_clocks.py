"""Times become integer milliseconds, and a wrong unit is noticed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.errors import LabError
from linnet.lab.sources.clocks import (
    check_unit,
    from_iso,
    from_milliseconds,
    from_seconds,
    milliseconds,
    plausible,
    zone_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1519660926", 1_519_660_926_000),
        ("1517436010.000936", 1_517_436_010_000),
        ("1517436010.9", 1_517_436_010_900),
        ("1e9", None),
        ("-5", None),
        ("", None),
        ("1.", None),
    ],
)
def test_seconds(text: str, expected: int | None) -> None:
    assert from_seconds(text) == expected


def test_milliseconds_are_whole() -> None:
    assert from_milliseconds("1519660926001") == 1_519_660_926_001
    assert from_milliseconds("1519660926.5") is None
    assert from_milliseconds("") is None


def test_iso_without_an_offset_is_meant_in_the_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert from_iso("2024-07-01T12:00:00", berlin) == from_iso("2024-07-01T10:00:00+00:00", berlin)
    assert from_iso("2024-01-01 12:00:00.250", berlin) == 1_704_106_800_250
    assert from_iso("yesterday", berlin) is None


@given(st.integers(0, 4_102_444_800_000))
def test_milliseconds_are_exact(ts: int) -> None:
    assert milliseconds(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ts)) == ts


def test_a_wrong_unit_is_named() -> None:
    times = [("1519660926000", from_seconds("1519660926000"))] * 3
    with pytest.raises(LabError, match=r"a\.csv: 3 of the first 3 .* look like milliseconds: do it right"):
        check_unit("a.csv", times, "Unix seconds", "do it right")


def test_single_times_that_are_wrong_are_no_wrong_unit() -> None:
    check_unit("a.csv", [("x", None), ("1519660926", 1_519_660_926_000)], "Unix seconds", "")
    assert not plausible(0)


def test_a_zone_has_a_name() -> None:
    assert zone_of("Europe/Berlin").key == "Europe/Berlin"
    for name in ("Mars/Crater", "../etc", ""):
        with pytest.raises(LabError, match="--timezone"):
            zone_of(name)
