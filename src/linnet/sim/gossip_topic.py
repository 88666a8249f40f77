"""One topic at one simulated node: signed events, passed on along the overlay, handed over causally.

The parts are the shipped ones: `Flood` for passing on, `Barriers` for order and recovery, the heads walk and
set reconciliation for what was missed. What is the simulation's own: anybody may publish, cards are
known to all, and the log is a dictionary. Barriers cannot show the loss of a topic's last event, so its heads
are told to new neighbours, and after silence to one after the other until all know or were told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import AuthorId, Count, DeviceId, EventId, PeerId, TopicId, WireEventId, WireTopicId
from linnet.core.limits import DEPENDENCIES
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.barriers import Barriers, Offered
from linnet.delivery.causal_messages import Beyond, Further, Given, Reconcile, Want
from linnet.delivery.config import BarrierConfig
from linnet.delivery.dag import Dag
from linnet.delivery.flood import Flood, Routing
from linnet.delivery.messages import Data
from linnet.delivery.sorted_ids import SortedIds
from linnet.delivery.walk import Walks
from linnet.event.event import MESSAGE, Event, Tail, Unverified, Verified
from linnet.event.signing import Verifier, sign_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.peer.config import Identity
from linnet.sim.gossip_sync import GossipSync, Told
from linnet.trace.records import Kind, Record

OWNER = "gossip topic"
_PAGE = 256
"""Events in one answer."""
_BARRIERS = BarrierConfig()
_NEWS = 1.0
"""Seconds after which the neighbours are told of what synchronisation brought."""
_LONGEST = 16
"""Times the pause after which heads are told again, at most, while nothing happens."""

Cards: TypeAlias = Mapping[tuple[AuthorId, DeviceId], Card]
Handed: TypeAlias = Callable[[PeerId, Event, int, float], None]
"""An application is handed an event: node, what, links that it crossed (0: fetched or its own), when."""


class TellHeads(Struct, frozen=True, array_like=True, gc=False):
    """How far I know a topic."""

    topic: WireTopicId
    heads: Annotated[tuple[WireEventId, ...], Meta(max_length=256)]
    events: Count


TopicMessage: TypeAlias = Data | Want | Given | Beyond | Further | Reconcile | TellHeads


class _Arrival(Struct, frozen=True, gc=False):
    verified: Verified
    hops: int


class GossipTopic:
    """The events of a topic that a node has, and how it gets the others."""

    def __init__(
        self,
        topic: TopicId,
        identity: Identity,
        cards: Cards,
        verify: Verifier,
        route: Routing | None,
        rng: Random,
        handed: Handed,
        barriers: BarrierConfig = _BARRIERS,
        pause: float = 30.0,
    ) -> None:
        self.topic = topic
        self._identity = identity
        self._ours = identity.peer
        self._cards = cards
        self._verify = verify
        self._route = route
        self._rng = rng
        self._handed = handed
        self._config = barriers
        self._pause = pause
        self._dag = Dag()
        self._ids = SortedIds()
        self._log: dict[EventId, Verified] = {}
        self._seq = 0
        self._prev: EventId | None = None
        self.copies = 0
        """Copies that came by being passed on, first ones included."""
        self.fetched = 0
        """Events that came because they were asked for."""
        self._begin()

    def _begin(self) -> None:
        self.flood = Flood(self.topic)
        self.flood.route(self._route)
        self._out = Outbox()
        self._barriers: Barriers[_Arrival] = Barriers(self.topic, self._dag, self._config, self._out)
        self._walks = Walks(self._dag)
        self._sync = GossipSync(self.topic, self._ours, self._dag, self._ids)
        self._quiet = 1
        self._even: dict[PeerId, tuple[EventId, ...]] = {}
        """The heads that a neighbour was told, or told us."""

    def revive(self, route: Routing | None) -> None:
        """The node was down: what it had is there, what was under way is not."""
        self._route = route
        self._begin()

    def __len__(self) -> int:
        return len(self._log)

    def __contains__(self, event: EventId) -> bool:
        return event in self._log

    @property
    def waiting(self) -> int:
        """Events that wait for others."""
        return len(self._barriers)

    # What the application and the overlay do.

    def publish(self, body: bytes, now: float) -> tuple[Event, list[Any]]:
        """An event after all that is known here."""
        heads = self._dag.heads
        deps, concurrent = heads[:DEPENDENCIES], heads[DEPENDENCIES : 2 * DEPENDENCIES]
        height = 1 + max((self._dag.height(head) for head in (*deps, *concurrent)), default=-1)
        tail = Tail(
            deps or None, concurrent or None, height, None, MESSAGE, None, int(now * 1000), None, body
        )
        card = self._identity.card
        key = self._identity.device
        verified = sign_unit(key, self.topic, card.person, card.device, self._seq, self._prev, [tail])
        self._seq, self._prev = self._seq + 1, verified.head
        self._place(_Arrival(verified, 0), now)
        return verified.events[0], [*self._pass_on(verified, (), 0, 0, now), self._silence()]

    def up(self, peer: PeerId) -> list[Any]:
        """A neighbour in this topic is there: it is told how far we are."""
        self.flood.up(peer)
        return [self._tell(peer)] if self._log else []

    def down(self, peer: PeerId, now: float) -> list[Any]:
        """A neighbour is there no more."""
        self.flood.down(peer)
        self._walks.forget(peer)
        self._even.pop(peer, None)
        self._barriers.remove_source(peer, now)
        return [*self._sync.down(peer), *self._out.take()]

    def fired(self, tick: Tick) -> list[Any]:
        """A timer of this topic has run out."""
        if tick.owner == OWNER:
            return self._tell_one() if tick.what == "heads" else self._tell_all()
        return [*self._sync.fired(tick)]

    def recover(self, now: float) -> list[Any]:
        """Ask for events that are missing."""
        self._barriers.handle_timer(now, tuple(self.flood.neighbors))
        return self._out.take()

    # What comes.

    def handle(self, peer: PeerId, message: TopicMessage, now: float) -> list[Any]:
        """A message of this topic."""
        if isinstance(message, Data):
            self.copies += 1
            return self._on_data(peer, message, now)
        if isinstance(message, TellHeads):
            return self._on_heads(peer, message)
        if isinstance(message, Want):
            return [Send(peer, self._give(message))]
        if isinstance(message, Given):
            effects = self._take_all(peer, message.units, now)
            sources = tuple(self.flood.neighbors)
            self._barriers.handle_answer(peer, message, now, sources)
            return [*effects, *self._out.take()]
        if isinstance(message, Beyond):
            page = self._walks.page(peer, message.heads, _PAGE)
            units = tuple(self._log[one].unit for one in page.ids)
            return [Send(peer, Further(self.topic, message.request, units, (), page.more, page.unknown))]
        if isinstance(message, Further):
            if not self._sync.awaits(peer, message.request):
                return [Record(Kind.REJECTED, self.topic, peer=peer, reason=Reason.STALE, note="further")]
            before = self.fetched
            effects = self._take_all(peer, message.units, now)
            effects += self._sync.on_further(peer, message)
            return effects if self.fetched == before else [*effects, self._news()]
        more, need = self._sync.on_reconcile(peer, message)
        if not need:
            return [*more]
        self._barriers.fetch(need, peer, now)
        return [*more, *self._out.take(), self._news()]

    def _on_data(self, peer: PeerId, data: Data, now: float) -> list[Any]:
        verified = self._checked(data.unit)
        if self._knows(verified.head):
            return []
        age = data.age_us + max(0, int(now * 1_000_000) - data.sent_us)
        # Passed on before anything else: that never waits for what it refers to.
        effects = self._pass_on(verified, (peer,), data.hops, age, now)
        effects += self._take(verified, peer, data.hops, now)
        effects.append(self._silence())
        return effects

    def _on_heads(self, peer: PeerId, told: TellHeads) -> list[Any]:
        effects: list[Any] = [*self._sync.compare(peer, Told(told.heads, told.events))]
        ours = self._sync.heads
        if not effects and ours != told.heads and any(head not in told.heads for head in ours):
            effects.append(self._tell(peer))
        elif peer in self.flood.neighbors:
            self._even[peer] = told.heads
        return effects

    def _give(self, want: Want) -> Given:
        held = [self._log[one] for one in want.ids if one in self._log]
        held.sort(key=lambda each: (each.events[0].tail.height or 0, each.head))
        unknown = tuple(one for one in want.ids if one not in self._log)
        units = tuple(each.unit for each in held)
        return Given(self.topic, want.request, units, (), unknown, Reason.NOT_HELD if unknown else None)

    def _take_all(self, peer: PeerId, units: Iterable[Unverified], now: float) -> list[Any]:
        """What was asked for."""
        effects: list[Any] = []
        for unit in units:
            verified = self._checked(unit)
            if not self._knows(verified.head):
                self.fetched += 1
                effects += self._take(verified, peer, 0, now)
        return effects

    def _take(self, verified: Verified, peer: PeerId, hops: int, now: float) -> list[Any]:
        arrival = _Arrival(verified, hops)
        refs = references(verified.events[0])
        size = len(verified.unit.tails[0]) + 180
        offered, _ = self._barriers.offer(verified.head, refs, size, arrival, peer, now)
        if offered is Offered.READY:
            line = deque([arrival])
            while line:
                one = line.popleft()
                self._place(one, now)
                line += self._barriers.settle(one.verified.head)
        return self._out.take()

    def _place(self, arrival: _Arrival, now: float) -> None:
        event = arrival.verified.events[0]
        height = event.tail.height or 0
        self._dag.add(event.id, height, references(event), shown=True)
        self._ids.add(height, event.id)
        self._log[event.id] = arrival.verified
        self._handed(self._ours, event, arrival.hops, now)

    def _pass_on(
        self, verified: Verified, sources: tuple[PeerId, ...], hops: int, age_us: int, now: float
    ) -> list[Any]:
        card = self._cards[verified.unit.author, verified.unit.device]
        return [*self.flood.spread(verified, card, sources, hops + 1, age_us, now)]

    def _checked(self, unit: Unverified) -> Verified:
        return self._verify(unit, self._cards[unit.author, unit.device])

    def _knows(self, event: EventId) -> bool:
        return event in self._log or self._barriers.waits(event)

    # Heads.

    def _heads(self) -> TellHeads:
        return TellHeads(self.topic, self._sync.heads, len(self._log))

    def _silence(self) -> SetTimer[Tick]:
        """Something happened: heads are told when nothing does for a while."""
        self._quiet = 1
        return SetTimer(self._pause * self._rng.uniform(1.0, 1.5), Tick(OWNER, "heads", self.topic))

    def _tell_one(self) -> list[Any]:
        """Nothing happened for a while: tell a neighbour how far we are; once all know, ever more rarely."""
        up, heads = tuple(self.flood.neighbors), self._sync.heads
        behind = [peer for peer in up if self._even.get(peer) != heads]
        again = self._pause * self._quiet * self._rng.uniform(1.0, 1.5)
        if not behind:
            self._quiet = min(2 * self._quiet, _LONGEST)
        effects: list[Any] = [SetTimer(again, Tick(OWNER, "heads", self.topic))]
        if up:
            effects.append(self._tell(self._rng.choice(behind or up)))
        return effects

    def _tell(self, peer: PeerId) -> Send[TellHeads]:
        heads = self._heads()
        if peer in self.flood.neighbors:
            self._even[peer] = heads.heads
        return Send(peer, heads)

    def _news(self) -> SetTimer[Tick]:
        """What was missed here the neighbours may lack as well: they are told in a moment how far we are."""
        return SetTimer(_NEWS, Tick(OWNER, "news", self.topic))

    def _tell_all(self) -> list[Any]:
        return [self._tell(peer) for peer in self.flood.neighbors]


def references(event: Event) -> tuple[EventId, ...]:
    """All that an event names, each once."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return tuple(dict.fromkeys((*(tail.deps or ()), *(tail.concurrent or ()), *prev)))
