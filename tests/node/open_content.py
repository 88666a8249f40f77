"""Content of real nodes in the open world: subscribers and publishers over the hash table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from math import inf
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace
from tests.node.content_world import BRISK, TABLE
from tests.node.killed_world import configure, until
from tests.node.struck_world import SUBSCRIBES, Recorder, StruckWorld

from linnet.api.content import MatchView, ReadContent, SayContent
from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.commands import ListContent
from linnet.core.ids import EventId
from linnet.identity.text import event_text
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.sim.judges.content import Publication, Subscriber, judge_content
from linnet.sim.judges.verdict import Complaint
from linnet.sim.nemesis.faults import Cast

FIRST = "first"
NODES = ("ann", "bob", "cid", "dan")
NEWCOMERS = ("eve",)
TOPICS = ("tea", "cake")
HASTE = 10.0
"""How much faster nodes are here than by default. The judge is told times that are so much longer."""
PARTED = 60.0 / HASTE
"""Seconds around a partition in which nobody can know who wants something."""


class Saying(Struct):
    """Something that is published."""

    topic: str
    number: int
    publisher: str
    asked: float
    text: str
    event: str = ""
    is_complete: bool = False


class Wish(Struct):
    """A subscription."""

    node: str
    topic: str
    low: int
    high: int
    reader: Recorder
    ended: float | None = None


class OpenContent(StruckWorld):
    """Nodes that subscribe and publish by what is said."""

    way = "content"

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(directory, (FIRST, *NODES), NEWCOMERS, BRISK, seed)
        self.said: list[Saying] = []
        self.wishes: list[Wish] = []
        for name, node in self.nodes.items():
            configure(node, partial(self._configured, name))

    @property
    def cast(self) -> Cast:
        """See `StruckWorld.cast`. Those that others rely on are the rendezvous."""
        nodes = (FIRST, *NODES)
        found = (
            min(nodes, key=lambda each: distance(self.nodes[each].peer, attribute_key(name)))
            for name in (*TOPICS, "number")
        )
        return Cast(
            nodes=nodes,
            anchors=tuple(dict.fromkeys(found)),
            spared=(FIRST, NODES[0]),
            fixed=(FIRST,),
            newcomers=NEWCOMERS,
        )

    @property
    def acknowledged(self) -> int:
        """See `StruckWorld.acknowledged`."""
        return sum(bool(saying.event) for saying in self.said)

    def _configured(self, name: str, config: NodeConfig) -> NodeConfig:
        begin = () if name == FIRST else (self.contact(FIRST),)
        return replace(config, kademlia=replace(TABLE, bootstrap=begin))

    def set_up(self) -> None:
        """All but the newcomers take part, and subscribe."""
        self.start_these((FIRST, *NODES))
        for number, name in enumerate(NODES):
            self._subscribe(name, is_kept=number % 2 == 0)
        for reader in self.readers:
            reader.await_subscription(SUBSCRIBES)
        until(lambda: all(self.nodes[name].control.ask(ListContent()).settled for name in NODES), SUBSCRIBES)

    def act(self) -> None:
        """Somebody publishes."""
        living = self.living(NODES)
        if living:
            self.call(partial(self._publish, self.luck.choice(living)))

    def change(self) -> None:
        """One more subscription, or one less."""
        living = self.living(NODES)
        if not living:
            return
        name = self.luck.choice(living)
        on = [wish for wish in self.wishes if wish.node == name and wish.ended is None and wish.reader.made]
        if on and self.luck.random() < 0.3:
            wish = self.luck.choice(on)
            wish.ended = time.monotonic()
            self.call(wish.reader.end)
        else:
            self._subscribe(name, is_kept=self.luck.random() < 0.5)

    def welcome(self, name: str) -> None:
        """Somebody comes who was not there, and subscribes."""
        self._subscribe(name, is_kept=False)

    def finish(self) -> None:
        """Everybody publishes once more."""
        for name in self.living((*NODES, *NEWCOMERS)):
            self.call(partial(self._publish, name))

    def _publish(self, name: str) -> None:
        topic, number = self.luck.choice(TOPICS), self.luck.randint(0, 99)
        text = f"{name}:{len(self.said)}:{self.luck.getrandbits(32):08x}"
        saying = Saying(topic, number, name, time.monotonic(), text)
        self.said.append(saying)
        reply = self.nodes[name].control.ask(SayContent(f"{topic}/number={number}", text))
        saying.event = event_text(reply.event)
        saying.is_complete = all(
            fate.settled and not fate.missed and fate.reason is None for fate in reply.fates
        )

    def _subscribe(self, name: str, is_kept: bool) -> None:
        low = self.luck.randint(0, 60)
        topic, high = self.luck.choice(TOPICS), low + self.luck.randint(20, 60)
        called = f"wish {len(self.wishes)}" if is_kept else None
        predicate = f"{topic}/number[{low},{high}]"

        def subscribe(reading: ControlClient) -> Iterator[object]:
            return reading.lines(ReadContent(0, predicate, called), manual=True)

        luck = Random(f"{self.seed} {len(self.wishes)}")
        reader = Recorder(self.nodes[name], called or "live", subscribe, _event_of, luck, is_durable=is_kept)
        self.wishes.append(Wish(name, topic, low, high, reader))
        self.read(reader)

    def judge(self) -> list[Complaint]:
        """See `StruckWorld.judge`."""
        seen = {
            each.item.text: each.item.event
            for reader in list(self.readers)
            for each in list(reader.taken)
            if isinstance(each.item, MatchView)
        }
        publications = [
            Publication(
                EventId((saying.event or seen.get(saying.text, saying.text)).encode()),
                saying.topic,
                saying.number,
                saying.publisher,
                self._hastily(saying.asked),
                is_complete=saying.is_complete and not self._was_parted(saying.asked),
            )
            for saying in list(self.said)
        ]
        return judge_content(
            publications,
            [self._subscriber(wish, wish.reader.made) for wish in self.wishes if wish.reader.made],
        )

    def _subscriber(self, wish: Wish, made: float) -> Subscriber:
        ends = [at for at in (wish.ended, wish.reader.ended, self.dead.get(wish.node)) if at is not None]
        return Subscriber(
            wish.reader.name,
            wish.topic,
            wish.low,
            wish.high,
            self._hastily(made),
            self._hastily(min(ends)) if ends else inf,
            tuple(map(self._hastily, self.unfit[wish.node])),
            tuple(
                tuple(EventId(_event_of(item) or b"") for item in items if isinstance(item, MatchView))
                for items, _ in wish.reader.by_life
            ),
        )

    def _hastily(self, at: float) -> float:
        return (at - self.begun) * HASTE

    def _was_parted(self, at: float) -> bool:
        return any(abs(at - each) <= PARTED for each in self.parted)


def _event_of(item: object) -> bytes | None:
    return item.event.encode() if isinstance(item, MatchView) else None
