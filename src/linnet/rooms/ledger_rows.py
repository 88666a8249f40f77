"""What the delivery ledger writes down: a row per event of ours, and one per person."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, field

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId
from linnet.core.reasons import Reason

RELAYS = 16
"""Relays whose word on one event is kept: twice as many as are ever used at the same time."""

MARKS = 32
"""Steps of acknowledgement of one person whose time is kept; what arrived before them has none."""


class RelayWord(NamedTuple):
    """What a relay said last of an event."""

    holds: bool
    held: bool
    """Whether it holds it or once did."""
    at: float
    reason: Reason | None


class EventRow(Struct, array_like=True):
    """An event of ours."""

    seq: int
    id: EventId
    device: DeviceId
    kind: str
    time: int
    at: float
    """When its account was opened."""
    relays: dict[PeerId, RelayWord] = field(default_factory=dict)
    refused: dict[AuthorId, tuple[float, Reason]] = field(default_factory=dict)
    """Members that do not take it, since when, and why."""
    deadline: float | None = None
    out: AuthorId | None = None
    """Whom it puts out of the room: they can tell nobody of having it."""


class PersonRow(Struct, array_like=True):
    """A person that events of ours are or were meant for."""

    number: int
    """The order in which people are shown."""
    acked: int = -1
    """The last event of ours that they are known to have; with it all before it."""
    marks: list[tuple[int, float]] = field(default_factory=list)
    """The latest steps of `acked`, with when we learned them."""
    cut: int = -1
    """Of events up to this one the time is no longer kept."""
    spans: list[tuple[int, int | None]] = field(default_factory=list)
    """From which event of ours on up to before which they were meant for this person."""
    off: bool = False
    """Whether they say that they give no receipts."""

    @property
    def is_meant(self) -> bool:
        """Whether our next event is meant for them, as far as the last one shows."""
        return bool(self.spans) and self.spans[-1][1] is None

    def meant(self, seq: int) -> bool:
        """Whether this event of ours is meant for them."""
        return any(first <= seq and (end is None or seq < end) for first, end in reversed(self.spans))

    def enter(self, seq: int) -> None:
        """From this event on ours are meant for them."""
        self.spans.append((seq, None))

    def leave(self, seq: int) -> None:
        """From this event on ours are not meant for them."""
        first, _ = self.spans.pop()
        self.spans.append((first, seq))

    def forget_before(self, seq: int) -> bool:
        """Events before this one are forgotten; whether that changes the row."""
        spans = [(first, end) for first, end in self.spans if end is None or end > seq]
        changed = len(spans) != len(self.spans)
        self.spans = spans
        return changed

    def ack(self, seq: int, now: float) -> None:
        """They are known to have everything up to this event."""
        self.acked = seq
        self.marks.append((seq, now))
        if len(self.marks) > MARKS:
            self.cut = self.marks.pop(0)[0]

    def when(self, seq: int) -> float | None:
        """When we learned that they have this event, if that is still known."""
        if seq <= self.cut:
            return None
        return next((at for upto, at in self.marks if upto >= seq), None)
