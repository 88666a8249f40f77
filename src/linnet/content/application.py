"""The application at one node: what it subscribed to, what it was handed, and what became of what it said."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from linnet.content.attribute_keys import nearest_name
from linnet.content.branch_ledger import Count
from linnet.content.commands import Fate, Match, Outcome, PublishContent
from linnet.content.config import ContentConfig
from linnet.content.matching_index import Index
from linnet.content.messages import SoFar
from linnet.content.passing import KIND, Passing
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.content.reach import Promise
from linnet.core.counts import counted
from linnet.core.errors import Refused
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import BODY_BYTES, CLEAR_BYTES
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.event.event import Tail
from linnet.event.signing import sign_unit
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

TOPIC = TopicId(sha256(b"linnet/content/1").digest())
"""The namespace of content."""
Hand = Callable[[list[int], Match], None]
"""Hands an event to these subscriptions, all that accept it."""


class ConfirmDue(Timer, frozen=True, gc=False):
    """A publisher has waited as long as it said for those who say nothing of an event."""

    event: EventId


class _Publication:
    """An event of ours, and what is known of it so far."""

    __slots__ = ("confirms", "fates", "names", "request")

    def __init__(self, request: int, names: tuple[str, ...], confirms: bool) -> None:
        self.request: int | None = request
        """Who waits for an answer; None when it was given."""
        self.names = names
        self.confirms = confirms
        """Whether those who say nothing are waited for."""
        self.fates: dict[str, Fate] = {}
        """By attribute, what is known: the end, or how it stands."""

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to come."""
        return len(self.fates) == len(self.names) and all(fate.settled for fate in self.fates.values())

    @property
    def is_answered(self) -> bool:
        """Whether whoever lives has answered."""
        return len(self.fates) == len(self.names)

    def outcome(self, event: EventId) -> Outcome:
        """What is known of it."""
        unheard = {name: Fate(name, 0, 0, None, settled=False) for name in self.names}
        return Outcome(event, tuple({**unheard, **self.fates}[name] for name in self.names))


class Application:
    """Subscriptions and publications of this node's own."""

    def __init__(
        self, context: Context, config: ContentConfig, out: Outbox, hand: Hand, promise: Promise
    ) -> None:
        self._context = context
        self._config = config
        self._out = out
        self._hand = hand
        self._promise = promise
        self.own: dict[int, tuple[str, Predicate]] = {}
        """Subscriptions, with the attribute whose rendezvous they go to."""
        self._index: Index[int] = Index()
        self._handed: dict[EventId, float] = {}
        self._accepted: list[tuple[list[int], Match]] = []
        """What subscriptions accept and were not handed yet."""
        self._publications: dict[EventId, _Publication] = {}
        self._last_time = 0

    def __len__(self) -> int:
        return len(self._handed) + len(self._publications)

    def subscribe(self, number: int, text: str) -> str:
        """Keep a subscription to a predicate; the attribute whose rendezvous it goes to."""
        if number in self.own:
            raise Refused(Reason.IN_USE, f"there is a subscription {number} already")
        if len(self.own) >= self._config.subscriptions:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.subscriptions} subscriptions")
        predicate = read_predicate(text, self._config.attributes)
        attribute = nearest_name(self._context.peer, predicate.names)
        self.own[number] = (attribute, predicate)
        self._index.add(number, predicate)
        return attribute

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

    def note_published(self, request: int, passing: Passing, confirm: float) -> None:
        """Wait for the fates of an event that sets out, unless there will be none."""
        size = len(passing.event.body)
        self._out.record(Record(Kind.PUBLISHED, topic=TOPIC, event=passing.id, bytes=size))
        if not self._config.reliable:
            self._promise().reply(request, Outcome(passing.id, ()))
            return
        publication = _Publication(request, passing.attributes.names, confirm > 0)
        self._publications[passing.id] = publication
        if confirm > 0:
            self._out.set_timer(confirm, ConfirmDue(passing.id))

    def note_end(self, event: EventId, attribute: str, count: Count, reason: Reason | None) -> None:
        """Note what became of an event at one rendezvous, and answer with the last of them."""
        publication = self._publications.get(event)
        if publication is None:
            return
        delivered, missed, again, matches = count
        publication.fates[attribute] = Fate(attribute, delivered, missed, reason, again, matches)
        if publication.is_settled:
            del self._publications[event]
        if publication.request is None:
            self._out.record(_later(event, publication.fates[attribute]))
            return
        self._answer_if_known(event, publication)

    def note_stall(self, event: EventId, attribute: str, so_far: SoFar) -> None:
        """Note that all who live have answered at one rendezvous, and answer if others need not."""
        publication = self._publications.get(event)
        if publication is None or ((known := publication.fates.get(attribute)) is not None and known.settled):
            return
        publication.fates[attribute] = Fate(
            attribute,
            so_far.delivered,
            so_far.missed,
            None,
            so_far.again,
            so_far.matches,
            settled=False,
            silent=so_far.silent,
            more_silent=so_far.more,
        )
        self._answer_if_known(event, publication)

    def end_confirmation(self, timer: ConfirmDue) -> None:
        """Answer a publisher, though some say nothing of its event."""
        publication = self._publications.get(timer.event)
        if publication is not None:
            self._answer(timer.event, publication)

    def _answer_if_known(self, event: EventId, publication: _Publication) -> None:
        if not (publication.is_settled if publication.confirms else publication.is_answered):
            return
        if publication.confirms:
            self._out.cancel_timer(ConfirmDue(event))
        self._answer(event, publication)

    def _answer(self, event: EventId, publication: _Publication) -> None:
        request, publication.request = publication.request, None
        if request is not None:
            self._promise().reply(request, publication.outcome(event))

    def tidy(self, now: float) -> None:
        """Forget what was handed over and will not come again, since it is too old to be taken."""
        old = now - self._config.taken_for
        self._handed = {event: at for event, at in self._handed.items() if at > old}

    def take(self, passing: Passing, hops: int, now: float) -> Count:
        """Note which subscriptions accept an event, once; what this node counts for it.

        By the first way on which it comes, it is a node, with its subscriptions; by others one that has it.
        """
        event = passing.event
        if event.id in self._handed:
            return Count(0, 0, again=1)
        numbers = self._index.matching(passing.attributes)
        if not numbers:
            return Count(0, 0)
        self._handed[event.id] = now
        if len(self._handed) > self._config.remembered:
            del self._handed[next(iter(self._handed))]
        item = Match(event.id, event.author, passing.attributes.text, event.time, event.body, hops)
        self._accepted.append((sorted(numbers), item))
        return Count(1, 0, matches=len(numbers))

    def hand_over(self) -> None:
        """Hand to subscriptions what they accepted meanwhile."""
        for numbers, item in self._accepted:
            self._out.record(Record(Kind.DELIVERED, topic=TOPIC, event=item.event, hops=item.hops))
            self._hand(numbers, item)
        self._accepted.clear()


def _later(event: EventId, fate: Fate) -> Record:
    """What became of an event in the end, for the trace, since who said it did not wait for that."""
    reached = f"{counted(fate.delivered, 'node')}, {counted(fate.matches, 'subscription')}"
    told = f"{reached}, {counted(fate.missed, 'branch', 'branches')} without an answer"
    note = f"content, at {fate.attribute}, after its publisher was answered: {told}"[:200]
    if fate.reason is None and not fate.missed:
        return Record(Kind.ACKED, topic=TOPIC, event=event, note=note)
    return Record(Kind.DROPPED, topic=TOPIC, event=event, reason=fate.reason or Reason.TIMEOUT, note=note)
