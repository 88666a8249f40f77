"""The interface of a store, as machines use it. `linnet.store` has the engines; only it knows SQLite.

Writes are visible to the writer at once and durable when the driver's commit returns; effects that promise
something travel in `AfterCommit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId


class Entry(Struct, frozen=True, gc=False):
    """One signed unit of the log, an event or a burst, as the bytes in which it arrived."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    first: int | None
    """Sequence number of its first event; None where a topic has no chains."""
    count: int
    """The number of its events."""
    head: EventId
    """Id of its last event."""
    stored_at: float
    raw: bytes
    """The unit as it travels."""

    @property
    def last(self) -> int | None:
        """Sequence number of its last event."""
        return None if self.first is None else self.first + self.count - 1


class ChainHead(Struct, frozen=True, gc=False):
    """The first and last event in the log of one author and device in one topic."""

    author: AuthorId
    device: DeviceId
    first: int
    last: int
    head: EventId


class Damage(Struct, frozen=True, gc=False):
    """A unit of the log whose bytes differ from what was written."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    first: int | None
    count: int
    head: EventId

    @property
    def last(self) -> int | None:
        """Sequence number of its last event."""
        return None if self.first is None else self.first + self.count - 1


class CellDamage(Struct, frozen=True, gc=False):
    """A cell whose value differs from what was written."""

    space: str
    key: bytes


class Kept(Struct, frozen=True, gc=False):
    """The amount of stored data of a topic."""

    units: int
    events: int
    bytes: int
    oldest: float | None
    """`stored_at` of the oldest unit."""


class EventLog(Protocol):
    """An append-only log of signed units, each at a position; positions only grow."""

    def append(self, entry: Entry) -> int | None:
        """Store a unit and return its position; None if a unit of this head is there already.

        If that one was damaged, the unit replaces it in its place.
        """

    @property
    def left_out(self) -> tuple[Damage, ...]:
        """The units that the last `read` left out because they are damaged."""

    def take_damage(self) -> list[Damage]:
        """Return the units that were found damaged since the last call. Reads leave them out."""

    def is_damaged(self, damage: Damage) -> bool:
        """Return whether a unit is still damaged."""

    def get(self, head: EventId) -> Entry | None:
        """Return the unit whose last event has this id."""

    def read(self, topic: TopicId, after: int, limit: int) -> list[tuple[int, Entry]]:
        """Return units of a topic past a position, oldest first."""

    def chain(
        self, topic: TopicId, author: AuthorId, device: DeviceId, first: int, last: int, limit: int
    ) -> list[Entry]:
        """Return units of one chain that overlap a range of sequence numbers, in order."""

    def heads(self, topic: TopicId) -> list[ChainHead]:
        """Return the heads of all chains of a topic, in the order in which their first units arrived."""

    def kept(self, topic: TopicId) -> Kept:
        """Return how much of a topic is stored."""

    def since(self, topic: TopicId, stored_at: float) -> int:
        """Return the position after which all units of a topic were stored at this time or later."""

    def end(self) -> int:
        """Return the position of the newest unit of all; 0 if there is none."""

    def evict(self, topic: TopicId, before: float | None, max_bytes: int | None, limit: int) -> list[Entry]:
        """Remove the oldest units of a topic until none is older than `before` and its bytes fit; return
        them."""


class Cells(Protocol):
    """Small named values of the machines: cursors, cards, policies, state.

    A damaged value is never returned. One that a node can do without is forgotten, as if it had never been
    there; for others `get` and `scan` raise `CellsDamaged`. `take_damage` reports both. Writing a new value,
    or deleting it, ends the damage.
    """

    def get(self, space: str, key: bytes) -> bytes | None:
        """Return the value, if there is one."""

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Set a value."""

    def delete(self, space: str, key: bytes) -> None:
        """Delete a value, if there is one."""

    def scan(self, space: str) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all values of a space, in the order of their keys."""

    def take_damage(self) -> list[CellDamage]:
        """Return the cells that were found damaged since the last call, each once."""


class Store(Protocol):
    """The part of a node's state that survives a restart."""

    @property
    def log(self) -> EventLog:
        """The event log."""

    @property
    def cells(self) -> Cells:
        """The named values."""

    @property
    def free_bytes(self) -> int | None:
        """The bytes that are free on the disk; None: not known."""
