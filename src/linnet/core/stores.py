"""What machines ask of a store. `linnet.store` has the engines; only it knows SQLite.

Writes are visible to the writer at once and durable when the driver's commit returns; effects
that promise something travel in `AfterCommit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId


class Entry(Struct, frozen=True, gc=False):
    """One signed unit of the log, an event or a burst, as the bytes that came."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    first: int | None
    """Sequence number of its first event; none where a topic has no chains."""
    count: int
    """How many events it holds."""
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
    """Where the log of one author and device in one topic begins and ends."""

    author: AuthorId
    device: DeviceId
    first: int
    last: int
    head: EventId


class Damage(Struct, frozen=True, gc=False):
    """A unit of the log whose bytes are not what was written."""

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


class Kept(Struct, frozen=True, gc=False):
    """How much of a topic is held."""

    units: int
    events: int
    bytes: int
    oldest: float | None
    """`stored_at` of the oldest unit."""


class EventLog(Protocol):
    """An append-only log of signed units, with a position for each that only grows."""

    def append(self, entry: Entry) -> int | None:
        """Store a unit and return its position; None if a unit of this head is there already.

        One that was damaged is mended by it, in its place.
        """

    @property
    def left_out(self) -> tuple[Damage, ...]:
        """What the last `read` left out since it is damaged."""

    def take_damage(self) -> list[Damage]:
        """What was found damaged since the last call. Reads leave it out."""

    def is_damaged(self, damage: Damage) -> bool:
        """Whether a unit is still damaged."""

    def get(self, head: EventId) -> Entry | None:
        """The unit whose last event has this id."""

    def read(self, topic: TopicId, after: int, limit: int) -> list[tuple[int, Entry]]:
        """Units of a topic past a position, oldest first."""

    def chain(
        self, topic: TopicId, author: AuthorId, device: DeviceId, first: int, last: int, limit: int
    ) -> list[Entry]:
        """Units of one chain that overlap a range of sequence numbers, in its order."""

    def heads(self, topic: TopicId) -> list[ChainHead]:
        """Every chain of a topic, in the order in which their first units came."""

    def kept(self, topic: TopicId) -> Kept:
        """How much of a topic is held."""

    def since(self, topic: TopicId, stored_at: float) -> int:
        """The position after which all units of a topic were stored at this time or later."""

    def end(self) -> int:
        """The position of the newest unit of all; 0 if there is none."""

    def evict(self, topic: TopicId, before: float | None, max_bytes: int | None, limit: int) -> list[Entry]:
        """Remove the oldest units of a topic until none is older and its bytes fit; return them."""


class Cells(Protocol):
    """Small named values of the machines: cursors, cards, policies, state."""

    def get(self, space: str, key: bytes) -> bytes | None:
        """The value, if there is one."""

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Set a value."""

    def delete(self, space: str, key: bytes) -> None:
        """Forget a value, if there is one."""

    def scan(self, space: str) -> Iterator[tuple[bytes, bytes]]:
        """All values of a space, in the order of their keys."""


class Store(Protocol):
    """What survives a restart."""

    @property
    def log(self) -> EventLog:
        """The event log."""

    @property
    def cells(self) -> Cells:
        """The named values."""
