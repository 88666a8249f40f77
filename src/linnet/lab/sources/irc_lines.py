"""The lines of logs of IRC, in the manners of irssi, WeeChat, ZNC, energymech, eggdrop and HexChat."""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_LINE = re.compile(
    r"\[?(?:(?P<year>\d{4})[-/](?P<month>\d{2})[-/](?P<day>\d{2})[T ]"
    r"|(?P<name>[A-Z][a-z]{2}) {1,2}(?P<of>\d{1,2}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?\]?\s(?P<rest>.*)",
    re.DOTALL | re.ASCII,
)
_DAY_LINES = (
    re.compile(
        r"(?:\*{3,4}|---|\[\d{1,2}:\d{2}(?::\d{2})?\] ---)\s*(?:(?:Log opened|Log closed|Day changed|"
        r"BEGIN LOGGING AT|ENDING LOGGING AT|Session Start:|Session Close:|Session Time:)\s+)?"
        r"[A-Z][a-z]{2},? (?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2})"
        r"(?: \d{2}:\d{2}(?::\d{2})?)? (?P<year>\d{4})"
    ),
    re.compile(r"(?:---|===|\*{3,4}).*?\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"),
)
_FILE_DATE = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d{2})[-_.]?(?P<month>0[1-9]|1[0-2])[-_.]?(?P<day>[0-3]\d)(?!\d)"
)
_SPOKEN = re.compile(r"<[ @+%&~!*]?(?P<nick>[^<>\s]+)> ?(?P<text>.*)", re.DOTALL)
_ACTION = re.compile(r" ?\* {1,2}(?P<nick>[^\s*]+) (?P<text>.*)", re.DOTALL)
_NOTICE = re.compile(
    r"(?:-!-|\*{3}|-->|<--|<->|--|\*) ?(?:(?:Joins|Parts|Quits|Mode):? )?(?P<nick>[^\s:]+)?.*", re.DOTALL
)
_SAID_TO_ALL = re.compile(r"-(?P<nick>[^\s-][^\s]*?)(?::[^\s]+)?- (?P<text>.*)", re.DOTALL)
_EGGDROP = re.compile(
    r"(?P<nick>\S+) (?:\([^)]*\) )?(?:joined|left|was kicked|got netsplit|returned to)\b.*"
    r"|(?:Topic changed|Nick change:|\S+: mode change).*",
    re.DOTALL,
)
_TAB_NOTICES = frozenset({"-->", "<--", "--", "=!=", "", "***", "*"})


class Line(NamedTuple):
    """A line with a time of day, and its own day if it has one."""

    day: date | None
    month_day: tuple[int, int] | None
    """A day without its year, as HexChat writes it."""
    hour: int
    minute: int
    second: int | None
    rest: str


class Spoken(NamedTuple):
    """What a line says."""

    nick: str
    text: str
    kind: str


def line_of(text: str) -> Line | None:
    """A line with a time; None if it has none."""
    match = _LINE.match(text)
    if match is None:
        return None
    second = None if match["second"] is None else int(match["second"])
    day = _date(match["year"], match["month"], match["day"]) if match["year"] else None
    named = (match["name"] or "").lower()
    month_day = (_MONTHS.index(named) + 1, int(match["of"])) if named in _MONTHS else None
    if (match["year"] and day is None) or (named and month_day is None):
        return None
    # WeeChat parts fields by tabs: an empty nick is one, too.
    return Line(day, month_day, int(match["hour"]), int(match["minute"]), second, match["rest"])


def day_line(text: str) -> date | None:
    """The day that a line says begins; None if it says none."""
    for pattern in _DAY_LINES:
        match = pattern.match(text)
        if match is None:
            continue
        month = match["month"].lower()
        number = str(_MONTHS.index(month) + 1) if month in _MONTHS else month
        if number.isdecimal():
            return _date(match["year"], number, match["day"])
    return None


def file_day(name: str) -> tuple[date | None, str]:
    """The day in the name of a file, and the name without it."""
    match = _FILE_DATE.search(name)
    day = _date(match["year"], match["month"], match["day"]) if match else None
    if match is None or day is None:
        return None, name
    return day, (name[: match.start()] + name[match.end() :]).strip("._- ")


def _date(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def spoken(rest: str) -> Spoken | None:
    """Who says what behind the time; None if it is in no manner that is known."""
    if "\t" in rest and not rest.startswith("<"):
        return _by_tabs(rest)
    if match := _SPOKEN.match(rest.replace(">\t", "> ", 1) if rest.startswith("<") else rest):
        return Spoken(match["nick"], match["text"], "text")
    if match := _ACTION.fullmatch(rest):
        return Spoken(match["nick"], match["text"], "text")
    if (match := _SAID_TO_ALL.fullmatch(rest)) and match["nick"] != "!":
        return Spoken(match["nick"], match["text"], "text")
    if match := _NOTICE.fullmatch(rest):
        return Spoken(match["nick"] or "", rest, "notice")
    if match := _EGGDROP.fullmatch(rest):
        return Spoken(match["nick"] or "", rest, "notice")
    if match := re.fullmatch(r"Action: (?P<nick>\S+) (?P<text>.*)", rest, re.DOTALL):
        return Spoken(match["nick"], match["text"], "text")
    return None


def _by_tabs(rest: str) -> Spoken:
    nick, _, text = rest.partition("\t")
    nick = nick.strip()
    if nick == "*" and text:
        who, _, did = text.partition(" ")
        return Spoken(who, did, "text")
    if nick in _TAB_NOTICES:
        return Spoken(text.partition(" ")[0], text, "notice")
    return Spoken(nick.lstrip("@+%&~!"), text, "text")
