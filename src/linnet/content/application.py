"""The application at one node: what it subscribed to, what it was handed, and what became of what it said."""

from __future__ import annotations

from hashlib import sha256

from linnet.content.branches import Count
from linnet.content.commands import Fate, Match, Outcome, PublishContent, SubscribeContent
from linnet.content.config import ContentConfig
from linnet.content.effects import ContentEffect
from linnet.content.index import Index
from linnet.content.keys import nearest_name
from linnet.content.passing import KIND, Passing
from linnet.content.predicates import Predicate, read_attributes, read_predicate
from linnet.core.effects import Deliver, Reply
from linnet.core.errors import Refused
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import BODY_BYTES, CLEAR_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Tail
from linnet.event.signing import sign_unit
from linnet.trace.records import Kind, Record

TOPIC = TopicId(sha256(b"linnet/content/1").digest())
"""The namespace of content."""


class _Publication:
    """An event of ours, and what is known of it so far."""

    __slots__ = ("fates", "request", "waits")

    def __init__(self, request: int, waits: int) -> None:
        self.request = request
        self.waits = waits
        self.fates: list[Fate] = []


class Application:
    """Subscriptions and publications of this node's own."""

    def __init__(self, context: Context, config: ContentConfig) -> None:
        self._context = context
        self._config = config
        self.own: dict[int, tuple[str, Predicate]] = {}
        """Subscriptions, with the attribute whose rendezvous they go to."""
        self._index: Index[int] = Index()
        self._handed: dict[EventId, float] = {}
        self._publications: dict[EventId, _Publication] = {}
        self._last_time = 0

    def __len__(self) -> int:
        return len(self._handed) + len(self._publications)

    def subscribe(self, command: SubscribeContent) -> tuple[str, Predicate]:
        """Keep a subscription; the attribute whose rendezvous it goes to."""
        if command.subscription in self.own:
            raise Refused(Reason.IN_USE, f"there is a subscription {command.subscription} already")
        if len(self.own) >= self._config.subscriptions:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.subscriptions} subscriptions")
        predicate = read_predicate(command.predicate, self._config.attributes)
        attribute = nearest_name(self._context.peer, predicate.names)
        self.own[command.subscription] = (attribute, predicate)
        self._index.add(command.subscription, predicate)
        return attribute, predicate

    def unsubscribe(self, subscription: int) -> tuple[str, tuple[Predicate, ...]]:
        """Forget a subscription; its attribute, and what is still asked for under that."""
        if subscription not in self.own:
            raise Refused(Reason.UNKNOWN, f"there is no subscription {subscription}")
        attribute, _ = self.own.pop(subscription)
        self._index.remove(subscription)
        left = (predicate for name, predicate in self.own.values() if name == attribute)
        return attribute, tuple(piece for predicate in left for piece in predicate.pieces)

    def sign(self, command: PublishContent, now: float) -> Passing:
        """What the application says, as an event."""
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
        return Passing(signed.events[-1], attributes, signed.unit, context.card)

    def published(self, request: int, passing: Passing) -> list[ContentEffect]:
        """An event sets out: its fates are waited for, or there will be none."""
        record = Record(Kind.PUBLISHED, topic=TOPIC, event=passing.id, bytes=len(passing.event.body))
        if self._config.reliable:
            self._publications[passing.id] = _Publication(request, passing.attributes.size)
            return [record]
        return [record, Reply(request, Outcome(passing.id, ()))]

    def ended(
        self, event: EventId, attribute: str, count: Count, reason: Reason | None
    ) -> list[ContentEffect]:
        """What became of an event at one rendezvous; with the last of them it is answered."""
        publication = self._publications.get(event)
        if publication is None:
            return []
        publication.fates.append(Fate(attribute, *count, reason))
        if len(publication.fates) < publication.waits:
            return []
        del self._publications[event]
        return [Reply(publication.request, Outcome(event, tuple(publication.fates)))]

    def tidy(self, now: float) -> None:
        """Forget what was handed over and will not come again, since it is too old to be taken."""
        old = now - self._config.taken_for
        self._handed = {event: at for event, at in self._handed.items() if at > old}

    def hand(self, passing: Passing, hops: int, now: float) -> list[ContentEffect]:
        """Hand an event to the subscriptions that accept it, once."""
        event = passing.event
        numbers = [] if event.id in self._handed else self._index.matching(passing.attributes)
        if not numbers:
            return []
        self._handed[event.id] = now
        if len(self._handed) > self._config.remembered:
            del self._handed[next(iter(self._handed))]
        item = Match(event.id, event.author, passing.attributes.text, event.time, event.body, hops)
        effects: list[ContentEffect] = [Record(Kind.DELIVERED, topic=TOPIC, event=event.id, hops=hops)]
        effects += [Deliver(number, (item,)) for number in sorted(numbers)]
        return effects
