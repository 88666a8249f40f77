"""Several nodes with names, linked at will; every message travels as bytes, and all of them are kept."""

from __future__ import annotations

from random import Random

from tests.names.people import NOW, person

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Hold, Reply, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.machine.commands import Declined
from linnet.machine.outbox import Effect, Outbox
from linnet.machine.router import Router
from linnet.names.commands import NotResolved, Published, Resolved
from linnet.names.config import NamesConfig
from linnet.names.messages import NameMessage
from linnet.names.part import Names
from linnet.peer.interface import AnyCommand
from linnet.store.memory import MemoryStore
from linnet.trace.records import Record
from linnet.wire.codec import Codec

CODEC: Codec[NameMessage] = Codec(NameMessage)
HELLO = Hello(1, 1, {"link": 1, "names": 1})


class House:
    """One node."""

    def __init__(self, name: str, config: NamesConfig) -> None:
        self.who = person(name)
        self.store = MemoryStore()
        self.config = config
        self.timers: dict[Timer, float] = {}
        self.records: list[Record] = []
        self.blamed: list[Blame] = []
        self.holds: list[Hold] = []
        self.replies: dict[int, object | Declined] = {}
        self.restart()

    @property
    def peer(self) -> PeerId:
        return self.who.peer

    def restart(self) -> None:
        rng = Random(self.who.author)
        context = Context(self.who.device, self.who.card, self.store, DeliveryConfig(), rng, verify_unit)
        self.context = context
        self.out = Outbox()
        self.names = Names(context, self.config, self.out)
        self.router = Router(self.out, (self.names,))


class Town:
    """All of them, at one time that stands still unless it is moved."""

    def __init__(self, *names: str, config: NamesConfig | None = None) -> None:
        self.now = NOW
        self.houses = {name: House(name, config or NamesConfig()) for name in names}
        self.links: dict[tuple[PeerId, PeerId], None] = {}
        self.sent: list[bytes] = []
        self.silent: dict[str, None] = {}
        """Who answers nothing."""
        self._request = 0

    def start(self, name: str) -> None:
        house = self.houses[name]
        house.names.start(self.now)
        self.perform(house, house.out.take())

    def link(self, one: str, other: str, hello: Hello = HELLO) -> None:
        first, second = self.houses[one], self.houses[other]
        self.links[first.peer, second.peer] = self.links[second.peer, first.peer] = None
        for house, peer in ((first, second.peer), (second, first.peer)):
            house.router.input(LinkUp(peer, hello, True, None), self.now)
            self.perform(house, house.out.take())

    def unlink(self, one: str, other: str) -> None:
        first, second = self.houses[one], self.houses[other]
        for house, peer in ((first, second.peer), (second, first.peer)):
            self.links.pop((house.peer, peer))
            house.router.input(LinkDown(peer, Reason.REMOTE_CLOSED), self.now)
            self.perform(house, house.out.take())

    def ask(self, name: str, command: AnyCommand) -> object | Declined | None:
        """What is answered, if it is at once."""
        self._request += 1
        house = self.houses[name]
        house.router.command(self._request, command, self.now)
        self.perform(house, house.out.take())
        return house.replies.get(self._request)

    def published(self, name: str, command: AnyCommand) -> Published:
        result = self.ask(name, command)
        assert isinstance(result, Published), result
        return result

    def resolved(self, name: str, command: AnyCommand) -> Resolved:
        result = self.ask(name, command)
        assert isinstance(result, Resolved), result
        return result

    def failed(self, name: str, command: AnyCommand) -> NotResolved:
        result = self.ask(name, command)
        assert isinstance(result, NotResolved), result
        return result

    def pass_time(self, seconds: float) -> None:
        """Let all timers run out that are due by then."""
        until = self.now + seconds
        while due := [
            (at, house, timer)
            for house in self.houses.values()
            for timer, at in house.timers.items()
            if at <= until
        ]:
            at, house, timer = min(due, key=lambda each: each[0])
            self.now = max(self.now, at)
            del house.timers[timer]
            house.router.timer(timer, self.now)
            self.perform(house, house.out.take())
        self.now = until

    def perform(self, house: House, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(peer, message):
                    self._carry(house, peer, message)
                case AfterCommit(later):
                    house.store.commit(lambda: None)
                    self.perform(house, [*later])
                case SetTimer(delay, timer):
                    house.timers[timer] = self.now + delay
                case CancelTimer(timer):
                    house.timers.pop(timer, None)
                case Reply(request, result):
                    house.replies[request] = result
                case Record():
                    house.records.append(effect)
                case Blame():
                    house.blamed.append(effect)
                case Hold():
                    house.holds.append(effect)

    def _carry(self, house: House, peer: PeerId, message: Message) -> None:
        assert isinstance(message, NameMessage)
        raw = CODEC.encode(message)
        self.sent.append(raw)
        if (house.peer, peer) not in self.links:
            return
        name, other = next(each for each in self.houses.items() if each[1].peer == peer)
        if name not in self.silent:
            other.router.message(house.peer, CODEC.decode(raw), self.now)
            self.perform(other, other.out.take())
