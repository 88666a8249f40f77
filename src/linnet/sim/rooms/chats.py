"""Chats as traffic: messages with time, user and length, and from these when each user was online.

Schichtholz 2024, sections 6.1.2 and 6.2: no chat records when people were online, so each user counts as
online from a margin before each of their messages until the same margin after it. Pauses are cut at ten
seconds, so that a chat of days plays in hours; `Rescaling` maps logged times back.
"""

from __future__ import annotations

import csv
import string
from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from linnet.core.errors import ConfigError
from linnet.sim.rooms.traffic import MOST_PEERS, MOST_RELAYS, Action, Do, Traffic
from linnet.sim.seeded_random import named_luck

LONGEST_WAIT = 10.0
"""The longest pause between two actions, in seconds (section 6.1.2)."""

MOST_CHARS = 65_536

_LETTERS = string.ascii_lowercase + "     "
_TIMES = ("timestamp", "date")
_INDEXES = ("", "#", "index")


class Said(NamedTuple):
    """One row of a chat."""

    time: float
    """Seconds since the first row."""
    user: str
    chars: int
    type: str | None
    """The message type where the file has one; its codes are not published, so it is only kept."""


class Period(NamedTuple):
    """An interval, in seconds, in which a user is online."""

    start: float
    end: float


class Planned(NamedTuple):
    """One row of a schedule."""

    time: float
    do: Do
    user: str
    chars: int


def parse_chat(text: str, origin: str) -> list[Said]:
    """Read a chat in CSV, in either layout; `ConfigError` names the line and column of an error.

    Columns are known by their header: ``Timestamp`` or ``Date`` (seconds, or hh:mm:ss), ``User``, ``Char
    Count``, and perhaps ``Message Type`` and a running number in front.
    """
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        header, *rows = [row for row in reader if row] or [[]]
    except csv.Error as error:
        raise ConfigError(f"{origin}:{reader.line_num}: {error}") from error
    columns = _columns(header, origin)
    said = [_said(row, len(header), columns, f"{origin}: row {n}") for n, row in enumerate(rows, 1)]
    for before, after in pairwise(said):
        if after.time < before.time:
            raise ConfigError(f"{origin}: a row at {after.time:g} s follows one at {before.time:g} s")
    first = said[0].time if said else 0.0
    return [row._replace(time=row.time - first) for row in said]


def _columns(header: Sequence[str], origin: str) -> dict[str, int]:
    """Return the index of each column: time, user, chars, and type if there is one."""
    columns: dict[str, int] = {}
    for number, cell in enumerate(header):
        name = cell.strip().lower()
        known = {"user": "user", "char count": "chars", "message type": "type"}.get(name)
        known = "time" if name in _TIMES else known
        if known is None and (number or name not in _INDEXES):
            raise ConfigError(f"{origin}: column {cell!r} is not known")
        if known in columns:
            raise ConfigError(f"{origin}: there are two columns for {cell!r}")
        if known is not None:
            columns[known] = number
    missing = [name for name in ("time", "user", "chars") if name not in columns]
    if missing:
        words = {"time": "Timestamp", "user": "User", "chars": "Char Count"}
        raise ConfigError(f"{origin}: there is no column {words[missing[0]]}")
    return columns


def _said(row: Sequence[str], width: int, columns: dict[str, int], where: str) -> Said:
    if len(row) != width:
        raise ConfigError(f"{where}: {len(row)} cells for {width} columns")
    user, chars = row[columns["user"]].strip(), row[columns["chars"]].strip()
    if not user:
        raise ConfigError(f"{where}: User: is empty")
    if not chars.isdecimal() or int(chars) > MOST_CHARS:
        raise ConfigError(f"{where}: Char Count: {chars!r} is no number up to {MOST_CHARS}")
    kind = row[columns["type"]].strip() if "type" in columns else None
    return Said(_moment(row[columns["time"]].strip(), where), user, int(chars), kind)


def _moment(cell: str, where: str) -> float:
    parts = cell.split(":")
    try:
        if len(parts) == 3:
            hours, minutes, seconds = int(parts[0]), int(parts[1]), float(parts[2])
            if hours >= 0 and 0 <= minutes < 60 and 0 <= seconds < 60:
                return hours * 3600 + minutes * 60 + seconds
        elif len(parts) == 1 and 0 <= float(cell) < float("inf"):
            return float(cell)
    except ValueError:
        pass
    raise ConfigError(f"{where}: Timestamp: {cell!r} is neither seconds nor hh:mm:ss")


def online_periods(times: Sequence[float], margin: float) -> list[Period]:
    """Return when a user is online that sends at these times, in order.

    Periods that overlap are merged, those that only touch are not (Schichtholz 2024, listing 12, with
    corrections to its clamping, its loop and its conflict set).
    """
    if margin <= 0:
        raise ValueError("a margin is above 0")
    periods: list[Period] = []
    for time in times:
        start, end = max(0.0, time - margin), time + margin
        if periods and periods[-1].end > start:
            periods[-1] = Period(periods[-1].start, end)
        else:
            periods.append(Period(start, end))
    return periods


def schedule(chat: Sequence[Said], margin: float) -> list[Planned]:
    """Return all actions, in order. At equal times users come online, then speak, then go offline.

    A user who goes offline and online at the same moment, between two periods that touch, goes offline first.
    """
    rows: list[tuple[float, int, int, Planned]] = []
    users = dict.fromkeys(row.user for row in chat)
    for user in users:
        periods = online_periods([row.time for row in chat if row.user == user], margin)
        starts = {period.start for period in periods}
        for period in periods:
            rows.append((period.start, 1, len(rows), Planned(period.start, Do.ONLINE, user, 0)))
            rank = 0 if period.end in starts else 3
            rows.append((period.end, rank, len(rows), Planned(period.end, Do.OFFLINE, user, 0)))
    for row in chat:
        rows.append((row.time, 2, len(rows), Planned(row.time, Do.MESSAGE, row.user, row.chars)))
    rows.sort(key=lambda row: row[:3])
    return [planned for *_, planned in rows]


def body_of_length(seed: int, number: int, chars: int) -> str:
    """Return the text of the message of this number: so many characters, by the seed."""
    return "".join(named_luck(seed, f"body/{number}").choices(_LETTERS, k=chars))


def chat_traffic(chat: Sequence[Said], margin: float, seed: int, relays: int) -> Traffic:
    """Turn a chat into traffic; its users are numbered by first appearance."""
    users = {user: f"peer{n}" for n, user in enumerate(dict.fromkeys(row.user for row in chat))}
    if len(users) > MOST_PEERS or not 0 <= relays <= MOST_RELAYS:
        raise ConfigError(f"a chat has at most {MOST_PEERS} users and {MOST_RELAYS} relays")
    planned = schedule(chat, margin)
    pauses = [min(LONGEST_WAIT, b.time - a.time) for a, b in pairwise(planned)]
    actions = tuple(
        Action(
            do=row.do,
            user=users[row.user],
            content=body_of_length(seed, n, row.chars) if row.do is Do.MESSAGE else "",
            pause=pause,
        )
        for n, (row, pause) in enumerate(zip(planned, [*pauses, 0.0], strict=False))
    )
    away = tuple(users.values())
    return Traffic(actions=actions, peers=max(1, len(users)), relays=relays, relay_of={}, away=away)


class Scale(StrEnum):
    """The mapping of a logged time between two actions to the time of the chat."""

    OFFSET = "offset"
    """Keeps the distance from the action before, but never passes the next: short delays stay as they are."""
    STRETCH = "stretch"
    """Keeps proportions: a gap that was cut is stretched again, and with it the delays inside it."""


class Rescaling(Struct, frozen=True):
    """Maps logged times to those of the chat, by the actions that have both."""

    logged: tuple[float, ...]
    """When each action was done in the run, in order."""
    original: tuple[float, ...]
    """When it was done in the chat."""

    def map(self, time: float, scale: Scale) -> float:
        """Return the time of the chat for an event that was logged at this time.

        Before the first action and after the last, nothing was cut and the distance holds.
        """
        at = bisect_right(self.logged, time) - 1
        if at < 0:
            return self.original[0] - (self.logged[0] - time)
        since = time - self.logged[at]
        if at + 1 == len(self.logged):
            return self.original[at] + since
        gap = self.original[at + 1] - self.original[at]
        if scale is Scale.OFFSET:
            return self.original[at] + min(since, gap)
        return self.original[at] + since * gap / (self.logged[at + 1] - self.logged[at])


def rescaling(planned: Sequence[Planned], logged: Sequence[float]) -> Rescaling:
    """Make the mapping of a run whose actions were done at these times."""
    if len(planned) != len(logged) or not planned:
        raise ValueError("every action of the schedule has one logged time")
    return Rescaling(tuple(logged), tuple(row.time for row in planned))
