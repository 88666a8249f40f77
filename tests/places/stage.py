"""One host's places without a network: commands in, effects out."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from linnet.core.effects import AfterCommit, Deliver, Reply
from linnet.core.ids import TopicId
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.delivery.items import Item
from linnet.event.signing import verify_unit
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.machine.router import Router
from linnet.peer.interface import AnyCommand
from linnet.places.commands import Announce, Announced, HostPlace, PlaceIs, Watching, WatchPlace
from linnet.places.config import PlacesConfig
from linnet.places.items import PlaceItem
from linnet.places.part import Places
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Record

R = TypeVar("R")


class Stage:
    """A host with one place. What it hands over is in `handed`, by subscription."""

    def __init__(self, config: PlacesConfig | None = None, delivery: DeliveryConfig | None = None) -> None:
        self.who = known_identity("host")
        self.store = MemoryStore()
        self.config = config or PlacesConfig()
        self.delivery = delivery or DeliveryConfig()
        self.handed: dict[int, list[Item | PlaceItem]] = {}
        self.records: list[Record] = []
        self._request = 0
        self.restart()
        self.place: TopicId = self.ask(HostPlace(), PlaceIs).deed.place

    def restart(self) -> None:
        """A new machine over what the store has."""
        context = Context(self.who.device, self.who.card, self.store, self.delivery, Random(1), verify_unit)
        self.out = Outbox()
        self.places = Places(context, self.config, self.out)
        self._router = Router(self.out, (self.places,))
        self.handed.clear()
        self.places.start(0.0)
        self.act()

    def ask(self, command: AnyCommand, kind: type[R]) -> R:
        """The answer to a command."""
        self._request += 1
        self._router.command(self._request, command, float(self._request))
        for reply in self.act():
            if reply.request == self._request:
                assert isinstance(reply.result, kind), reply.result
                return reply.result
        raise AssertionError(f"no answer to {command}")

    def declined_watch(self, number: int = 99, **more: object) -> Declined:
        """Why somebody may not watch."""
        return self.ask(WatchPlace(number, self.place, **{"objects": "", **more}), Declined)  # type: ignore[arg-type]

    def say(self, body: bytes, method: str = "_message", **more: object) -> int:
        """Announce something; the number of the message."""
        return self.ask(Announce(self.place, method, body=body, **more), Announced).message  # type: ignore[arg-type]

    def watch(self, number: int, **more: object) -> Watching:
        """Watch the place."""
        return self.ask(WatchPlace(number, self.place, **{"objects": "", **more}), Watching)  # type: ignore[arg-type]

    def consumed(self, number: int, items: int) -> None:
        """The application is done with so many items."""
        self.places.handle_consumed(0, Consumed(number, items), float(self._request))
        self.act()

    def unwatch(self, number: int) -> None:
        """Watch no more."""
        self.places.handle_unsubscribe(0, Unsubscribe(number), float(self._request))
        self.act()

    def take(self, number: int) -> list[Item | PlaceItem]:
        """What was handed over since, and is not handled yet."""
        return self.handed.pop(number, [])

    def act(self) -> list[Reply[object]]:
        """Perform what the machine asked for; its replies."""
        replies: list[Reply[object]] = []
        for effect in self.out.take():
            for each in effect.effects if isinstance(effect, AfterCommit) else (effect,):
                if isinstance(each, Deliver):
                    self.handed.setdefault(each.subscription, []).extend(each.items)
                elif isinstance(each, Reply):
                    replies.append(each)
                elif isinstance(each, Record):
                    self.records.append(each)
        return replies
