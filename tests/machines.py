"""Small machines that obey the contract, for tests of drivers and for measuring them."""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.effects import Dial, Reply, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, LinkDown, LinkUp, Received
from linnet.machine.commands import Done
from linnet.peer.interface import Connect, Effect, Input
from linnet.peer.messages import PROTOCOLS, Ping
from linnet.streams.commands import Publish
from linnet.trace.records import Kind, Record

HELLO = Hello(WIRE_VERSION, WIRE_VERSION, PROTOCOLS)


class Scripted:
    """Keeps all that happens to it, and answers what it is told to answer."""

    def __init__(self, script: Callable[[Input, float], list[Effect]] | None = None) -> None:
        self.hello = HELLO
        self.inputs: list[tuple[float, Input]] = []
        self._script = script

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        self.inputs.append((now, event))
        return [] if self._script is None else self._script(event, now)


class Flooder:
    """The smallest flood: passes each number on once, over every link but the one that it came from.

    `Connect` dials a peer, `Publish` sends the number that its first body holds.
    """

    def __init__(self) -> None:
        self.hello = HELLO
        self.links: dict[PeerId, bool] = {}
        self.seen: dict[int, float] = {}
        """Numbers with the time when they came first."""
        self.duplicates = 0

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        match event:
            case Received(peer, Ping() as ping):
                if ping.number in self.seen:
                    self.duplicates += 1
                    return [Record(Kind.DUPLICATE, seq=ping.number, peer=peer)]
                return [Record(Kind.RECEIVED, seq=ping.number, peer=peer), *self._flood(ping, peer, now)]
            case LinkUp(peer):
                self.links[peer] = True
            case LinkDown(peer):
                self.links.pop(peer, None)
            case Asked(request, Connect(contact)):
                return [Dial(contact.peer, contact.hints, False), Reply(request, Done())]
            case Asked(request, Publish(bodies=(body, *_))):
                return [*self._flood(Ping(int(body)), None, now), Reply(request, Done())]
            case _:
                pass
        return []

    def _flood(self, ping: Ping, origin: PeerId | None, now: float) -> list[Effect]:
        self.seen[ping.number] = now
        effects: list[Effect] = []
        for peer in self.links:
            if peer != origin:
                effects += (Send(peer, ping), Record(Kind.SENT, seq=ping.number, peer=peer))
        return effects
