"""Who may see which message: the changes of membership of one place, and the test over them.

Toth 2013, sections 4.5 and 5.3, with what docs/adr/0018-places.md settles. A change is announced by
one message and decides from another one on. The last one announced among those that are effective
at a message decides about it; a part is effective since message 0, so it closes everything before it.

All changes are in cells, one each, and in memory packed to 25 bytes: places have guests by the million.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from struct import Struct as Packing
from typing import NamedTuple

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.places.deed import Policy
from linnet.places.multicast.head import Change

_SPACE = "place member"
_BASES = "place member base"
_NYM_BYTES = 32
_packing = Packing(">QQQ?")
_ROW = _packing.size
_base = Packing(">QQ")


class Verdict(Enum):
    """What the test says. Who is not told yes gets nothing."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """A removal of which we have not heard may have come before: recover its notice, then ask again."""


class Known(NamedTuple):
    """A change of one nym, as it was announced."""

    announced_at: int
    """The message that said so: what changes are ordered by."""
    effective_since: int
    """The first message that it decides about."""
    generation: int
    """Of the announcement. Of a part: the last one that the nym may see."""
    joins: bool


def decide(changes: Sequence[Known], known_generation: int, message: int, generation: int) -> Verdict:
    """The test itself, over one nym's changes in the order of their announcement."""
    if generation > known_generation:
        return Verdict.UNKNOWN
    for change in reversed(changes):
        if change.effective_since <= message:
            return Verdict.YES if change.joins else Verdict.NO
    return Verdict.NO


def is_own_notice(changes: Sequence[Known], message: int, generation: int) -> bool:
    """Whether a message is the one that removed this nym: it may learn why nothing comes any more."""
    return any(
        change.announced_at == message and not change.joins and generation <= change.generation
        for change in changes
    )


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


class Membership:
    """The changes of one place that this node knows."""

    def __init__(self, place: TopicId, cells: Cells, policy: Policy) -> None:
        self.policy = policy
        self._place = place
        self._cells = cells
        self._space = f"{_SPACE} {place.hex()}"
        self._rows: dict[AuthorId, bytes] = {}
        self._parts: dict[int, int] = {}
        """Parts by generation: how many."""
        self._present = 0
        kept = cells.get(_BASES, place)
        self._since, self._base = (0, 0) if kept is None else _base.unpack(kept)
        self._known: int = self._base
        self._load()

    # What is known.

    @property
    def known_generation(self) -> int:
        """1 + the largest generation of a part that is stored, with none missing before it.

        A removal that was missed would let us serve somebody who is gone, so it holds back all that
        was sent behind it.
        """
        return self._known

    @property
    def guests(self) -> int:
        """How many nyms are in now."""
        return self._present

    def present(self) -> list[AuthorId]:
        """The nyms that are in now."""
        return [nym for nym, rows in self._rows.items() if rows[-1]]

    def changes(self, nym: AuthorId) -> list[Known]:
        """What is known of a nym, in the order of announcement."""
        return [Known._make(row) for row in _packing.iter_unpack(self._rows.get(nym, b""))]

    def test(self, nym: AuthorId, message: int, generation: int, replay: bool = False) -> Verdict:
        """Whether a fragment of this message and generation may be given to a nym.

        With `replay` the nym may also have the notice of its own removal.
        """
        if self.policy is Policy.ANONYMOUS:
            return Verdict.YES
        if replay and is_own_notice(self.changes(nym), message, generation):
            return Verdict.YES
        if generation > self._known:
            return Verdict.UNKNOWN
        # As `decide` does, without unpacking what does not matter.
        rows = self._rows.get(nym, b"")
        for at in range(len(rows) - _ROW, -1, -_ROW):
            _, effective_since, _, joins = _packing.unpack_from(rows, at)
            if effective_since <= message:
                return Verdict.YES if joins else Verdict.NO
        return Verdict.NO

    def in_force(self) -> list[int]:
        """The messages whose changes a newcomer must be told, in the order of announcement."""
        found = [change.announced_at for nym in self._rows for change in in_force(self.changes(nym))]
        return sorted(found)

    def matters(self, nym: AuthorId, announced_at: int) -> bool:
        """Whether this change of a nym is one of those in force."""
        return any(change.announced_at == announced_at for change in in_force(self.changes(nym)))

    # What is told.

    def store(self, change: Change, announced_at: int, generation: int) -> bool:
        """Take a change that a message announced; whether it is news.

        `RemoteError` if it breaks the rules, or contradicts what the same message said before.
        """
        _check(change, announced_at)
        if announced_at <= self._since:
            return False  # what was told with our admission covers it
        known = Known(announced_at, change.effective_since, generation, change.joins)
        return self._add(change.nym, known)

    def tell(self, change: Change, announced_at: int, generation: int) -> bool:
        """The same for a change that was told with our admission as one of those in force."""
        _check(change, announced_at)
        return self._add(change.nym, Known(announced_at, change.effective_since, generation, change.joins))

    def forget(self) -> None:
        """Know nothing, before the changes in force are told anew: somebody who was out for a while
        cannot know who left meanwhile."""
        for nym in list(self._rows):
            for row in self.changes(nym):
                self._cells.delete(self._space, _key(nym, row.announced_at))
        self._rows.clear()
        self._parts.clear()
        self._present = 0
        self.settle(0, 0)

    def settle(self, message: int, generation: int) -> None:
        """The changes in force at this message were told; it is of this generation.

        Older changes that turn up later, as history, count no more: a join among them may have been
        taken back by a part that was not worth telling.
        """
        self._since, self._base = message, generation
        self._cells.put(_BASES, self._place, _base.pack(message, generation))
        self._known = self._base
        self._advance()

    def undo(self, after_message: int) -> list[tuple[AuthorId, Known]]:
        """A term was cut behind this message: take back what was announced later. Gives what was."""
        late = [nym for nym, rows in self._rows.items() if _announced(rows, -1) > after_message]
        undone: list[tuple[AuthorId, Known]] = []
        for nym in late:
            changes = self.changes(nym)
            left = [change for change in changes if change.announced_at <= after_message]
            for change in changes[len(left) :]:
                self._cells.delete(self._space, _key(nym, change.announced_at))
                self._count_part(change, -1)
                undone.append((nym, change))
            self._set(nym, b"".join(_packing.pack(*change) for change in left))
        self._known = self._base
        self._advance()
        return sorted(undone, key=lambda item: item[1].announced_at)

    # Inside.

    def _load(self) -> None:
        for nym, rows in _by_nym(self._cells.scan(self._space)):
            self._rows[nym] = rows
            self._present += rows[-1]
            for change in _packing.iter_unpack(rows):
                self._count_part(Known._make(change), 1)
        self._advance()

    def _add(self, nym: AuthorId, known: Known) -> bool:
        rows = self._rows.get(nym, b"")
        at = len(rows)
        while at and _announced(rows, at // _ROW - 1) >= known.announced_at:
            at -= _ROW
        row = _packing.pack(*known)
        if rows[at : at + _ROW] == row:
            return False
        if at < len(rows) and _announced(rows, at // _ROW) == known.announced_at:
            raise RemoteError(Reason.EQUIVOCATION, f"message {known.announced_at} announces two changes")
        self._cells.put(self._space, _key(nym, known.announced_at), row)
        self._set(nym, rows[:at] + row + rows[at:])
        self._count_part(known, 1)
        self._advance()
        return True

    def _set(self, nym: AuthorId, rows: bytes) -> None:
        before = self._rows.pop(nym, b"")
        self._present += bool(rows and rows[-1]) - bool(before and before[-1])
        if rows:
            self._rows[nym] = rows

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


def _check(change: Change, announced_at: int) -> None:
    if change.joins and change.effective_since > announced_at:
        raise RemoteError(Reason.MALFORMED, "a join that is effective only after it is announced")
    if not change.joins and change.effective_since:
        raise RemoteError(Reason.MALFORMED, "a part that is effective since a message")


def _key(nym: AuthorId, announced_at: int) -> bytes:
    return nym + announced_at.to_bytes(8, "big")


def _announced(rows: bytes, index: int) -> int:
    at = index * _ROW if index >= 0 else len(rows) + index * _ROW
    return int.from_bytes(rows[at : at + 8], "big")


def _by_nym(cells: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[AuthorId, bytes]]:
    """The packed changes of each nym. Keys come in order: by nym, then by announcement."""
    nym, rows = b"", b""
    for key, row in cells:
        if key[:_NYM_BYTES] == nym:
            rows += row
            continue
        if rows:
            yield AuthorId(nym), rows
        nym, rows = key[:_NYM_BYTES], row
    if rows:
        yield AuthorId(nym), rows
