"""Telling members how far we are: from time to time, and soon after something happened."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.timers import Tick
from linnet.rooms.effects import RoomStep
from linnet.rooms.meeting import Meeting
from linnet.rooms.parts import Parts

OWNER = "room"
_HEADS = 256


class Announcing:
    """Our heads, told to those who are here."""

    def __init__(self, parts: Parts, meeting: Meeting) -> None:
        self._parts = parts
        self._meeting = meeting
        self._tick = Tick(OWNER, "announce", parts.id)
        self._armed: float | None = None
        """The delay that the timer was set with; None: it is not."""

    def arm(self, delay: float) -> list[RoomStep]:
        """Tell our heads after a while; sooner, if something happened."""
        if self._armed is not None and self._armed <= delay:
            return []
        self._armed = delay
        return [SetTimer(delay, self._tick)]

    def stop(self) -> list[RoomStep]:
        """Nothing more is told."""
        self._armed = None
        return [CancelTimer(self._tick)]

    def fired(self) -> list[RoomStep]:
        """Tell our heads to those who may not know."""
        self._armed = None
        parts, effects = self._parts, list[RoomStep]()
        heads = parts.sync.heads
        for peer in parts.guests.members:
            guest = parts.guests.by_peer[peer]
            if guest.heads != heads or guest.control != parts.control.heads[:_HEADS]:
                effects.append(Send(peer, self._meeting.greeting(answer=True)))
        linked = (peer for peer in parts.context.links if parts.neighbors.knows(peer))
        silent = (peer for peer in linked if peer not in parts.guests.by_peer)
        again = [self._meeting.approach(peer) for peer in silent]  # The first may be lost.
        return [*effects, *again, *self.arm(parts.config.announce_period)]
