"""A bounded shelf of signed records that is stored: under each key, the newest record of each owner.

Records that are there stay: a stranger can take free places under a key, but push nobody out. The part that
keeps a record decides whether it is good enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from linnet.core.errors import StoreError
from linnet.core.reasons import Reason
from linnet.core.stores import Cells


class SignedRecord(Protocol):
    """A record of one owner under one key. The highest version is valid."""

    @property
    def key(self) -> bytes:
        """The key under which it is found."""

    @property
    def owner(self) -> bytes:
        """The public key that signs all its versions."""


V = TypeVar("V", bound=SignedRecord)


class Kept(NamedTuple, Generic[V]):
    """A record on the shelf."""

    giver: bytes
    until: float
    """When it is dropped, unless it is given again."""
    record: V


class ShelfLimits(Struct, frozen=True):
    """The most records that are kept."""

    records: int
    """In total."""
    candidates: int
    """Under one key, each from another owner."""
    giver_records: int
    """From one giver."""
    giver_candidates: int
    """From one giver under one key."""


class ShelfCells(NamedTuple, Generic[V]):
    """How a shelf is stored."""

    cells: Cells
    space: str
    encode: Callable[[Kept[V]], bytes]
    decode: Callable[[bytes], Kept[V]]


class Shelf(Generic[V]):
    """The records that are kept, and the peers that gave them."""

    def __init__(self, limits: ShelfLimits, cells: ShelfCells[V]) -> None:
        self._limits = limits
        self._cells = cells
        self._kept: dict[bytes, dict[bytes, Kept[V]]] = {}
        self._given: dict[bytes, int] = {}
        """The number of records from each giver."""
        self._count = 0
        for _, raw in cells.cells.scan(cells.space):
            try:
                self._add(cells.decode(raw))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise StoreError(f"a record in {cells.space!r} cannot be read: {error}") from error

    def __len__(self) -> int:
        return self._count

    @property
    def records(self) -> tuple[V, ...]:
        """All records."""
        return tuple(kept.record for under in self._kept.values() for kept in under.values())

    def find(self, key: bytes, now: float | None = None) -> tuple[V, ...]:
        """Return the records under a key; with `now`, only those that have not ended."""
        kept = self._kept.get(key, {}).values()
        return tuple(each.record for each in kept if now is None or each.until > now)

    def find_known(self, record: V) -> V | None:
        """Return the record that this record's owner has under the same key."""
        kept = self._kept.get(record.key, {}).get(record.owner)
        return None if kept is None else kept.record

    def find_limit(self, key: bytes, giver: bytes) -> Reason | None:
        """Return why there is no place for one more owner under a key; None if there is."""
        limits, under = self._limits, self._kept.get(key, {})
        from_giver = sum(each.giver == giver for each in under.values())
        if len(under) >= limits.candidates or from_giver >= limits.giver_candidates:
            return Reason.TOO_MANY
        is_full = self._count >= limits.records or self._given.get(giver, 0) >= limits.giver_records
        return Reason.QUOTA if is_full else None

    def keep(self, kept: Kept[V]) -> None:
        """Keep a record in place of the one that its owner has under this key."""
        record = kept.record
        if self.find_known(record) is not None:
            self._drop(record)
        self._add(kept)
        self._cells.cells.put(self._cells.space, record.key + record.owner, self._cells.encode(kept))

    def sweep(self, now: float) -> int:
        """Drop the records that have ended; return how many."""
        over = [each.record for under in self._kept.values() for each in under.values() if each.until <= now]
        for record in over:
            self._drop(record)
        return len(over)

    def _add(self, kept: Kept[V]) -> None:
        self._kept.setdefault(kept.record.key, {})[kept.record.owner] = kept
        self._given[kept.giver] = self._given.get(kept.giver, 0) + 1
        self._count += 1

    def _drop(self, record: V) -> None:
        under = self._kept[record.key]
        giver = under.pop(record.owner).giver
        if not under:
            del self._kept[record.key]
        self._given[giver] -= 1
        if not self._given[giver]:
            del self._given[giver]
        self._count -= 1
        self._cells.cells.delete(self._cells.space, record.key + record.owner)
