"""What is public of a group, what a thief takes, and what is asked of one.

Carriers see every operation and every sealed message. A thief has besides, as bytes, whole states of devices.
How it reads is no part of the simulation: whoever runs one brings a `Thief`, and the run asks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.groups.ids import Device, MemberId


class Overheard(Struct, frozen=True):
    """One event of a group: an operation, or a message if it has clear bytes. In an order of causes."""

    id: EventId
    device: Device
    body: bytes
    clear: bytes = b""
    bound: bytes = b""
    """What else a message is bound to: public, too."""


class Theft(Struct, frozen=True):
    """A device's whole state, and what the device had done by then: for the judge, not for the thief."""

    state: bytes
    log: tuple[EventId, ...]
    """Operations and messages that it had sent, taken in or opened, in its order."""

    def __repr__(self) -> str:
        return f"Theft(after {len(self.log)})"


class Reader(Protocol):
    """One who has heard all of a run, and steals."""

    def steal(self, data: bytes) -> None:
        """A whole state of a device."""

    def read(self) -> dict[EventId, bytes]:
        """What the messages say that all that was stolen, and all that is public, opens."""


class Watch(Protocol):
    """What can be read of a run, and what must not be."""

    def reader(self) -> Reader:
        """One who has stolen nothing yet."""

    def safe(self, thefts: Iterable[Theft]) -> frozenset[EventId]:
        """The messages that whoever has stolen these must not be able to read."""

    def removed(self) -> dict[EventId, frozenset[MemberId]]:
        """For each message whom its sender knew to be removed."""


Thief = Callable[[bytes, Sequence[Overheard]], Watch]
"""Begins to watch a group by its id and all that was overheard of it."""
