"""A stream in the open world: a tracker, a storage node, and readers of all kinds that also publish."""

from __future__ import annotations

from math import inf

from msgspec import Struct, field

from linnet.core.effects import Deliver
from linnet.core.ids import DeviceId, EventId, PeerId
from linnet.delivery.commands import Consumed
from linnet.delivery.items import Missed
from linnet.event.event import Event
from linnet.machine.commands import Done
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.sim.judges.streams import Life, Publication, Reader, Receipt, judge_stream
from linnet.sim.judges.verdict import Complaint
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_world import OpenWorld, pick
from linnet.streams.commands import Publish, Published, Revoke, Subscribe, Subscribed
from linnet.streams.config import StorageRule
from linnet.trace.records import TraceSink

TRACKER, STORAGE, OWNER, THIEF = "tracker", "storage", "ann", "ann-phone"
NODES = (OWNER, "bob", "cid", "dan")
NEWCOMERS = ("eve", "fay", "gus")
STREAM = "open/world"


class Saying(Struct):
    """A published event."""

    publisher: str
    asked: float
    request: int
    was_wrong: bool
    is_last: bool
    acked: float | None = None
    id: EventId = EventId(b"")
    seq: int = 0


class Lived(Struct):
    """The events that a subscription was handed in one life of its node."""

    handed: list[Receipt] = field(default_factory=list)
    missed: list[tuple[DeviceId, int, int]] = field(default_factory=list)
    consumed: set[EventId] = field(default_factory=set)


class Subscription(Struct):
    """One subscription of one node."""

    node: str
    number: int
    name: str | None
    since: float | None
    asked: float
    request: int
    was_wrong: bool
    made: float | None = None
    is_broken: bool = False
    """Whether its node ended, and the subscription with it."""
    lives: list[Lived] = field(default_factory=lambda: [Lived()])
    consuming: list[tuple[int, Lived, tuple[EventId, ...]]] = field(default_factory=list)


class StreamsWay(OpenWorld):
    """A world with one stream."""

    way = "streams"
    thief = THIEF
    robbed = OWNER

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, trace)
        self.said: list[Saying] = []
        self.subscriptions: list[Subscription] = []
        self.revoked_at: float | None = None
        self._is_over = False
        self._spread: dict[EventId, float] = {}
        """When each event was first handed to an application of another device, with no partition between."""
        self.add((TRACKER, STORAGE, *NODES, THIEF, *NEWCOMERS))

    @property
    def cast(self) -> Cast:
        """See `OpenWorld.cast`."""
        return Cast(
            nodes=(TRACKER, STORAGE, *NODES),
            anchors=(TRACKER, STORAGE),
            spared=(TRACKER, *NODES),
            fixed=(TRACKER,),
            newcomers=NEWCOMERS,
            thief=THIEF,
        )

    def configured(self, name: str) -> PeerConfig:
        """Return a configuration with one tracker, known by its key and first address.

        In every second seed there is a storage node.
        """
        stores = name == STORAGE and self.seed % 2 == 0
        return PeerConfig(
            listens=(self.address(name),),
            trackers=(self.contact(TRACKER),),
            is_tracker=name == TRACKER,
            storage=(StorageRule(STREAM),) if stores else (),
        )

    def set_up(self) -> None:
        """Let all but the newcomers take part."""
        for name in self.identities:
            self.ask(name, Start())
        self.run(2.0)
        for number, name in enumerate(NODES):
            self._subscribe(name, durable=number % 2 == 0, since=0.0 if number == 3 else None)
        self._subscribe(THIEF, durable=False, since=None)
        self.run(10.0)

    def act(self) -> None:
        """Let a random node publish."""
        publishers = (*NODES, THIEF) if self.revoked_at is None else NODES
        name = pick(self.luck, self.living(publishers))
        if name is not None:
            self._publish(name)

    def change(self) -> None:
        """Add a subscription at a random node."""
        name = pick(self.luck, self.living(NODES))
        if name is not None:
            self._subscribe(name, durable=self.luck.random() < 0.5, since=self.luck.choice((None, None, 0.0)))

    def welcome(self, name: str) -> None:
        """Let a newcomer subscribe from now on."""
        self._subscribe(name, durable=self.luck.random() < 0.5, since=None)

    def revoke(self, name: str) -> None:
        """Let the owner revoke the device; the thief goes on publishing with it."""
        if not self.is_up(OWNER):
            return
        self.ask(OWNER, Revoke(self.revocation_of(name)))
        self.revoked_at = self.network.elapsed
        self._publish(name)

    def resume(self, name: str) -> None:
        """Resume durable subscriptions; others are gone."""
        for each in self.subscriptions:
            if each.node != name or each.is_broken:
                continue
            if each.name is None or each.made is None:
                each.is_broken = True
            else:
                each.lives.append(Lived())
                self.ask(name, Subscribe(each.number, STREAM, each.since, each.name))

    def finish(self) -> None:
        """Let every node publish once more."""
        self._is_over = True
        for name in self.living((*NODES, THIEF)):
            self._publish(name)

    def _publish(self, name: str) -> None:
        wrong = bool(self.offsets.get(name))
        body = f"{name}:{len(self.said)}".encode()
        request = self.ask(name, Publish(STREAM, (body,)))
        self.said.append(Saying(name, self.network.elapsed, request, wrong, self._is_over))

    def _subscribe(self, name: str, durable: bool, since: float | None) -> None:
        number = len(self.subscriptions) + 1
        called = f"reader {number}" if durable else None
        request = self.ask(name, Subscribe(number, STREAM, since, called))
        wrong = bool(self.offsets.get(name))
        self.subscriptions.append(
            Subscription(name, number, called, since, self.network.elapsed, request, wrong)
        )

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Remember delivered events, and acknowledge them."""
        subscription = self.subscriptions[effect.subscription - 1]
        life = subscription.lives[-1]
        ids = []
        for item in effect.items:
            if isinstance(item, Event) and item.seq is not None:
                life.handed.append(Receipt(item.id, item.device, item.seq))
                ids.append(item.id)
                is_own = item.device == self.identities[subscription.node].card.device
                # An event from one side of a partition is new on the other when they meet (0027).
                if not is_own and not self.is_parted:
                    self._spread.setdefault(item.id, self.network.elapsed)
            elif isinstance(item, Missed):
                life.missed.append((item.device, item.first, item.last))
        request = self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))
        subscription.consuming.append((request, life, tuple(ids)))

    def note(self) -> None:
        """See `OpenWorld.note`."""
        answers = self.network.answers
        for saying in self.said:
            answer = answers.get(saying.request)
            if saying.acked is None and isinstance(answer, Published):
                saying.acked = self.network.elapsed
                saying.id, saying.seq = answer.ids[0], answer.first
        for each in self.subscriptions:
            if each.made is None and isinstance(answers.get(each.request), Subscribed):
                each.made = self.network.elapsed
            for request, life, ids in each.consuming:
                if isinstance(answers.get(request), Done):
                    life.consumed.update(ids)
            each.consuming = [one for one in each.consuming if one[0] not in answers]

    def judge(self) -> list[Complaint]:
        """See `OpenWorld.judge`."""
        self.note()
        publications = [
            Publication(
                saying.id,
                self.identities[saying.publisher].card.device,
                saying.seq,
                saying.publisher,
                saying.asked,
                saying.acked,
                is_owed=saying.publisher not in self.dead and saying.publisher != THIEF,
                is_forbidden=saying.publisher == THIEF and self.revoked_at is not None and saying.is_last,
                was_wrong=saying.was_wrong,
                spread=self._spread.get(saying.id, inf),
            )
            for saying in self.said
            if saying.acked is not None
        ]
        readers = [
            Reader(
                f"{each.node} ({each.name or 'live'})",
                each.since is None and not self._is_beside(each),
                each.asked,
                each.made,
                tuple(
                    Life(tuple(life.handed), tuple(life.missed), frozenset(life.consumed))
                    for life in each.lives
                ),
                is_running=not each.is_broken and self.is_up(each.node) and each.node != THIEF,
                was_wrong=each.was_wrong or self.was_wrong,
            )
            for each in self.subscriptions
            if each.made is not None and each.node != THIEF
        ]
        return judge_stream(publications, readers)

    def _is_beside(self, subscription: Subscription) -> bool:
        """Return whether its node also reads from the beginning: both read one log
        (docs/adr/0027-made-at.md)."""
        if subscription.name is None:
            return False
        return any(each.node == subscription.node and each.since == 0.0 for each in self.subscriptions)
