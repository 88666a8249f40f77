"""A part by itself: inputs go to its marked handlers, and what it tells other parts is left for the test."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.core.timers import Timer
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.machine.part import Part
from linnet.machine.router import Router

Said: TypeAlias = list[Effect | Notice]
"""What a part asks for and tells, in its order."""


class _Unheard(Router):
    """A router that passes on no notices."""

    def pass_on_notices(self, now: float) -> None:
        """Leave them where they are."""


class LonePart:
    """Drives one part. Each input returns all that the part says, with notices in their places."""

    def __init__(self, part: Part, out: Outbox) -> None:
        self.out = out
        self._router = _Unheard(out, (part,))

    def hear(self, peer: PeerId, message: Message, now: float) -> Said:
        """A peer says something."""
        self._router.message(peer, message, now)
        return self.out.take_said()

    def fire(self, timer: Timer, now: float) -> Said:
        """A timer has run out."""
        self._router.timer(timer, now)
        return self.out.take_said()

    def ask(self, request: int, command: object, now: float) -> Said:
        """The application asks for something; what is refused is declined."""
        self._router.command(request, command, now)
        return self.out.take_said()
