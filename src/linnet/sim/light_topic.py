"""Nodes of a light network with topics: signed events, passed on along an overlay, delivered causally.

The parts are the shipped ones: `Flood` for passing on, `Barriers` for order and recovery, the heads walk and
set reconciliation for missed events. The simulation differs in this: anybody may publish, all know all cards,
and the log is a dictionary. Barriers cannot show the loss of a topic's last event, so a node tells its heads
to new neighbours, and after silence to one after the other until all know them or were told.

Missed events are fetched as in a room (`TopicSync`), without a room's rules about permissions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, assert_never

from msgspec import Meta, Struct

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import AuthorId, Count, DeviceId, EventId, PeerId, TopicId, WireEventId, WireTopicId
from linnet.core.inputs import Received, TimerFired
from linnet.core.limits import DEPENDENCIES
from linnet.core.reasons import Reason
from linnet.core.timers import Timer, TopicTimer
from linnet.delivery.causal_barriers import Barriers, Offered, RecoveryDue
from linnet.delivery.causal_graph import Dag
from linnet.delivery.config import BarrierConfig
from linnet.delivery.flood import Flood, Routing
from linnet.delivery.heads_walk import TopicSync, Walks
from linnet.delivery.messages import Beyond, Data, Further, Given, Reconcile, Want
from linnet.delivery.set_reconciliation import SortedIds
from linnet.event.event import MESSAGE, Event, Spot, Tail, Unverified, Verified
from linnet.event.signing import Verifier, sign_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.peer.config import Identity
from linnet.trace.records import Kind, Record

_PAGE = 256
"""Events in one answer."""
_NEWS = 1.0
"""Seconds after which the neighbours are told of events that synchronisation brought."""
_LONGEST = 16
"""The longest interval between telling heads while nothing happens, in pauses."""

Cards: TypeAlias = Mapping[tuple[AuthorId, DeviceId], Card]
Handed: TypeAlias = Callable[[PeerId, Event, int, float], None]
"""Called when an application is handed an event: node, event, links that it crossed (0: fetched or its own),
time."""


class HeadsDue(TopicTimer, frozen=True, gc=False):
    """Fires when a topic was quiet for a while, and its heads are to be told."""


class NewsDue(TopicTimer, frozen=True, gc=False):
    """Fires when the neighbours of a topic are to be told of events that synchronisation brought."""


class TellHeads(Struct, frozen=True, array_like=True, gc=False):
    """Tells a neighbour the heads of a topic, and how many events the sender has."""

    topic: WireTopicId
    heads: Annotated[tuple[WireEventId, ...], Meta(max_length=256)]
    events: Count


TopicMessage: TypeAlias = Data | Want | Given | Beyond | Further | Reconcile | TellHeads


class TopicSetting(NamedTuple):
    """The settings that all nodes of a simulation share."""

    cards: Cards
    verify: Verifier
    handed: Handed
    pause: float = 30.0
    """Seconds of silence after which heads are told."""


class _Arrival(Struct, frozen=True, gc=False):
    verified: Verified
    hops: int


class LightTopic:
    """The events of a topic that a node has, and the recovery of missing ones."""

    def __init__(
        self,
        topic: TopicId,
        identity: Identity,
        route: Routing | None,
        rng: Random,
        setting: TopicSetting,
    ) -> None:
        self.topic = topic
        self._identity = identity
        self._ours = identity.peer
        self._setting = setting
        self._route = route
        self._rng = rng
        self._dag = Dag()
        self._ids = SortedIds()
        self._log: dict[EventId, Verified] = {}
        self._seq = 0
        self._prev: EventId | None = None
        self.copies = 0
        """Copies that arrived by flooding, first ones included."""
        self.fetched = 0
        """Events that arrived because they were requested."""
        self._begin()

    def _begin(self) -> None:
        self.flood = Flood(self.topic)
        self.flood.route(self._route)
        self._out = Outbox()
        self._barriers: Barriers[_Arrival] = Barriers(self.topic, self._dag, BarrierConfig(), self._out)
        self._walks = Walks(self._dag)
        self._sync = LightSync(self.topic, self._ours, self._dag, self._ids, self._out)
        self._told: dict[PeerId, TellHeads] = {}
        self._quiet = 1
        self._even: dict[PeerId, tuple[EventId, ...]] = {}
        """The heads that a neighbour was told, or told us."""

    def revive(self, route: Routing | None) -> None:
        """Begin again after a crash: the events are kept, requests and sessions are not."""
        self._route = route
        self._begin()

    def __len__(self) -> int:
        return len(self._log)

    def __contains__(self, event: EventId) -> bool:
        return event in self._log

    @property
    def waiting(self) -> int:
        """The number of events that wait for others."""
        return len(self._barriers)

    # Application and overlay.

    def publish(self, body: bytes, now: float) -> tuple[Event, list[Any]]:
        """Sign an event that comes after all events known here, and pass it on."""
        heads = self._dag.heads
        deps, concurrent = heads[:DEPENDENCIES], heads[DEPENDENCIES : 2 * DEPENDENCIES]
        height = 1 + max((self._dag.height(head) for head in (*deps, *concurrent)), default=-1)
        tail = Tail(
            deps or None, concurrent or None, height, None, MESSAGE, None, int(now * 1000), None, body
        )
        card = self._identity.card
        key = self._identity.device
        verified = sign_unit(key, Spot(self.topic, card.person, card.device, self._seq, self._prev), [tail])
        self._seq, self._prev = self._seq + 1, verified.head
        self._place(_Arrival(verified, 0), now)
        return verified.events[0], [*self._pass_on(verified, (), 0, 0, now), self._silence()]

    def add_neighbor(self, peer: PeerId) -> list[Any]:
        """Add a neighbour, and tell it our heads."""
        self.flood.up(peer)
        return [self._tell(peer)] if self._log else []

    def remove_neighbor(self, peer: PeerId, now: float) -> list[Any]:
        """Drop a neighbour, with all exchanges with it."""
        self.flood.down(peer)
        self._walks.forget(peer)
        self._even.pop(peer, None)
        self._told.pop(peer, None)
        self._sync.handle_link_down(peer)
        self._barriers.remove_source(peer, now)
        return self._out.take()

    def handle_timer(self, timer: HeadsDue | NewsDue | SyncDue) -> list[Any]:
        """Handle a timer."""
        match timer:
            case HeadsDue():
                return self._tell_one()
            case NewsDue():
                return self._tell_all()
            case SyncDue(_, peer):
                self._sync.handle_timeout(peer)
                return self._out.take()
            case _:
                assert_never(timer)

    def recover(self, now: float) -> list[Any]:
        """Ask for missing events."""
        self._barriers.handle_timer(now, tuple(self.flood.neighbors))
        return self._out.take()

    # Messages.

    def handle(self, peer: PeerId, message: TopicMessage, now: float) -> list[Any]:
        """Handle a message of this topic."""
        if isinstance(message, Data):
            self.copies += 1
            return self._handle_data(peer, message, now)
        if isinstance(message, TellHeads):
            return self._handle_heads(peer, message)
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
            self._sync.handle_further(peer, message, self._told.get(peer))
            effects += self._out.take()
            return effects if self.fetched == before else [*effects, self._news()]
        need = self._sync.handle_reconcile(peer, message, self._told.get(peer))
        if not need:
            return self._out.take()
        self._barriers.fetch(need, peer, now)
        return [*self._out.take(), self._news()]

    def _handle_data(self, peer: PeerId, data: Data, now: float) -> list[Any]:
        verified = self._checked(data.unit)
        if self._knows(verified.head):
            return []
        age = data.age_us + max(0, int(now * 1_000_000) - data.sent_us)
        # Passed on before anything else: passing on never waits for the events that it refers to.
        effects = self._pass_on(verified, (peer,), data.hops, age, now)
        effects += self._take(verified, peer, data.hops, now)
        effects.append(self._silence())
        return effects

    def _handle_heads(self, peer: PeerId, told: TellHeads) -> list[Any]:
        self._told[peer] = told
        self._sync.compare(peer, told)
        effects: list[Any] = self._out.take()
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
        """Take in the units that a peer gave on request."""
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
        self._setting.handed(self._ours, event, arrival.hops, now)

    def _pass_on(
        self, verified: Verified, sources: tuple[PeerId, ...], hops: int, age_us: int, now: float
    ) -> list[Any]:
        card = self._setting.cards[verified.unit.author, verified.unit.device]
        out = Outbox()
        self.flood.spread(verified, card, sources, hops + 1, age_us, now, out)
        return [*out.take()]

    def _checked(self, unit: Unverified) -> Verified:
        return self._setting.verify(unit, self._setting.cards[unit.author, unit.device])

    def _knows(self, event: EventId) -> bool:
        return event in self._log or self._barriers.waits(event)

    # Heads.

    def _heads(self) -> TellHeads:
        return TellHeads(self.topic, self._sync.heads, len(self._log))

    def _silence(self) -> SetTimer[HeadsDue]:
        """Set the timer after which the heads of a quiet topic are told."""
        self._quiet = 1
        return SetTimer(self._setting.pause * self._rng.uniform(1.0, 1.5), HeadsDue(self.topic))

    def _tell_one(self) -> list[Any]:
        """Tell one neighbour the heads of a quiet topic; once all neighbours know them, ever more rarely."""
        up, heads = tuple(self.flood.neighbors), self._sync.heads
        behind = [peer for peer in up if self._even.get(peer) != heads]
        again = self._setting.pause * self._quiet * self._rng.uniform(1.0, 1.5)
        if not behind:
            self._quiet = min(2 * self._quiet, _LONGEST)
        effects: list[Any] = [SetTimer(again, HeadsDue(self.topic))]
        if up:
            effects.append(self._tell(self._rng.choice(behind or up)))
        return effects

    def _tell(self, peer: PeerId) -> Send[TellHeads]:
        heads = self._heads()
        if peer in self.flood.neighbors:
            self._even[peer] = heads.heads
        return Send(peer, heads)

    def _news(self) -> SetTimer[NewsDue]:
        """Set the timer after which the neighbours are told new heads: they may lack the events missed
        here."""
        return SetTimer(_NEWS, NewsDue(self.topic))

    def _tell_all(self) -> list[Any]:
        return [self._tell(peer) for peer in self.flood.neighbors]


def references(event: Event) -> tuple[EventId, ...]:
    """Return the events that an event names, each once."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return tuple(dict.fromkeys((*(tail.deps or ()), *(tail.concurrent or ()), *prev)))


TIMEOUT = 10.0
"""Seconds without progress after which a session is over."""


class SyncDue(Timer, frozen=True, gc=False):
    """Fires when a session with a peer has made no progress for `TIMEOUT` seconds."""

    topic: TopicId
    peer: PeerId


class LightSync(TopicSync[TellHeads]):
    """Synchronises one topic of a node with other members."""

    def make_timer(self, peer: PeerId) -> SetTimer[Timer]:
        """See `TopicSync.make_timer`."""
        return SetTimer(TIMEOUT, SyncDue(self._topic, peer))


_MESSAGES = (TellHeads, Want, Given, Beyond, Further, Reconcile)


class OverlayMachine(Protocol):
    """An overlay: notices of neighbours are among its effects."""

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - of whatever messages it has
        """Take an input, and return its effects, in order."""

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return the neighbours of a topic."""


class LightPeer:
    """One light node: an overlay, and the topics whose events it carries."""

    __slots__ = ("_make", "_overlay_handle", "noise", "overlay", "peer", "silent", "subscribed", "topics")

    def __init__(
        self,
        peer: PeerId,
        overlay: OverlayMachine,
        subscribed: Iterable[TopicId],
        make: Callable[[TopicId], LightTopic],
        silent: bool = False,
    ) -> None:
        self.peer = peer
        self.overlay = overlay
        self._overlay_handle = overlay.handle
        self.subscribed = dict.fromkeys(subscribed)
        self._make = make
        self.topics: dict[TopicId, LightTopic] = {}
        """Topics with events: others take no memory."""
        self.silent = silent
        """Whether the node takes events and never passes any on, as liars do."""
        self.noise = 0
        """Events that arrived for topics that the node is not in."""

    def topic(self, topic_id: TopicId) -> LightTopic | None:
        """Return the topic of this id, with its neighbours; None if the node is not in it."""
        topic = self.topics.get(topic_id)
        if topic is None and topic_id in self.subscribed:
            topic = self.topics[topic_id] = self._make(topic_id)
            for peer in self.overlay.neighbors(topic_id):
                topic.add_neighbor(peer)
        return topic

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - see OverlayMachine
        """Take an input, and return its effects, in order."""
        if isinstance(event, Received):
            message = event.message
            if isinstance(message, Data):
                return self._handle_message(event.peer, message.unit.topic, message, now)
            if isinstance(message, _MESSAGES):
                return self._handle_message(event.peer, message.topic, message, now)
        elif isinstance(event, TimerFired):
            timer = event.timer
            if isinstance(timer, HeadsDue | NewsDue | SyncDue):
                topic = self.topics.get(timer.topic)
                return () if topic is None else topic.handle_timer(timer)
            if isinstance(timer, RecoveryDue):
                topic = self.topics.get(timer.topic)
                return () if topic is None else topic.recover(now)
        return self.spread(self._overlay_handle(event, now), now)

    def spread(self, effects: Sequence[Any], now: float) -> Sequence[Any]:
        """Return the overlay's effects, with those that its notices cause in topics."""
        more: list[Any] = []
        for effect in effects:
            kind = type(effect)
            if kind is NeighborUp:
                topic = self.topics.get(effect.topic)
                if topic is not None:
                    more += topic.add_neighbor(effect.peer)
            elif kind is NeighborDown:
                topic = self.topics.get(effect.topic)
                if topic is not None:
                    more += topic.remove_neighbor(effect.peer, now)
        return [*effects, *more] if more else effects

    def _handle_message(
        self, peer: PeerId, topic_id: TopicId, message: TopicMessage, now: float
    ) -> Sequence[Any]:
        topic = self.topic(topic_id)
        if topic is None:
            self.noise += isinstance(message, Data)
            return ()
        effects = topic.handle(peer, message, now)
        if self.silent:
            return [effect for effect in effects if not isinstance(effect, Send)]
        return effects
