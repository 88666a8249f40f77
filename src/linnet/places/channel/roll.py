"""The roll of a place: the changes of each nym, packed, and the hash of those that are in force.

The voice signs that hash with every change, so that a newcomer may take the roll from anybody
(docs/adr/0018-places.md). It is a hash over 256 hashes, one for the nyms of each first byte: a change in a
place of a million guests makes one of them new, not all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from struct import Struct as Packing
from typing import NamedTuple

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason

NYM_BYTES = 32
packing = Packing(">QQQ?")
ROW_BYTES = packing.size
LINE_BYTES = NYM_BYTES + ROW_BYTES
"""A line of the roll: a nym, and one of its changes."""
_SHELVES = 256
_TAG = b"linnet/roll/1"


class Known(NamedTuple):
    """A change of one nym, as it was announced."""

    announced_at: int
    """The message that said so: what changes are ordered by."""
    effective_since: int
    """The first message that it decides about."""
    generation: int
    """Of the announcement. Of a part: the last one that the nym may see."""
    joins: bool


def in_force(changes: Sequence[Known]) -> list[Known]:
    """Those of one nym's changes that some message is decided by, without a part that comes first.

    What a later change covers from an earlier message on decides nothing any more, and a part that
    nothing precedes says what no change at all would say.
    """
    kept: list[Known] = []
    for change in reversed(changes):
        if not kept or change.effective_since < kept[-1].effective_since:
            kept.append(change)
    if kept and not kept[-1].joins:
        kept.pop()
    return kept[::-1]


def unpack(rows: bytes) -> list[Known]:
    """The changes of one nym."""
    return [Known._make(row) for row in packing.iter_unpack(rows)]


class Roll:
    """The changes of every nym, each packed to 25 bytes."""

    def __init__(self) -> None:
        self._shelves: list[dict[AuthorId, bytes]] = [{} for _ in range(_SHELVES)]
        self._hashes: list[bytes | None] = [None] * _SHELVES

    def get(self, nym: AuthorId) -> bytes:
        """What is known of a nym, packed; empty: nothing."""
        return self._shelves[nym[0]].get(nym, b"")

    def set(self, nym: AuthorId, rows: bytes) -> None:
        """All that is known of a nym from now on."""
        shelf = self._shelves[nym[0]]
        self._hashes[nym[0]] = None
        if rows:
            shelf[nym] = rows
        else:
            shelf.pop(nym, None)

    def clear(self) -> None:
        """Know nothing."""
        self._shelves = [{} for _ in range(_SHELVES)]
        self._hashes = [None] * _SHELVES

    def items(self) -> Iterator[tuple[AuthorId, bytes]]:
        """Every nym with what is known of it; by the first byte, then as they came."""
        for shelf in self._shelves:
            yield from shelf.items()

    def digest(self) -> bytes:
        """The hash of all that is in force."""
        for number, known in enumerate(self._hashes):
            if known is None:
                self._hashes[number] = hashlib.sha256(self._lines(number)).digest()
        return hashlib.sha256(_TAG + b"".join(each for each in self._hashes if each is not None)).digest()

    def lines(self) -> bytes:
        """All that is in force, in the order of nyms: what `digest` is the hash of."""
        return b"".join(map(self._lines, range(_SHELVES)))

    def _lines(self, number: int) -> bytes:
        return b"".join(_lines_of(nym, rows) for nym, rows in sorted(self._shelves[number].items()))


def read_lines(lines: bytes) -> Roll:
    """The roll that somebody tells; `RemoteError` if it is none."""
    if len(lines) % LINE_BYTES:
        raise RemoteError(Reason.MALFORMED, f"a roll of {len(lines)} bytes")
    roll = Roll()
    for at in range(0, len(lines), LINE_BYTES):
        nym = AuthorId(lines[at : at + NYM_BYTES])
        row = lines[at + NYM_BYTES : at + LINE_BYTES]
        if row[-1] > 1:
            raise RemoteError(Reason.MALFORMED, "a roll with a change that neither joins nor parts")
        roll.set(nym, roll.get(nym) + row)
    if roll.lines() != lines:
        raise RemoteError(Reason.MALFORMED, "a roll out of order, or with what is not in force")
    return roll


def _lines_of(nym: AuthorId, rows: bytes) -> bytes:
    if len(rows) == ROW_BYTES:  # by far the most common
        return nym + rows if rows[-1] else b""
    return b"".join(nym + packing.pack(*change) for change in in_force(unpack(rows)))
