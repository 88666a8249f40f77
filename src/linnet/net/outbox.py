"""What waits to be written on one link: a control lane before a data lane, measured in bytes and age."""

from __future__ import annotations

from collections import deque


class Outbox:
    """Frames that wait for one peer. Order holds within a lane."""

    def __init__(self) -> None:
        self._control: deque[tuple[bytes, float]] = deque()
        self._bulk: deque[tuple[bytes, float]] = deque()
        self.bytes = 0
        """Bytes that wait."""

    def __len__(self) -> int:
        return len(self._control) + len(self._bulk)

    def put(self, frame: bytes, now: float, bulk: bool) -> None:
        """Queue a frame behind those of its lane."""
        (self._bulk if bulk else self._control).append((frame, now))
        self.bytes += len(frame)

    def take(self, limit: int) -> bytes:
        """Frames from the front, joined: as many as reach this many bytes, at least one."""
        taken: list[bytes] = []
        size = 0
        for lane in (self._control, self._bulk):
            while lane and size < limit:
                frame, _ = lane.popleft()
                taken.append(frame)
                size += len(frame)
        self.bytes -= size
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def oldest(self) -> float | None:
        """When the frame that waits longest was put; None if nothing waits."""
        if self._control and self._bulk:
            return min(self._control[0][1], self._bulk[0][1])
        if self._control:
            return self._control[0][1]
        return self._bulk[0][1] if self._bulk else None

    def clear(self) -> tuple[int, int]:
        """Forget everything; how many frames and bytes that were."""
        lost = len(self), self.bytes
        self._control.clear()
        self._bulk.clear()
        self.bytes = 0
        return lost
