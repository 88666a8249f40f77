from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.cli.moments import (
    claimed_text,
    clock_text,
    clock_warning,
    duration_text,
    parse_duration,
    parse_since,
)
from linnet.core.errors import BadText

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("beginning", 0.0),
        ("now", None),
        ("90s", NOW - 90),
        ("15m", NOW - 900),
        ("1.5h", NOW - 5400),
        ("7d", NOW - 604_800),
        ("99999999d", 0.0),
        ("2026-11-15T09:30:00+00:00", 1_794_735_000.0),
        ("2026-11-15T09:30:00Z", 1_794_735_000.0),
    ],
)
def test_times_that_people_type(text: str, moment: float | None) -> None:
    assert parse_since(text, NOW) == moment


@given(st.text())
def test_anything_else_is_told_or_a_time(text: str) -> None:
    try:
        moment = parse_since(text, NOW)
    except BadText:
        return
    assert moment is None or moment >= 0


def test_times_are_shown_with_their_zone() -> None:
    assert clock_text(NOW)[:8] == "2027-01-"


@pytest.mark.parametrize(
    ("moment", "text"),
    [(2.0**63 / 1000, "year 292278994?"), (2.0**53, "year 285428751?"), (253_402_400_000.0, "year 10000?")],
)
def test_a_time_that_no_calendar_has_is_shown_by_its_year(moment: float, text: str) -> None:
    """Peers may claim any time: a command that prints it must not end by it."""
    assert clock_text(moment) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0s"), (61, "1m 1s"), (3600, "1h 0m"), (90_061, "1d 1h")]
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_length_of_time() -> None:
    assert [parse_duration(text) for text in ("90s", "1.5m", " 2h ", "7d")] == [90, 90, 7200, 604_800]
    for text in ("", "0s", "2", "h", "-1h", "1w", "forever"):
        with pytest.raises(BadText, match="is no length of time"):
            parse_duration(text)


def test_a_doubtful_time_has_one_mark() -> None:
    moment = int(NOW * 1000)
    assert claimed_text(moment, False) == clock_text(NOW)
    assert claimed_text(moment, True) == f"{clock_text(NOW)}?"
    assert claimed_text(2**63 - 1, True) == "year 292278994?"


def test_a_clock_that_is_behind_is_told_and_one_that_agrees_is_not() -> None:
    assert clock_warning(0.0) is None
    words = clock_warning(3 * 3600.0)
    assert words is not None
    assert "3h 0m behind those of most of its peers: set the clock" in words
