"""A village with a sealed stream: p0 seals it, others ask to read it, s0 keeps it."""

from __future__ import annotations

from tests.streams.village import Village

from linnet.core.ids import DeviceId
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Unreadable
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.sim.seeded_random import seeded_identity
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    Declare,
    DisallowReader,
    ListReaders,
    Policy,
    Published,
    ReadersAre,
    RequestIs,
)
from linnet.streams.config import StorageRule

OWNER = "p0"


class Readership:
    """The village and its sealed stream."""

    def __init__(
        self, seed: int = 1, peers: int = 4, storage: int = 1, delivery: DeliveryConfig | None = None
    ) -> None:
        person = seeded_identity(seed, OWNER, 0.0).author
        self.stream = f"{to_text(Sort.PERSON, person)}/news"
        self.village = Village(
            seed,
            peers=peers,
            storage=storage,
            rules=(StorageRule(self.stream),),
            delivery=delivery,
        )
        assert isinstance(self.seal(), Published)

    def seal(self, who: str = OWNER, policy: Policy | None = None) -> object:
        return self.village.ask(who, Declare(self.stream, policy or Policy(), sealed=True))

    def request(self, who: str) -> str:
        asked = self.village.ask(who, AskToRead(self.stream))
        assert isinstance(asked, RequestIs)
        return asked.line

    def allow(self, who: str, from_now: bool = False) -> ReadersAre:
        told = self.village.ask(OWNER, AllowReader(self.stream, self.request(who), from_now))
        assert isinstance(told, ReadersAre), told
        return told

    def disallow(self, who: str) -> ReadersAre:
        identity = self.village.identity[who]
        told = self.village.ask(OWNER, DisallowReader(self.stream, identity.author))
        assert isinstance(told, ReadersAre), told
        return told

    def readers(self) -> ReadersAre:
        told = self.village.ask(OWNER, ListReaders(self.stream))
        assert isinstance(told, ReadersAre), told
        return told

    def say(self, *bodies: bytes, wait: float = 2.0) -> Published:
        published = self.village.publish(OWNER, *bodies, stream=self.stream, wait=wait)
        assert isinstance(published, Published), published
        return published

    def subscribe(self, who: str, **options: object) -> int:
        return self.village.subscribe(who, self.stream, 3.0, **options)

    def read(self, who: str, subscription: int) -> list[bytes]:
        return self.village.bodies(who, subscription)

    def unread(self, who: str, subscription: int) -> list[str]:
        """Why it could not read, event by event."""
        items = self.village.items[who, subscription]
        return [item.reason.value for item in items if isinstance(item, Unreadable)]

    def later(self, who: str, subscription: int) -> list[bytes]:
        """What was told as unreadable at first and handed over after all."""
        items = self.village.items[who, subscription]
        told = {item.event.id for item in items if isinstance(item, Unreadable)}
        return [item.body for item in items if isinstance(item, Event) and item.id in told]

    def device(self, who: str) -> DeviceId:
        return self.village.identity[who].card.device
