"""Where records go."""

from __future__ import annotations

from typing import Protocol

from linnet.core.ids import PeerId
from linnet.trace.records import Record


class TraceSink(Protocol):
    """Keeps records; it adds the counter. Nothing that a driver hands it may stop the driver."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Keep a record of this node and time."""

    def close(self) -> None:
        """Nothing more will come; again does nothing."""


class NullTrace:
    """Keeps nothing."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Forget it."""

    def close(self) -> None:
        """There is nothing to close."""
