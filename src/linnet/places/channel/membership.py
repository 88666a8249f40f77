"""Who may see which message: the changes of membership of one place, and the test over them.

Toth 2013, sections 4.5 and 5.3, with what docs/adr/0018-places.md settles. A change is announced by
one message and decides from another one on. The last one announced among those that are effective
at a message decides about it; a part is effective since message 0, so it closes everything before it.

All changes are in cells, one each, and in memory packed to 25 bytes: places have guests by the million.
Whoever is new learns the roll of all that is in force as a whole; until then, what is not known is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from struct import Struct as Packing

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.places.channel.roll import NYM_BYTES, ROW_BYTES, Known, Roll, in_force, packing, unpack
from linnet.places.deed import Policy
from linnet.places.multicast.fragmentation import Change

_SPACE = "place member"
_BASES = "place member base"
_base = Packing(">QQ?")


class Verdict(Enum):
    """What the test says. Who is not told yes gets nothing."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """A removal of which we have not heard may have come before: recover its notice, then ask again."""


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


class Membership:
    """The changes of one place that this node knows."""

    def __init__(self, place: TopicId, cells: Cells, policy: Policy) -> None:
        self.policy = policy
        self.hosts: tuple[AuthorId, ...] = ()
        """People whom the deed lets speak: they may see everything."""
        self._place = place
        self._cells = cells
        self._space = f"{_SPACE} {place.hex()}"
        self._roll = Roll()
        self._parts: dict[int, int] = {}
        """Parts by generation: how many."""
        self._present = 0
        self.newest = 0
        """The last message that is known to have announced a change; 0: none."""
        self.undone = 0
        """How often something that was known was taken back."""
        kept = cells.get(_BASES, place)
        base: tuple[int, int, bool] = (0, 0, True) if kept is None else _base.unpack(kept)
        self._since, self._base, self._is_whole = base
        self._known = self._base
        self._load()

    # What is known.

    @property
    def is_whole(self) -> bool:
        """Whether all that is in force is known; otherwise nobody is told no who may be a guest."""
        return self._is_whole

    @property
    def since(self) -> int:
        """Changes up to this message were told as a whole; 0: all came one by one."""
        return self._since

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
        return [nym for nym, rows in self._roll.items() if rows[-1]]

    def changes(self, nym: AuthorId) -> list[Known]:
        """What is known of a nym, in the order of announcement."""
        return unpack(self._roll.get(nym))

    def test(self, nym: AuthorId, message: int, generation: int, replay: bool = False) -> Verdict:
        """Whether a fragment of this message and generation may be given to a nym.

        With `replay` the nym may also have the notice of its own removal.
        """
        if self.policy is Policy.ANONYMOUS or nym in self.hosts:
            return Verdict.YES
        if replay and is_own_notice(self.changes(nym), message, generation):
            return Verdict.YES
        if generation > self._known:
            return Verdict.UNKNOWN
        # As `decide` does, without unpacking what does not matter.
        rows = self._roll.get(nym)
        for at in range(len(rows) - ROW_BYTES, -1, -ROW_BYTES):
            _, effective_since, _, joins = packing.unpack_from(rows, at)
            if effective_since <= message:
                return Verdict.YES if joins else Verdict.NO
        return Verdict.NO if self._is_whole else Verdict.UNKNOWN

    def matters(self, nym: AuthorId, announced_at: int) -> bool:
        """Whether this change of a nym is one of those in force."""
        return any(change.announced_at == announced_at for change in in_force(self.changes(nym)))

    def digest(self) -> bytes:
        """The hash of all that is in force."""
        return self._roll.digest()

    def lines(self) -> bytes:
        """All that is in force, for whoever is new: see `linnet.places.channel.roll`."""
        return self._roll.lines()

    # What is told.

    def store(self, change: Change, announced_at: int, generation: int) -> bool:
        """Take a change that a message announced; whether it is news.

        `RemoteError` if it breaks the rules, or contradicts what the same message said before.
        """
        if change.joins and change.effective_since > announced_at:
            raise RemoteError(Reason.MALFORMED, "a join that is effective only after it is announced")
        if not change.joins and change.effective_since:
            raise RemoteError(Reason.MALFORMED, "a part that is effective since a message")
        if announced_at <= self._since:
            return False  # what was told with our admission covers it
        known = Known(announced_at, change.effective_since, generation, change.joins)
        return self._add(change.nym, known)

    def enter(self, change: Change, message: int, generation: int) -> None:
        """We came in with this message. Who else is in we do not know until `learn`; what we knew as
        a guest of former times may have ended since."""
        told = Roll()
        told.set(change.nym, packing.pack(message, change.effective_since, generation, change.joins))
        self._replace(told, message, generation, is_whole=False)

    def learn(self, told: Roll, message: int, generation: int) -> None:
        """All that is in force as of a message, in whose hash the voice has signed it; the generation is
        the one behind that message.

        Older changes that turn up later, as history, count no more: a join among them may have been
        taken back by a part that was not worth telling. `RemoteError` if it is of another message.
        """
        if any(change.announced_at > message for _, rows in told.items() for change in unpack(rows)):
            raise RemoteError(Reason.MALFORMED, "a roll with changes of later messages")
        self._replace(told, message, generation, is_whole=True)

    def undo(self, after_message: int) -> list[tuple[AuthorId, Known]]:
        """A term was cut behind this message: take back what was announced later. Gives what was.

        If that was told as a whole, nobody knows here what it had covered: the rest is to be learned anew.
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
            self._set(nym, b"".join(packing.pack(*change) for change in left))
        self.undone += 1
        if after_message < self._since:
            self._settle(after_message, 0, is_whole=False)
        self.newest = max([self._since, *(_announced(rows, -1) for _, rows in self._roll.items())])
        self._known = self._base
        self._advance()
        return sorted(undone, key=lambda item: item[1].announced_at)

    # Inside.

    def _load(self) -> None:
        for nym, rows in _by_nym(self._cells.scan(self._space)):
            self._roll.set(nym, rows)
            self._present += rows[-1]
            self.newest = max(self.newest, _announced(rows, -1))
            for change in packing.iter_unpack(rows):
                self._count_part(Known._make(change), 1)
        self.newest = max(self.newest, self._since)
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
        self._present = 0
        self.undone += 1
        self.newest = message
        self._settle(message, generation, is_whole)
        for nym, rows in told.items():
            for change in unpack(rows):
                self._add(nym, change)
        for nym, change in later:
            self._add(nym, change)

    def _settle(self, message: int, generation: int, is_whole: bool) -> None:
        self._since, self._base, self._is_whole = message, generation, is_whole
        self._cells.put(_BASES, self._place, _base.pack(message, generation, is_whole))
        self._known = self._base
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
        self._set(nym, rows[:at] + row + rows[at:])
        self._count_part(known, 1)
        self.newest = max(self.newest, known.announced_at)
        self._advance()
        return True

    def _set(self, nym: AuthorId, rows: bytes) -> None:
        before = self._roll.get(nym)
        self._present += bool(rows and rows[-1]) - bool(before and before[-1])
        self._roll.set(nym, rows)

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
    """The packed changes of each nym. Keys come in order: by nym, then by announcement."""
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
