"""ScoutSubs: subscriptions walk to a rendezvous and leave filters; events walk there, and follow them back.

A subscription goes to the rendezvous of one of its attributes, the nearest to the subscriber; an event
goes to those of all its attributes. An event that a predicate accepts has all of the predicate's attributes,
so the two meet. After Agostinho 2021; what is different, and why, is in docs/adr/0021-content.md.
"""

from __future__ import annotations

from hashlib import sha256
from typing import assert_never

from linnet.content.claims import Claims
from linnet.content.commands import (
    ContentCommand,
    Ended,
    Fate,
    Match,
    Outcome,
    PublishContent,
    Standing,
    SubscribeContent,
    UnsubscribeContent,
)
from linnet.content.config import ContentConfig
from linnet.content.directory import Directory, Located
from linnet.content.effects import OWNER, ContentEffect
from linnet.content.elections import Elections
from linnet.content.index import Index
from linnet.content.keys import nearest_name
from linnet.content.messages import (
    Claim,
    Closer,
    ContentMessage,
    Notice,
    Publish,
    Reached,
    Replace,
    Settled,
    Subscribe,
    Subscribed,
    Taken,
)
from linnet.content.notices import NOTICE, Notices
from linnet.content.passing import KIND, MOST_HOPS, Passing, check
from linnet.content.predicates import Predicate, foreign_predicate, read_attributes, read_predicate
from linnet.content.reach import Reach
from linnet.content.table import FilterTable
from linnet.content.upstream import ASK, Upstream
from linnet.content.walks import WALK, Walks
from linnet.core.effects import Deliver, Reply, SetTimer
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.limits import BODY_BYTES, CLEAR_BYTES
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.event.event import Tail
from linnet.event.signing import sign_unit
from linnet.trace.records import Kind, Record

TOPIC = TopicId(sha256(b"linnet/content/1").digest())
"""The namespace of content."""
TURN = "turn"
_UNNEEDED = (Reason.NOT_NEEDED, Reason.DUPLICATE_LINK)
"""Why links close without anything being wrong: if we need one after all, it is dialled again."""


class _Publication:
    """An event of ours, and what is known of it so far."""

    __slots__ = ("fates", "request", "waits")

    def __init__(self, request: int, waits: int) -> None:
        self.request = request
        self.waits = waits
        self.fates: list[Fate] = []


class Scout:
    """Everything about content at one node."""

    def __init__(self, context: Context, config: ContentConfig, directory: Directory) -> None:
        self._context = context
        self._config = config
        self._ours = context.peer
        self.table = FilterTable()
        self.elections = Elections(self._ours, config, directory)
        reach = self._reach = Reach(config)
        self._upstream = Upstream(self._ours, config, self.elections, reach, self.table)
        self._claims = Claims(config, directory, reach)
        self._notices = Notices(self._ours, config, reach, self.table)
        self._walks = Walks(config, self.elections, reach, self._notices)
        self._own: dict[int, tuple[str, Predicate]] = {}
        """Subscriptions of the application, with the attribute whose rendezvous they go to."""
        self._index: Index[int] = Index()
        self._handed: dict[EventId, None] = {}
        self._publications: dict[EventId, _Publication] = {}
        self._last_time = 0

    @property
    def is_settled(self) -> bool:
        """Whether all subscriptions stand and all events have arrived, as far as this node knows."""
        return self._upstream.is_settled and self._walks.is_settled and self._notices.is_settled

    def start(self, now: float) -> list[ContentEffect]:
        """Begin to tell subscriptions again, from a moment of this node's own."""
        return [SetTimer(self._config.refresh * self._context.rng.uniform(0.5, 1.0), Tick(OWNER, TURN))]

    # The application.

    def ask(self, request: int, command: ContentCommand, now: float) -> list[ContentEffect]:
        """A command of the application."""
        try:
            match command:
                case SubscribeContent():
                    return self._drained(self._subscribe(request, command, now))
                case UnsubscribeContent(subscription):
                    return self._unsubscribe(request, subscription)
                case PublishContent():
                    return self._drained(self._publish(request, command, now))
                case _:
                    assert_never(command)
        except BadText as error:
            return [Reply(request, Declined(Reason.MALFORMED, str(error)))]
        except Refused as error:
            return [Reply(request, Declined(error.reason, error.detail))]

    def reads(self, subscription: int) -> bool:
        """Whether a subscription of the application is one of these."""
        return subscription in self._own

    def _subscribe(self, request: int, command: SubscribeContent, now: float) -> list[ContentEffect]:
        if command.subscription in self._own:
            raise Refused(Reason.IN_USE, f"there is a subscription {command.subscription} already")
        if len(self._own) >= self._config.subscriptions:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.subscriptions} subscriptions")
        predicate = read_predicate(command.predicate, self._config.attributes)
        attribute = nearest_name(self._ours, predicate.names)
        self._own[command.subscription] = (attribute, predicate)
        self._index.add(command.subscription, predicate)
        return [
            Reply(request, Standing(predicate.text, attribute)),
            *self._tell_own(attribute, predicate, now),
        ]

    def _tell_own(self, attribute: str, predicate: Predicate, now: float) -> list[ContentEffect]:
        stands = self.table.add(self._ours, attribute, predicate).stands
        return self._upstream.tell(attribute, stands, 0, [], now)

    def _unsubscribe(self, request: int, subscription: int) -> list[ContentEffect]:
        if subscription not in self._own:
            raise Refused(Reason.UNKNOWN, f"there is no subscription {subscription}")
        attribute, _ = self._own.pop(subscription)
        self._index.remove(subscription)
        left = tuple(predicate for name, predicate in self._own.values() if name == attribute)
        self.table.replace(self._ours, attribute, left)
        return [Reply(request, Ended()), *self._upstream.withdraw(attribute)]

    def _publish(self, request: int, command: PublishContent, now: float) -> list[ContentEffect]:
        attributes = read_attributes(command.attributes, self._config.attributes)
        clear = attributes.text.encode()
        if len(command.body) > BODY_BYTES or len(clear) > CLEAR_BYTES:
            raise Refused(
                Reason.TOO_LARGE, f"a body has at most {BODY_BYTES} bytes, attributes {CLEAR_BYTES}"
            )
        # Pushed on where the clock stood still: no two events of a device are the same.
        self._last_time = max(int(now * 1000), self._last_time + 1)
        tail = Tail(None, None, None, None, KIND, None, self._last_time, clear, command.body)
        context = self._context
        signed = sign_unit(context.key, TOPIC, context.author, context.device, None, None, (tail,))
        passing = Passing(signed.events[-1], attributes, signed.unit, context.card)
        effects: list[ContentEffect] = [
            Record(Kind.PUBLISHED, topic=TOPIC, event=passing.id, bytes=len(command.body))
        ]
        if self._config.reliable:
            self._publications[passing.id] = _Publication(request, attributes.size)
        else:
            effects.append(Reply(request, Outcome(passing.id, ())))
        for attribute in attributes.names:
            effects += self._walks.begin(attribute, passing, None, 0, now)
        return effects

    # The network.

    def on_message(self, peer: PeerId, message: ContentMessage, now: float) -> list[ContentEffect]:
        """A message of a peer; what is wrong with it is said in a record."""
        try:
            return self._drained(self._on_message(peer, message, now))
        except RemoteError as error:
            note = f"{type(message).__name__}: {error.detail}"
            refused: list[ContentEffect] = [
                Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note[:200])
            ]
            if isinstance(message, Subscribe):
                refused += self._reach.answer(peer, Subscribed(message.number, error.reason))
            return refused

    def _on_message(self, peer: PeerId, message: ContentMessage, now: float) -> list[ContentEffect]:
        match message:
            case Subscribe():
                return self._on_subscribe(peer, message, now)
            case Subscribed():
                return self._upstream.answered(peer, message, now)
            case Replace():
                return self._on_replace(peer, message)
            case Publish():
                return self._on_publish(peer, message, now)
            case Notice():
                return self._on_notice(peer, message, now)
            case Taken():
                return self._walks.taken(peer, message, now)
            case Reached():
                effects, count = self._notices.reached(peer, message)
                way = (message.event, message.attribute)
                return effects if count is None else [*effects, *self._walks.settle(way, count)]
            case Settled():
                return self._walks.settled(peer, message)
            case Claim(attribute):
                return self._claims.heard(peer, attribute)
            case Closer(attribute, contact):
                if self.elections.heed(attribute, contact, now):
                    retold = self._upstream.retell(attribute, now)
                    return [*retold, *self._walks.moved(attribute, now)]
                return [Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Closer")]
            case _:
                assert_never(message)

    def _on_subscribe(self, peer: PeerId, message: Subscribe, now: float) -> list[ContentEffect]:
        predicate = foreign_predicate(message.predicate, self._config.attributes)
        self._check_way(peer, message.attribute, predicate, message.hops, upwards=True)
        if self.table.count(peer, message.attribute) >= self._config.filters:
            raise RemoteError(Reason.TOO_MANY, f"more than {self._config.filters} filters")
        if self.table.pairs() >= self._config.routes and peer not in self.table.routes(message.attribute):
            raise RemoteError(Reason.TOO_MANY, f"more than {self._config.routes} routes")
        stands = self.table.add(peer, message.attribute, predicate).stands
        waiters = [(peer, message.number)] if self._config.reliable else []
        hops, moved = message.hops + 1, message.moved
        effects = self._upstream.tell(message.attribute, stands, hops, waiters, now, moved)
        return (
            [*effects, *self._notices.replay(peer, message.attribute, predicate, now)] if moved else effects
        )

    def _on_replace(self, peer: PeerId, message: Replace) -> list[ContentEffect]:
        left = tuple(foreign_predicate(text, self._config.attributes) for text in message.predicates)
        if any(message.attribute not in predicate.names for predicate in left):
            raise RemoteError(Reason.MALFORMED, "a predicate without the attribute that it goes by")
        if not self.table.replace(peer, message.attribute, left) and left:
            self.table.replace(peer, message.attribute, ())
            raise RemoteError(Reason.STALE, "it had asked for nothing")
        return self._upstream.withdraw(message.attribute)

    def _on_publish(self, peer: PeerId, message: Publish, now: float) -> list[ContentEffect]:
        passing = check(message.unit, message.card, self._context, self._config, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=True)
        way = (passing.id, message.attribute)
        if self._walks.known(way):
            return self._walks.again(peer, way)
        return self._walks.begin(message.attribute, passing, peer, message.hops, now)

    def _on_notice(self, peer: PeerId, message: Notice, now: float) -> list[ContentEffect]:
        passing = check(message.unit, message.card, self._context, self._config, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=False)
        way = (passing.id, message.attribute)
        if self._notices.known(way):
            return self._notices.again(peer, way)
        received = Record(Kind.RECEIVED, event=passing.id, peer=peer, hops=message.hops, note=NOTICE)
        patience = message.patience / 1000
        effects, count = self._notices.down(
            message.attribute, passing, message.hops, peer, None, now, patience
        )
        if count is not None and self._config.reliable:
            effects += self._reach.answer(peer, Reached(*way, *count))
        return [received, *effects]

    def _check_way(self, peer: PeerId, attribute: str, asked: Predicate, hops: int, upwards: bool) -> None:
        """Walks go to nodes closer to the rendezvous, and notices come from them: none goes in circles."""
        if attribute not in asked.names:
            raise RemoteError(Reason.MALFORMED, "without the attribute that it goes by")
        if hops > MOST_HOPS:
            raise RemoteError(Reason.TOO_MANY, f"over more than {MOST_HOPS} links")
        if self.elections.is_closer(peer, attribute) is upwards:
            raise RemoteError(Reason.NOT_RESPONSIBLE, "not on the way to this rendezvous")

    # Links and time.

    def link_up(self, event: LinkUp, now: float) -> list[ContentEffect]:
        """A link is up."""
        self.elections.forgive(event.peer)
        return self._reach.link_up(event.peer, event.hello.listens[:8])

    def link_gone(self, event: LinkDown | DialFailed, now: float) -> list[ContentEffect]:
        """A link is down, or none came up: what went that way goes another."""
        effects = self._reach.gone(event.peer, event.reason)
        if event.reason not in _UNNEEDED:
            self.elections.avoid(event.peer, now)
        effects += self._upstream.gone(event.peer, now)
        return self._drained([*effects, *self._walks.gone(event.peer, now)])

    def located(self, found: Located, now: float) -> list[ContentEffect]:
        """A lookup has ended."""
        attribute = self.elections.located(found, now)
        if attribute is None:
            return []
        effects = self._upstream.decided(attribute, now)
        if attribute in self.elections.held:
            effects += self._claims.claim(attribute, found.contacts)
        return self._drained([*effects, *self._walks.decided(attribute, now)])

    def fired(self, tick: Tick, now: float) -> list[ContentEffect]:
        """A timer has run out."""
        if tick.what == ASK:
            return self._upstream.fired(tick, now)
        if tick.what == WALK:
            return self._drained(self._walks.fired(tick, now))
        if tick.what == NOTICE:
            way, effects, count = self._notices.fired(tick, now)
            more = [] if count is None else self._walks.settle(way, count)
            return self._drained([*effects, *more])
        return self._turn(now)

    def _turn(self, now: float) -> list[ContentEffect]:
        """A period is over: tell our own subscriptions again, and forget what others did not."""
        self.table.turn()
        self.elections.tidy(now)
        self._claims.turn()
        effects = self._upstream.turn(now)
        for attribute, predicate in self._own.values():
            effects += self._tell_own(attribute, predicate, now)
        effects += self._reach.keep({**self._upstream.next_hops, **self._walks.next_hops})
        return [*effects, SetTimer(self._config.refresh, Tick(OWNER, TURN))]

    def _drained(self, effects: list[ContentEffect]) -> list[ContentEffect]:
        """With what came of it for the application: events for it, and ends of its own."""
        for passing, hops in self._notices.local:
            effects += self._hand(passing, hops)
        self._notices.local.clear()
        for (event, attribute), count, reason in self._walks.ended:
            publication = self._publications.get(event)
            if publication is not None:
                publication.fates.append(Fate(attribute, *count, reason))
                if len(publication.fates) == publication.waits:
                    del self._publications[event]
                    effects.append(Reply(publication.request, Outcome(event, tuple(publication.fates))))
        self._walks.ended.clear()
        return effects

    def _hand(self, passing: Passing, hops: int) -> list[ContentEffect]:
        event = passing.event
        numbers = [] if event.id in self._handed else self._index.matching(passing.attributes)
        if not numbers:
            return []
        self._handed[event.id] = None
        if len(self._handed) > self._config.remembered:
            del self._handed[next(iter(self._handed))]
        item = Match(event.id, event.author, passing.attributes.text, event.time, event.body, hops)
        effects: list[ContentEffect] = [Record(Kind.DELIVERED, topic=TOPIC, event=event.id, hops=hops)]
        effects += [Deliver(number, (item,)) for number in sorted(numbers)]
        return effects
