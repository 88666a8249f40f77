"""Content in the open world: subscribers and publishers over the hash table, with a rendezvous that fails."""

from __future__ import annotations

from msgspec import Struct, field

from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.commands import (
    Match,
    Outcome,
    PublishContent,
    Standing,
    SubscribeContent,
    UnsubscribeContent,
)
from linnet.content.config import ContentConfig
from linnet.core.effects import Deliver
from linnet.core.ids import EventId, PeerId
from linnet.delivery.commands import Consumed
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.sim.judges.content import Publication, Subscriber, judge_content
from linnet.sim.judges.verdict import Complaint
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_world import OpenWorld, pick
from linnet.streams.commands import Revoke
from linnet.trace.records import TraceSink

FIRST, OWNER, THIEF = "first", "ann", "ann-phone"
NODES = (OWNER, "bob", "cid", "dan", "eve", "fay")
NEWCOMERS = ("gus", "hal", "ida")
TOPICS = ("tea", "cake")


class Saying(Struct):
    """An event to be published."""

    topic: str
    number: int
    publisher: str
    asked: float
    request: int
    is_last: bool
    body: bytes
    is_complete: bool = False
    id: EventId = EventId(b"")


class Wish(Struct):
    """A subscription."""

    node: str
    number: int
    name: str | None
    topic: str
    low: int
    high: int
    request: int
    made: float | None = None
    ended: float | None = None
    lives: list[list[EventId]] = field(default_factory=lambda: [[]])

    @property
    def predicate(self) -> str:
        """The predicate as text."""
        return f"{self.topic}/number[{self.low},{self.high}]"


class ContentWay(OpenWorld):
    """A world of nodes that subscribe and publish by content."""

    way = "content"
    thief = THIEF
    robbed = OWNER

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, trace)
        self.said: list[Saying] = []
        self.wishes: list[Wish] = []
        self.ids: dict[bytes, EventId] = {}
        """Ids of events by their bodies, as their readers saw them."""
        self.revoked_at: float | None = None
        self._is_over = False
        self._introduced: dict[str, None] = {}
        """Nodes that subscribed and could reach the first node, which all begin with: other nodes know no
        peer."""
        self.add((FIRST, *NODES, THIEF, *NEWCOMERS))

    @property
    def cast(self) -> Cast:
        """See `OpenWorld.cast`. The nodes that others rely on are the rendezvous nodes."""
        nodes = (FIRST, *NODES)
        names = (*TOPICS, "number")
        found = (
            min(nodes, key=lambda each: distance(self.peer(each), attribute_key(name))) for name in names
        )
        return Cast(
            nodes=nodes,
            anchors=tuple(dict.fromkeys(found)),
            spared=(FIRST, OWNER),
            fixed=(FIRST,),
            newcomers=NEWCOMERS,
            thief=THIEF,
        )

    def configured(self, name: str) -> PeerConfig:
        """Return a configuration in which every node begins with the first one."""
        begin = () if name == FIRST else (self.contact(FIRST),)
        return PeerConfig(
            listens=(self.address(name),),
            kademlia=KademliaConfig(),
            kademlia_bootstrap=begin,
            content=ContentConfig(),
        )

    def set_up(self) -> None:
        """Let all but the newcomers take part, and subscribe."""
        for name in self.identities:
            if name not in NEWCOMERS:
                self.ask(name, Start())
        self.run(20.0)
        for number, name in enumerate(NODES):
            self._subscribe(name, is_kept=number % 2 == 0)
        self.run(30.0)

    def act(self) -> None:
        """Let a random node publish."""
        publishers = (*NODES, THIEF) if self.revoked_at is None else NODES
        name = pick(self.luck, self.living(publishers))
        if name is not None:
            self._publish(name)

    def change(self) -> None:
        """Add or end a subscription."""
        name = pick(self.luck, self.living(NODES))
        on = [wish for wish in self.wishes if wish.node == name and wish.ended is None and wish.made]
        if name is not None and on and self.luck.random() < 0.3:
            wish = self.luck.choice(on)
            wish.ended = self.network.elapsed
            self.ask(name, UnsubscribeContent(wish.number))
        elif name is not None:
            self._subscribe(name, is_kept=self.luck.random() < 0.5)

    def welcome(self, name: str) -> None:
        """Let a newcomer start and subscribe."""
        self.ask(name, Start())
        self._subscribe(name, is_kept=False)

    def revoke(self, name: str) -> None:
        """Let the owner revoke the device; the thief goes on publishing with it."""
        if self.is_up(OWNER):
            self.ask(OWNER, Revoke(self.revocation_of(name)))
            self.revoked_at = self.network.elapsed
        if self.is_up(name):
            self._publish(name)

    def resume(self, name: str) -> None:
        """Resume kept subscriptions; others are gone."""
        for wish in self.wishes:
            if wish.node != name or wish.ended is not None:
                continue
            if wish.name is None or wish.made is None:
                wish.ended = self.network.elapsed
            else:
                wish.lives.append([])
                self.ask(name, SubscribeContent(wish.number, wish.predicate, wish.name))

    def finish(self) -> None:
        """Let every node publish once more."""
        self._is_over = True
        for name in self.living(NODES):
            self._publish(name)

    def _publish(self, name: str) -> None:
        topic, number = self.luck.choice(TOPICS), self.luck.randint(0, 99)
        body = f"{name}:{len(self.said)}".encode()
        request = self.ask(name, PublishContent(f"{topic}/number={number}", body))
        self.said.append(Saying(topic, number, name, self.network.elapsed, request, self._is_over, body))

    def _subscribe(self, name: str, is_kept: bool) -> None:
        number = len(self.wishes) + 1
        low = self.luck.randint(0, 60)
        high = low + self.luck.randint(10, 39)
        called = f"wish {number}" if is_kept else None
        wish = Wish(name, number, called, self.luck.choice(TOPICS), low, high, 0)
        wish.request = self.ask(name, SubscribeContent(number, wish.predicate, called))
        self.wishes.append(wish)

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Remember delivered events, and acknowledge them."""
        wish = self.wishes[effect.subscription - 1]
        for item in effect.items:
            if isinstance(item, Match):
                wish.lives[-1].append(item.event)
                self.ids[item.body] = item.event
        self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))

    def note(self) -> None:
        """See `OpenWorld.note`."""
        answers = self.network.answers
        for saying in self.said:
            answer = answers.get(saying.request)
            if isinstance(answer, Outcome):
                saying.id = answer.event
                saying.is_complete = all(
                    fate.settled and not fate.missed and fate.reason is None for fate in answer.fates
                )
        for wish in self.wishes:
            if self._meets_first(wish.node):
                self._introduced[wish.node] = None
            stands = wish.node in self._introduced and isinstance(answers.get(wish.request), Standing)
            if wish.made is None and stands:
                wish.made = self.network.elapsed

    def _meets_first(self, name: str) -> bool:
        """Return whether a node can have a link to the first one: cards are invalid at a wrong time."""
        is_there = self.is_up(name) and self.is_up(FIRST) and not self.is_parted
        return is_there and not (self.offsets.get(name) or self.offsets.get(FIRST))

    def judge(self) -> list[Complaint]:
        """See `OpenWorld.judge`."""
        self.note()
        publications = [
            Publication(
                saying.id or self.ids.get(saying.body, EventId(saying.body)),
                saying.topic,
                saying.number,
                saying.publisher,
                saying.asked,
                is_complete=saying.is_complete
                and not self._was_parted(saying.asked)
                and saying.publisher != THIEF,
                is_forbidden=saying.publisher == THIEF and self.revoked_at is not None and saying.is_last,
            )
            for saying in self.said
        ]
        subscribers = [
            Subscriber(
                f"{wish.node} ({wish.name or 'live'})",
                wish.topic,
                wish.low,
                wish.high,
                wish.made,
                self.network.elapsed if wish.ended is None else wish.ended,
                tuple(self.unfit.get(wish.node, ())),
                tuple(map(tuple, wish.lives)),
            )
            for wish in self.wishes
            if wish.made is not None
        ]
        return judge_content(publications, subscribers)

    def _was_parted(self, at: float) -> bool:
        """Return whether there was a partition at about this time: then nobody can know all subscribers."""
        return any(at - 60.0 <= second <= at + 60.0 for second in self.parted)
