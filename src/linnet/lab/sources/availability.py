"""When phones were online: ``user online_at_start week_start_ms timezone d1 d2 …``, a week in each line.

The durations are of being online and offline in turn, in milliseconds. A device is a user in one week. What
is longer than a week cannot be right. A line that ends before its week is kept if it has a day at least, and
its trace is as long as what was seen: `week_ms` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import check_unit
from linnet.lab.sources.delimited import natural
from linnet.lab.sources.names import Names
from linnet.lab.sources.pieces import Piece, clean_lines, opened, plain_pieces
from linnet.lab.sources.rows import LEFT_OUT, Bad, Entry, Numbered

MOST_START = 10**15
WEEK_MS = 604_800_000
DAY_MS = 86_400_000
_LOOKED_AT = 100
_BEFORE = 4

NO_NUMBERS = "it is not user, 0 or 1, start, time zone and durations"
TOO_LONG = "its durations are longer than a week"
TOO_SHORT = "its durations are shorter than a day"
NEVER = LEFT_OUT + "a device that was never online"

pieces = plain_pieces


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at the beginning of each file; `LabError` if it is of another kind."""
    for piece in pieces:
        with opened(piece) as file:
            lines = [text.split() for _, text in islice(clean_lines(file, lambda bad: None), _LOOKED_AT)]
        good = [fields for fields in lines if _durations(fields) is not None]
        if not good:
            raise LabError(
                f"{piece.shown}: no line at its beginning is USER ONLINE(0|1) WEEK_START_MS TIMEZONE D1 D2 …"
            )
        sample = [(fields[2], int(fields[2])) for fields in good]
        check_unit(piece.shown, sample, "Unix milliseconds", "write milliseconds")
    return list(pieces)


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices, names: Names) -> Iterator[Entry | Bad]:
    """The sessions of each line."""
    for number, text in lines:
        fields = text.split()
        if not fields:
            continue
        durations = _durations(fields)
        if durations is None:
            yield Bad(number, NO_NUMBERS, text)
        elif sum(durations) > WEEK_MS:
            yield Bad(number, TOO_LONG, text)
        elif sum(durations) < DAY_MS:
            yield Bad(number, TOO_SHORT, text)
        else:
            device = f"{names.user(fields[0])}/{fields[2]}"
            found = sessions(fields[1] == "1", durations)
            if not found:
                yield Bad(number, NEVER, "")
            for start, end in found:
                yield Entry(number, (device, start, end, sum(durations)))


def sessions(online: bool, durations: Sequence[int]) -> list[tuple[int, int]]:
    """Times [start, end) of being online; those that touch, with nothing in between, are one."""
    found: list[tuple[int, int]] = []
    now = 0
    for duration in durations:
        if online and duration:
            if found and found[-1][1] == now:
                found[-1] = (found[-1][0], now + duration)
            else:
                found.append((now, now + duration))
        now += duration
        online = not online
    return found


def _durations(fields: Sequence[str]) -> list[int] | None:
    if len(fields) <= _BEFORE or fields[1] not in ("0", "1") or natural(fields[2], MOST_START) is None:
        return None
    try:
        durations = [int(field) for field in fields[_BEFORE:]]
    except ValueError:
        return None
    return durations if min(durations) >= 0 else None
