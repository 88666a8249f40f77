"""Dates and times of WhatsApp's exports, in the manners of many languages."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.whatsapp_dates import Head, head_of, moment_of, order_of

UTC_ZONE = ZoneInfo("UTC")


def the(line: str) -> Head:
    head = head_of(line)
    assert head is not None, line
    return head


@pytest.mark.parametrize(
    ("line", "order", "seconds"),
    [
        ("12/31/23, 9:15 PM - Ada: hi", "mdy", None),
        ("12/31/23, 9:15\u202fPM - Ada: hi", "mdy", None),
        ("31/12/2023, 21:15 - Ada: hi", "dmy", None),
        ("31/12/2023, 9:15 pm - Ada: hi", "dmy", None),
        ("31/12/23, 9:15\u00a0p.\u00a0m. - Ada: hi", "dmy", None),
        ("31/12/23 21:15 - Ada: hi", "dmy", None),
        ("31/12/2023 à 21:15 - Ada: hi", "dmy", None),
        ("31/12/23 21.15 - Ada: hi", "dmy", None),
        ("31.12.23, 21:15 - Ada: hi", "dmy", None),
        ("31.12.2023 klo 21.15 - Ada: hi", "dmy", None),
        ("31-12-2023 21:15 - Ada: hi", "dmy", None),
        ("2023-12-31 21:15 - Ada: hi", "ymd", None),
        ("2023/12/31 21:15 - Ada: hi", "ymd", None),
        ("2023/12/31 下午9:15 - Ada: hi", "ymd", None),
        ("2023년 12월 31일 오후 9:15, Ada : hi", "ymd", None),
        ("2023. 12. 31. 오후 9:15, Ada : hi", "ymd", None),
        ("\u200e[31/12/23, 21:15:30] Ada: hi", "dmy", 30),
        ("[12/31/23, 9:15:30\u202fPM] Ada: hi", "mdy", 30),
        ("[31.12.23, 21:15:30] Ada: hi", "dmy", 30),
        ("[2023-12-31, 9:15:30 p.m.] Ada: hi", "ymd", 30),
        ("[31/12/2023 21:15:30] Ada: hi", "dmy", 30),
    ],
)
def test_manners(line: str, order: str, seconds: int | None) -> None:
    head = the(line)
    assert head.second == seconds
    assert head.rest.replace(" :", ":") == "Ada: hi"
    assert order_of("f", [head], "")[0] == order
    expected = datetime(2023, 12, 31, 21, 15, seconds or 0, tzinfo=UTC)
    assert moment_of(head, order, UTC_ZONE) == int(expected.timestamp()) * 1000


@pytest.mark.parametrize(
    "line",
    ["hello", "", "at 12/31/23, 9:15 PM - no", "12/31/23 was a nice day", "1.2.3 - version", "12:15 - x"],
)
def test_other_lines_go_on_with_the_message_before(line: str) -> None:
    assert head_of(line) is None


@pytest.mark.parametrize(
    ("time", "hour"), [("12:05 AM", 0), ("1:05 AM", 1), ("12:05 PM", 12), ("11:05 PM", 23), ("0:05", 0)]
)
def test_hours_of_noon_and_midnight(time: str, hour: int) -> None:
    assert the(f"31/1/24, {time} - A: b").hour == hour


def test_the_order_is_found_from_any_line_of_the_file() -> None:
    heads = [the("1/2/24, 10:00 - A: b"), the("3/4/24, 10:00 - A: b")]
    assert order_of("f", [*heads, the("3/14/24, 10:00 - A: b")], "") == ("mdy", "min")
    assert order_of("f", [*heads, the("14/3/24, 10:00 - A: b")], "") == ("dmy", "min")
    assert order_of("f", heads, "dmy") == ("dmy", "min")
    with pytest.raises(LabError, match="--dates mdy months would be above 12"):
        order_of("f", [the("14/3/24, 10:00 - A: b")], "mdy")
    assert order_of("f", [the("[1.2.24, 10:00:00] A: b")], "") == ("dmy", "s")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["1/2/24, 10:00 - A: b"], "give --dates dmy or --dates mdy"),
        (["14/2/24, 10:00 - A: b", "2/14/24, 10:00 - A: b"], "of several kinds"),
        (["2024-01-01 10:00 - A: b", "2/14/24, 10:00 - A: b"], "of several kinds"),
        ([], "is it an export of WhatsApp"),
    ],
)
def test_an_order_that_cannot_be_known_is_an_error(lines: list[str], words: str) -> None:
    with pytest.raises(LabError, match=words):
        order_of("f.txt", [the(line) for line in lines], "")


def test_days_and_times_that_are_none() -> None:
    for line in ("31/2/24, 10:00 - A: b", "1/2/24, 25:00 - A: b", "1/2/24, 14:00 AM - A: b"):
        assert moment_of(the(line), "dmy", UTC_ZONE) is None


def test_the_zone_counts() -> None:
    head = the("1/7/24, 12:00 - A: b")
    assert moment_of(head, "dmy", ZoneInfo("Europe/Berlin")) == moment_of(
        the("1/7/24, 10:00 - A: b"), "dmy", UTC_ZONE
    )
