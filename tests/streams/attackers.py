"""Peers that do what no honest node does. Each links to a victim and says what it is told to say."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.due import Due
from tests.machines import HELLO

from linnet.core.effects import Dial, Reply, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, LinkDown, LinkUp, Received, TimerFired
from linnet.core.messages import Message
from linnet.machine.commands import Done
from linnet.peer.interface import Connect, Effect, Input
from linnet.peer.messages import Ping, Pong

AGAIN = Due("again")
Lines = Callable[[int], Iterable[Message]]


class Attacker:
    """Dials a victim, and after each pause says the lines of that round, for so many rounds."""

    def __init__(self, victim: PeerId, lines: Lines, *, rounds: int = 1, pause: float = 0.1) -> None:
        self.hello: Hello = HELLO
        self.victim = victim
        self.lines = lines
        self.rounds = rounds
        self.pause = pause
        self.said = 0
        self.heard: list[Message] = []
        self.cut: list[str] = []
        """Why its links went down."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        match event:
            case Asked(request, Connect(contact)):
                return [Dial(contact.peer, contact.hints, False), Reply(request, Done())]
            case LinkUp():
                return [SetTimer(self.pause, AGAIN)]
            case LinkDown(_, reason):
                self.cut.append(str(reason))
            case Received(peer, Ping(number)):
                return [Send(peer, Pong(number))]
            case Received(_, message):
                self.heard.append(message)
            case TimerFired() if not self.cut and self.said < self.rounds:
                effects: list[Effect] = [Send(self.victim, line) for line in self.lines(self.said)]
                self.said += 1
                return [*effects, SetTimer(self.pause, AGAIN)]
            case _:
                pass
        return []
