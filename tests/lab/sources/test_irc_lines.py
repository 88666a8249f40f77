"""Lines of IRC logs."""

from __future__ import annotations

from datetime import date

import pytest

from linnet.lab.sources.irc_lines import day_line, file_day, line_of, spoken


@pytest.mark.parametrize(
    "line",
    [
        "--- Log opened Wed Jan 31 12:00:00 2024",
        "--- Day changed Wed Jan 31 2024",
        "**** BEGIN LOGGING AT Wed Jan 31 12:00:00 2024",
        "[00:00] --- Wed Jan 31 2024",
        "=== 2024-01-31 ===",
    ],
)
def test_lines_that_tell_the_day(line: str) -> None:
    assert day_line(line) == date(2024, 1, 31)


def test_other_lines_tell_none() -> None:
    assert day_line("[10:00] <ada> --- Wed Jan 31 2024") is None
    assert day_line("--- Day changed Wed Foo 31 2024") is None


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("2024-01-31", ""),
        ("20240131", ""),
        ("#tea_20240131", "#tea"),
        ("#tea.2024-01-31", "#tea"),
        ("2024-01-31-tea", "tea"),
    ],
)
def test_days_in_names_of_files(name: str, rest: str) -> None:
    assert file_day(name) == (date(2024, 1, 31), rest)


def test_numbers_in_names_that_are_no_days() -> None:
    assert file_day("#tea1234567890") == (None, "#tea1234567890")
    assert file_day("20240231") == (None, "20240231")


@pytest.mark.parametrize(
    ("line", "time", "nick", "text", "kind"),
    [
        ("[10:01:02] <ada> hi", (10, 1, 2), "ada", "hi", "text"),
        ("[10:01] <ada> hi", (10, 1, None), "ada", "hi", "text"),
        ("10:01 <@ada> hi", (10, 1, None), "ada", "hi", "text"),
        ("10:01 < ada> ", (10, 1, None), "ada", "", "text"),
        ("10:01  * ada waves", (10, 1, None), "ada", "waves", "text"),
        ("10:01 -!- bea [~b@host] has joined #tea", (10, 1, None), "bea", None, "notice"),
        ("[10:01:02] *** Joins: bea (~b@host)", (10, 1, 2), "bea", None, "notice"),
        ("[10:01:02] *** Quits: bea (~b@host) (bye)", (10, 1, 2), "bea", None, "notice"),
        ("[10:01:02] * ada waves", (10, 1, 2), "ada", "waves", "text"),
        ("[10:01] bea (~b@host) joined #tea.", (10, 1, None), "bea", None, "notice"),
        ("[10:01] Action: ada waves", (10, 1, None), "ada", "waves", "text"),
        ("[10:01:02] -ada- listen", (10, 1, 2), "ada", "listen", "text"),
        ("2024-01-31 10:01:02\t@ada\thi there", (10, 1, 2), "ada", "hi there", "text"),
        ("2024-01-31 10:01:02\t-->\tbea (~b@host) has joined #tea", (10, 1, 2), "bea", None, "notice"),
        ("2024-01-31 10:01:02\t *\tada waves", (10, 1, 2), "ada", "waves", "text"),
        ("[2024-01-31 10:01:02] <ada> a\tb", (10, 1, 2), "ada", "a\tb", "text"),
        ("2024-01-31T10:01:02 <ada> hi", (10, 1, 2), "ada", "hi", "text"),
        ("Jan 31 10:01:02 <ada>\thi", (10, 1, 2), "ada", "hi", "text"),
        ("Jan 31 10:01:02 *\tada waves", (10, 1, 2), "ada", "waves", "text"),
    ],
)
def test_manners(
    line: str, time: tuple[int, int, int | None], nick: str, text: str | None, kind: str
) -> None:
    found = line_of(line)
    assert found is not None
    assert (found.hour, found.minute, found.second) == time
    words = spoken(found.rest)
    assert words is not None
    assert (words.nick, words.kind) == (nick, kind)
    if text is not None:
        assert words.text == text


def test_lines_without_a_time_or_in_no_manner() -> None:
    assert line_of("hello") is None
    assert line_of("2024-13-31 10:01:02 <ada> hi") is None
    assert spoken("hello there") is None


def test_days_of_lines() -> None:
    full, short = line_of("[2024-01-31 10:01:02] <a> b"), line_of("Jan 31 10:01:02 <a> b")
    assert full is not None
    assert full.day == date(2024, 1, 31)
    assert short is not None
    assert (short.day, short.month_day) == (None, (1, 31))
