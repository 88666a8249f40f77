"""Membership of one place: its changes, the test whether a guest may see a message, and the roll.

Toth 2013, sections 4.5 and 5.3, with the decisions of docs/adr/0018-places.md. A change is announced by one
message and takes effect from another one on. Of the changes in effect at a message, the last one announced
decides; a part takes effect at message 0, so it closes everything before it.

All changes are in cells, one each, and in memory packed to 25 bytes: places have guests by the million. A
newcomer learns the roll of all that is in force as a whole; until then, a nym without changes is unknown.

The voice signs the hash of the roll with every change, so that a newcomer may take the roll from any peer. It
is a hash over 256 hashes, one for the nyms of each first byte: a change in a place of a million guests renews
one of them, not all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from enum import Enum
from struct import Struct as Packing
from typing import NamedTuple

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.places.deed import Policy
from linnet.places.multicast.fragmentation import Change

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
    """The message that announced the change; changes are ordered by it."""
    effective_since: int
    """The first message that the change decides about."""
    generation: int
    """The generation of the announcement; with a part, the last one that the nym may see."""
    joins: bool


def in_force(changes: Sequence[Known]) -> list[Known]:
    """Return those of one nym's changes that decide about some message, except a part that comes first.

    A change that a later one covers from an earlier message on no longer decides anything, and a part with
    nothing before it says the same as no change at all.
    """
    kept: list[Known] = []
    for change in reversed(changes):
        if not kept or change.effective_since < kept[-1].effective_since:
            kept.append(change)
    if kept and not kept[-1].joins:
        kept.pop()
    return kept[::-1]


def unpack(rows: bytes) -> list[Known]:
    """Return the changes of one nym."""
    return [Known._make(row) for row in packing.iter_unpack(rows)]


class Roll:
    """The changes of every nym, each packed to 25 bytes."""

    def __init__(self) -> None:
        self._shelves: list[dict[AuthorId, bytes]] = [{} for _ in range(_SHELVES)]
        self._hashes: list[bytes | None] = [None] * _SHELVES
        self.guests = 0
        """The number of nyms that are in now."""

    def get(self, nym: AuthorId) -> bytes:
        """Return the packed changes of a nym; empty if none are known."""
        return self._shelves[nym[0]].get(nym, b"")

    def set(self, nym: AuthorId, rows: bytes) -> None:
        """Replace the changes of a nym."""
        shelf = self._shelves[nym[0]]
        before = shelf.get(nym)
        self.guests += bool(rows and rows[-1]) - bool(before and before[-1])
        self._hashes[nym[0]] = None
        if rows:
            shelf[nym] = rows
        else:
            shelf.pop(nym, None)

    def clear(self) -> None:
        """Forget all changes."""
        self._shelves = [{} for _ in range(_SHELVES)]
        self._hashes = [None] * _SHELVES
        self.guests = 0

    def items(self) -> Iterator[tuple[AuthorId, bytes]]:
        """Yield every nym with its packed changes: by the first byte, then in order of arrival."""
        for shelf in self._shelves:
            yield from shelf.items()

    def digest(self) -> bytes:
        """Return the hash of all that is in force."""
        for number, known in enumerate(self._hashes):
            if known is None:
                self._hashes[number] = hashlib.sha256(self._lines(number)).digest()
        return hashlib.sha256(_TAG + b"".join(each for each in self._hashes if each is not None)).digest()

    def lines(self) -> bytes:
        """Return all that is in force, in the order of nyms: the input of `digest`."""
        return b"".join(map(self._lines, range(_SHELVES)))

    def _lines(self, number: int) -> bytes:
        return b"".join(_lines_of(nym, rows) for nym, rows in sorted(self._shelves[number].items()))


def read_lines(lines: bytes) -> Roll:
    """Return the roll from a peer's lines; `RemoteError` if they are not a roll in its one form."""
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


_SPACE = "place member"
_BASES = "place member base"
_base = Packing(">QQ?")


class Verdict(Enum):
    """The result of the membership test. Without a yes a nym gets nothing."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """An unknown removal may have come before: recover its notice, then ask again."""


def is_own_notice(changes: Sequence[Known], message: int, generation: int) -> bool:
    """Return whether a message is the one that removed this nym, which may see why nothing comes any more."""
    return any(
        change.announced_at == message and not change.joins and generation <= change.generation
        for change in changes
    )


class _Base(NamedTuple):
    since: int = 0
    """Changes up to this message came with a whole roll; 0: all came one by one."""
    generation: int = 0
    is_whole: bool = True
    """Whether all that is in force is known."""


class Membership:
    """The known changes of membership in one place."""

    def __init__(self, place: TopicId, cells: Cells, policy: Policy) -> None:
        self.policy = policy
        self.hosts: tuple[AuthorId, ...] = ()
        """People who may speak by the deed: they may see everything."""
        self._place = place
        self._cells = cells
        self._roll = Roll()
        self._parts: dict[int, int] = {}
        """The number of known parts of each generation."""
        self.newest = 0
        """The last message that is known to have announced a change; 0: none."""
        self.undone = 0
        """How often known changes were taken back."""
        kept = cells.get(_BASES, place)
        self._base = _Base() if kept is None else _Base(*_base.unpack(kept))
        self._known = self._base.generation
        self._load()

    # What is known.

    @property
    def is_whole(self) -> bool:
        """Whether all that is in force is known; if not, the test denies nobody who may be a guest."""
        return self._base.is_whole

    @property
    def since(self) -> int:
        """The message up to which changes came with a whole roll; 0: all came one by one."""
        return self._base.since

    @property
    def known_generation(self) -> int:
        """1 + the largest generation of a part that is stored, with none missing before it.

        A missed removal would let us serve a nym that is gone, so it holds back all that was sent after it.
        """
        return self._known

    @property
    def guests(self) -> int:
        """The number of nyms that are in now."""
        return self._roll.guests

    def present(self) -> list[AuthorId]:
        """Return the nyms that are in now."""
        return [nym for nym, rows in self._roll.items() if rows[-1]]

    def changes(self, nym: AuthorId) -> list[Known]:
        """Return the known changes of a nym, in the order of announcement."""
        return unpack(self._roll.get(nym))

    def test(self, nym: AuthorId, message: int, generation: int, replay: bool = False) -> Verdict:
        """Return whether a fragment of this message and generation may be given to a nym.

        With `replay` the nym may also have the notice of its own removal.
        """
        if self.policy is Policy.ANONYMOUS or nym in self.hosts:
            return Verdict.YES
        if replay and is_own_notice(self.changes(nym), message, generation):
            return Verdict.YES
        if generation > self._known:
            return Verdict.UNKNOWN
        # Without unpacking changes that do not matter.
        rows = self._roll.get(nym)
        for at in range(len(rows) - ROW_BYTES, -1, -ROW_BYTES):
            _, effective_since, _, joins = packing.unpack_from(rows, at)
            if effective_since <= message:
                return Verdict.YES if joins else Verdict.NO
        return Verdict.NO if self._base.is_whole else Verdict.UNKNOWN

    def matters(self, nym: AuthorId, announced_at: int) -> bool:
        """Return whether this change of a nym is one of those in force."""
        return any(change.announced_at == announced_at for change in in_force(self.changes(nym)))

    def digest(self) -> bytes:
        """Return the hash of all that is in force."""
        return self._roll.digest()

    def lines(self) -> bytes:
        """Return all that is in force, for newcomers: see `linnet.places.channel.membership`."""
        return self._roll.lines()

    # Changes.

    def store(self, change: Change, announced_at: int, generation: int) -> bool:
        """Take a change that a message announced; return whether it is news.

        `RemoteError` if it breaks the rules, or contradicts what the same message said before.
        """
        if change.joins and change.effective_since > announced_at:
            raise RemoteError(Reason.MALFORMED, "a join that is effective only after it is announced")
        if not change.joins and change.effective_since:
            raise RemoteError(Reason.MALFORMED, "a part that is effective since a message")
        if announced_at <= self._base.since:
            return False  # what was told with our admission covers it
        known = Known(announced_at, change.effective_since, generation, change.joins)
        return self._add(change.nym, known)

    def enter(self, change: Change, message: int, generation: int) -> None:
        """Begin with our own entry by this message. The other guests are unknown until `learn`, and what we
        knew as a guest of former times is dropped, since it may have ended."""
        told = Roll()
        told.set(change.nym, packing.pack(message, change.effective_since, generation, change.joins))
        self._replace(told, message, generation, is_whole=False)

    def learn(self, told: Roll, message: int, generation: int) -> None:
        """Replace the known changes with the roll as of a message, whose hash the voice signed.

        `generation` is the one after that message.

        Older changes that turn up later, as history, count no more: a join among them may have been taken
        back by a part that was not in the roll. `RemoteError` if the roll has changes of later messages.
        """
        if any(change.announced_at > message for _, rows in told.items() for change in unpack(rows)):
            raise RemoteError(Reason.MALFORMED, "a roll with changes of later messages")
        self._replace(told, message, generation, is_whole=True)

    def undo(self, after_message: int) -> list[tuple[AuthorId, Known]]:
        """Take back the changes announced after a message where a term was cut; return them.

        If they came with a whole roll, nobody knows here what that had covered: the rest is to be learned
        anew.
        """
        late = [nym for nym, rows in self._roll.items() if _announced(rows, -1) > after_message]
        undone: list[tuple[AuthorId, Known]] = []
        for nym in late:
            changes = self.changes(nym)
            left = [change for change in changes if change.announced_at <= after_message]
            for change in changes[len(left) :]:
                self._cells.delete(self._space, _key(nym, change.announced_at))
                self._count_part(change, -1)
                undone.append((nym, change))
            self._roll.set(nym, b"".join(packing.pack(*change) for change in left))
        self.undone += 1
        if after_message < self._base.since:
            self._settle(after_message, 0, is_whole=False)
        self.newest = max([self._base.since, *(_announced(rows, -1) for _, rows in self._roll.items())])
        self._known = self._base.generation
        self._advance()
        return sorted(undone, key=lambda item: item[1].announced_at)

    # Inside.

    @property
    def _space(self) -> str:
        return f"{_SPACE} {self._place.hex()}"

    def _load(self) -> None:
        for nym, rows in _by_nym(self._cells.scan(self._space)):
            self._roll.set(nym, rows)
            self.newest = max(self.newest, _announced(rows, -1))
            for change in packing.iter_unpack(rows):
                self._count_part(Known._make(change), 1)
        self.newest = max(self.newest, self._base.since)
        self._advance()

    def _replace(self, told: Roll, message: int, generation: int, is_whole: bool) -> None:
        later = [
            (nym, change)
            for nym, rows in self._roll.items()
            for change in unpack(rows)
            if change.announced_at > message
        ]
        for nym, rows in self._roll.items():
            for change in unpack(rows):
                self._cells.delete(self._space, _key(nym, change.announced_at))
        self._roll.clear()
        self._parts.clear()
        self.undone += 1
        self.newest = message
        self._settle(message, generation, is_whole)
        for nym, rows in told.items():
            for change in unpack(rows):
                self._add(nym, change)
        for nym, change in later:
            self._add(nym, change)

    def _settle(self, message: int, generation: int, is_whole: bool) -> None:
        self._base = _Base(message, generation, is_whole)
        self._cells.put(_BASES, self._place, _base.pack(*self._base))
        self._known = generation
        self._advance()

    def _add(self, nym: AuthorId, known: Known) -> bool:
        rows = self._roll.get(nym)
        at = len(rows)
        while at and _announced(rows, at // ROW_BYTES - 1) >= known.announced_at:
            at -= ROW_BYTES
        row = packing.pack(*known)
        if rows[at : at + ROW_BYTES] == row:
            return False
        if at < len(rows) and _announced(rows, at // ROW_BYTES) == known.announced_at:
            raise RemoteError(Reason.EQUIVOCATION, f"message {known.announced_at} announces two changes")
        self._cells.put(self._space, _key(nym, known.announced_at), row)
        self._roll.set(nym, rows[:at] + row + rows[at:])
        self._count_part(known, 1)
        self.newest = max(self.newest, known.announced_at)
        self._advance()
        return True

    def _count_part(self, change: Known, by: int) -> None:
        if change.joins:
            return
        count = self._parts.get(change.generation, 0) + by
        if count:
            self._parts[change.generation] = count
        else:
            self._parts.pop(change.generation, None)

    def _advance(self) -> None:
        while self._known in self._parts:
            self._known += 1


def _key(nym: AuthorId, announced_at: int) -> bytes:
    return nym + announced_at.to_bytes(8, "big")


def _announced(rows: bytes, index: int) -> int:
    at = index * ROW_BYTES if index >= 0 else len(rows) + index * ROW_BYTES
    return int.from_bytes(rows[at : at + 8], "big")


def _by_nym(cells: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[AuthorId, bytes]]:
    """Yield the packed changes of each nym. Keys come in order: by nym, then by announcement."""
    nym, rows = b"", b""
    for key, row in cells:
        if key[:NYM_BYTES] == nym:
            rows += row
            continue
        if rows:
            yield AuthorId(nym), rows
        nym, rows = key[:NYM_BYTES], row
    if rows:
        yield AuthorId(nym), rows
