"""Telling members how far we are: from time to time, and soon after something happened."""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.core.timers import Timer
from linnet.rooms.meeting import Meeting
from linnet.rooms.room_setup import Parts

_HEADS = 256


class AnnounceDue(Timer, frozen=True, gc=False):
    """Members of a room are to be told how far we are."""

    room: TopicId


class Announcing:
    """Our heads, told to those who are here."""

    def __init__(self, parts: Parts, meeting: Meeting) -> None:
        self._parts = parts
        self._out = parts.out
        self._meeting = meeting
        self._armed: float | None = None
        """The delay that the timer was set with; None: it is not."""

    def arm(self, delay: float) -> None:
        """Tell our heads after a while; sooner, if something happened."""
        if self._armed is None or self._armed > delay:
            self._armed = delay
            self._out.set_timer(delay, AnnounceDue(self._parts.id))

    def stop(self) -> None:
        """Tell nothing more."""
        self._armed = None
        self._out.cancel_timer(AnnounceDue(self._parts.id))

    def tell_heads(self) -> None:
        """Tell our heads to those who may not know."""
        self._armed = None
        parts = self._parts
        heads = parts.sync.heads
        for peer in parts.guests.members:
            guest = parts.guests.by_peer[peer]
            if guest.heads != heads or guest.control != parts.control.heads[:_HEADS]:
                self._meeting.greet(peer, answer=True)
        for peer in parts.context.links:
            if parts.neighbors.knows(peer) and peer not in parts.guests.by_peer:
                self._meeting.approach(peer)  # The first may be lost.
        self.arm(parts.config.announce_period)
